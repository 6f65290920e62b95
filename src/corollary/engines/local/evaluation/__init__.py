"""Running the steps of plans: pipelines, expressions, aggregates, and breadth-first search."""
