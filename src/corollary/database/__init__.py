"""Programs, data and an engine together."""
