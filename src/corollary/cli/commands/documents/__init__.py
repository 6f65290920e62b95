"""`corollary documents`."""
