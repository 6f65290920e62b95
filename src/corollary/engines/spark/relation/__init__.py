"""Partitioned relations: tuples in files by the value of a column, probed inside Spark tasks.

`files` says which files a relation has, `open_partition` reads and writes one partition.
"""
