"""Continuous runs: streams of Spark change base relations, one transaction for each micro-batch.

`stream` starts a query, `batches` is what Spark calls for every micro-batch; `frames` and `folders`
read one, `events` reduces it to a change, `watch_loop` is the loop of `corollary watch`.
"""
