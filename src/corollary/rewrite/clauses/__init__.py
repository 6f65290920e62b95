"""Passes that rewrite one clause at a time: what the normal form does not have goes."""
