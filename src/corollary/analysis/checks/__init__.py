"""Checks, one pass in each file; `analysis.check` has their order."""
