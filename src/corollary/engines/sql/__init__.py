"""The compiler from pipelines and aggregations to SQL trees, for DuckDB and for Spark SQL."""
