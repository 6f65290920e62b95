"""Projects: a directory with `corollary.toml`."""
