"""Projects of Spark's declarative pipelines, maintained instead of computed anew."""
