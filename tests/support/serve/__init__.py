"""Servers under test, and clients of theirs."""
