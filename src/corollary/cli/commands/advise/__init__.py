"""`corollary advise`."""
