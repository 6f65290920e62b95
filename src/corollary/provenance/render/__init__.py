"""Answers as text, as pictures and as HTML."""
