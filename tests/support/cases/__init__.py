"""The folders of `tests/cases`: how they are read, and how they are run."""
