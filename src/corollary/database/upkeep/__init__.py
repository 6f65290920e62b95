"""Upkeep: what a warehouse needs besides transactions.

| module | does |
|---|---|
| `status` | reports what a warehouse holds |
| `retention` | removes dead writers, old history and files that are not referenced |
| `verify` | compares everything that is stored with everything else; rebuilds derived data |
| `checked_reads` | files read with checks; relations from snapshots and changes alone |
| `expected_contents` | what relations that are computed from others, and payload, should hold |
| `backup` | copies a warehouse while others commit, in either direction |
| `erase` | removes a tuple from the data and from history |
| `alter` | columns: what `corollary alter` asks of `database/alterations.py` |
| `transfer` | a warehouse as files, and from them |
"""
