"""Bulk steps: whole relations are joined and aggregated by DuckDB, in this process."""
