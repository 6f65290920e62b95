"""Data files of a warehouse, and the files that users name."""

LIST_SUFFIX = ".parts"
"""The end of the name of a file that lists the files of a table."""
