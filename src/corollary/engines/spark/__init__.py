"""Plans on Spark: relations as DataFrames, steps as Spark SQL."""
