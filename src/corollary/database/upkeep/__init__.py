"""Upkeep: what a warehouse needs besides transactions.

| module | does |
|---|---|
| `status` | says what a warehouse holds, and how it is |
| `retention` | gives up dead writers, drops old history and files that nobody needs |
| `verify`, `findings` | compares everything with everything; what there is to say of it |
| `soundness`, `replay` | files read with suspicion; relations from snapshots and changes alone |
| `rightful`, `recompute` | what relations that are made of others should hold |
| `repair` | makes derived data anew |
| `backup` | copies a warehouse while others commit, in either direction |
| `erase` | takes a tuple out of the data and out of history |
| `alter`, `reshape`, `edit` | columns of a base relation: the commit, the data, the program |
| `fence` | a commit that makes every process begin anew from what is stored |
"""
