"""Evaluation and maintenance algorithms; each emits a plan."""
