"""Runs: pipelines over sources, files of changes, dry runs, one-shot runs."""
