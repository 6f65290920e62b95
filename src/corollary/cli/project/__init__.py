"""`corollary.toml`: what it says, and how commands take it for what is not given."""
