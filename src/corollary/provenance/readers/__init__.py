"""Answers for readers: made of what was granted to them, and of nothing else."""
