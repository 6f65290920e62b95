"""What small changes of SQL views cost: `small-changes`, `windows`, and what `wire` adds.

| file | holds |
|---|---|
| `pair.py` | the same tables in a database and in DuckDB; one is changed, the other queried anew |
| `pathway.py`, `postgresql.py` | peers: a view that is maintained, one that is computed anew |
| `small.py` | `small-changes`: one row, untouched views, batches of all sizes, a durable commit |
| `windows.py` | `windows`: ten window and group views, each in a process with a limit |
| `wire.py` | `wire`: queries, writes and rows through the PostgreSQL port |
"""
