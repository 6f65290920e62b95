"""Why a tuple came or went: changes that are tried out, and what of a commit was its cause.

`trials` does changes in a transaction that is rolled back, `recorded_commit` has the changes of a
commit and the state before it, `causes` finds the least of them that do what the commit did.
"""
