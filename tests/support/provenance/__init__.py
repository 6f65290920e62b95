"""Holds answers to why against the oracle."""
