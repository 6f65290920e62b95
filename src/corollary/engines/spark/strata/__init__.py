"""Strata whose relations lie in partitioned files, maintained inside the tasks of one Spark job.

`driver` plans and commits, `job` runs the tasks, `worker` is what a task does; `messages` go
between them, `versions` are the files of a partition over time.
"""
