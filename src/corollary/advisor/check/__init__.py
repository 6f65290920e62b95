"""Checks of advice against proofs, random data, the real data and the clock."""
