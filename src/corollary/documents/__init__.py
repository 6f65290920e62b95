"""Active documents: tree patterns over documents that streams still write into.

Reference: Abiteboul, Bourhis, Marinoiu, "Incremental View Maintenance for Active Documents", 2007.

A document (`forest`, read by `terms`, `xml`, `json`) is stored as relations (`storage`). A query
(`parse`, `pattern`, `joins`, `shape`) is compiled to rules (`program`), which a database maintains.
`document` and `view` are what users touch; `useful`, `collect`, `once` and `explain` answer further
questions about a view (`question`).
"""
