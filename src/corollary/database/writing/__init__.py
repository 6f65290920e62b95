"""Changes of base relations: rows and files that come in, as operations on an engine."""
