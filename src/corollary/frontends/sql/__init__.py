"""Views, tables and questions in SQL (Spark's dialect), which become rules.

sqlglot is imported by the first call of an entry point, not with the package.
"""
