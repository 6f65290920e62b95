"""`pipelines`: a project of Spark Declarative Pipelines, by its own runner and by Corollary.

| file | holds |
|---|---|
| `project.py` | the specification, and 18 datasets in Python and SQL |
| `race.py` | its inputs, what changes in them, the figures |
"""
