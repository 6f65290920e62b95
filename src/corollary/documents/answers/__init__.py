"""Answers to a query: what is sure, what is possible, what it waits for, what can be forgotten."""
