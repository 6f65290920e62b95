"""Tests of changes: given rows, when something changes, then rows, differences and refusals."""
