"""Views, tables and questions in SQL (Spark's dialect), which become rules."""
