"""Queries on documents: parsed, normalised, and compiled to rules."""
