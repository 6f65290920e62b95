"""Data files of a warehouse, and the files that users name."""
