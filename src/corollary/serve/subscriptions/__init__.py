"""Subscriptions: what commits change, as events that a client can resume by commit."""
