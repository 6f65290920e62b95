"""Active documents: tree patterns over documents that streams still write into.

Reference: Abiteboul, Bourhis, Marinoiu, "Incremental View Maintenance for Active Documents", 2007.

    trees      forests and document trees, read from terms, XML and JSON
    queries    patterns, their joins, and the rules they are compiled to
    answers    three-valued answers: explanation, usefulness, garbage collection
    types      what functions can still bring

`document` and `view` are what users touch, `collection` and `spark` hold many documents; a database
maintains the rules over the relations of `storage`.
"""
