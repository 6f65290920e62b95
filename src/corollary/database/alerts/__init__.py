"""Delivery of alerts after a commit, one file for each kind of sink."""
