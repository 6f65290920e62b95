"""The placement `sql`: strata that Spark maintains by one query for each step."""
