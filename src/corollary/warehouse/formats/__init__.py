"""Formats of files: delimited text, typed values, entries of a Delta log."""
