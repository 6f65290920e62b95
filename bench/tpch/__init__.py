"""`tpch-like`: joins and sums in the manner of TPC-H, in memory, against DuckDB.

| file | holds |
|---|---|
| `data.py` | the tables, with numbers or with texts for keys |
| `queries.py` | the queries as programs and as SQL |
"""
