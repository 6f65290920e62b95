"""How tuples come in: rows and files that users hand in, sources of a pipeline, one-shot runs."""
