"""Bulk steps on Spark: whole relations are read, and one query computes a step."""
