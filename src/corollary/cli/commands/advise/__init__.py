"""`corollary advise`: its options, and what it prints."""
