"""Much at once: long recursion that makes texts, large files, sums of large groups.

| file | measures |
|---|---|
| `paths.py` | a bill of materials by path, computed and stored, against DuckDB's recursion |
| `load.py` | one large CSV file: seconds and memory; runs only when it is asked for |
| `totals.py` | a thousand changed rows in groups of 100,000, against the same in groups of 100 |
"""
