"""The commands that keep a warehouse healthy."""
