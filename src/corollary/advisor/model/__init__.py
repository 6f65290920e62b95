"""The advisor's input: schemes, clauses and candidates, their dependencies and degrees."""
