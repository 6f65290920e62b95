"""Warehouses in Spark's own words: `format("corollary")`, views of a session, a table function.

No process of ours runs: Spark's planner reads the catalog, its tasks read and write the files.
`source` is the data source, `access` what its options open, `parts` what a task reads, `reading`
and `writing` are its readers and writers, `views` attaches a warehouse to a session.
"""

from corollary.spark.views import attach as attach
