"""The advisor: finds views that nobody has defined yet and that are worth storing.

After Chirkova and Genesereth, "Relational reformulation for materialization": rule bodies are cut
into groups of literals that share few variables with the rest, every group becomes a *candidate*,
and the candidates that are small enough and lower the exponent of a query are recommended.

    reading → clauses, scheme      what a program says, for the advisor
    disjuncts, folding, clusters   stage 1: candidates
    deciding                       stage 2: which of them to store
    advising                       both stages for all queries: the advice
    estimating, upkeep, workload   real sizes beside N^k, what views cost and gain
    applying, verifying, measuring what is done with advice
"""
