"""From the program as written to the normal form that is evaluated: one pass, one file."""
