"""Aggregates of groups: exact sums, extremes, running totals."""
