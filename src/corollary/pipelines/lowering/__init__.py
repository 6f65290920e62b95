"""From plans of Spark Connect to the trees that the binder of SQL takes."""
