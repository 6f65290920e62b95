"""The advisor: finds new views that are worth storing, and rewrites queries to use them.

Reference: Chirkova and Genesereth, "Relational reformulation for materialization".

Rule bodies are cut into groups of literals that share few variables with the rest, every group
becomes a *candidate*, and the candidates that are small enough and lower the exponent of a query
are recommended.

    model     the scheme of a program: clauses, candidates, dependencies and degrees
    search    stage 1: disjuncts, folding, clusters; stage 2: which candidates to store
    cost      exponents of plans, and estimates from real sizes
    check     verification, measurement, sampling

`advise` runs both stages for all queries; `report` and `apply` use the advice.
"""
