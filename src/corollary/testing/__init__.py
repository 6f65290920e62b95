"""Tests of changes: given rows, when something changes, then rows, differences and refusals."""

CASE_SUFFIXES = (".test.yaml", ".test.yml", ".test.dl", ".test.sql")
"""What the names of files end with that are found in directories."""
