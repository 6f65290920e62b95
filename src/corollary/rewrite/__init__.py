"""From the program as written to the normal form that is evaluated; `normalise` has the passes."""
