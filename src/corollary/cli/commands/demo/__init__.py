"""`corollary demo`: the bundled example, in parts."""
