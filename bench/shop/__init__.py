"""`shop`: files of a shop, seven views, and DuckDB with the same.

| file | holds |
|---|---|
| `data.py` | the files: CSV and Parquet, keys, decimals, dates, nulls; what one more day changes |
| `shop.dl`, `shop.sql` | the program, and the same in DuckDB's SQL |
| `race.py` | the figures |

`python -m bench.shop DIRECTORY` writes the files.
"""
