"""Plans on Spark: what is small runs on the driver, what is large in tasks or by queries."""
