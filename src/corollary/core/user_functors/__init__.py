"""Functors that users write in Python: what a program knows of them, and their registration."""
