"""`tpch-like` and `tpch`: joins and sums in the manner of TPC-H, and its 22 queries as views.

| file | holds |
|---|---|
| `data.py`, `queries.py` | `tpch-like`: tables with numbers or texts for keys, programs and SQL |
| `generator.py`, `words.py` | the eight tables after the specification, the refresh functions |
| `tables.sql`, `views.sql`, `views.py` | the tables and the 22 queries in SQL |
| `refresh.py` | `tpch`: the figures |
"""
