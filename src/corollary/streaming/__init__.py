"""Continuous runs: streams of Spark change base relations, a micro-batch a transaction.

`stream` starts a query, `batches` is what Spark calls for every micro-batch; `frames` and `folders`
read one, `events` tells what it does to the relation, `watching` is the loop of `corollary watch`.
"""
