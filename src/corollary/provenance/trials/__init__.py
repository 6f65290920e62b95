"""Tries changes out: does them in a transaction that is inspected and rolled back."""
