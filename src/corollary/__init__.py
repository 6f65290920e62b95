"""Corollary keeps derived data true while the data under it changes."""

__version__ = "0.1.0"
