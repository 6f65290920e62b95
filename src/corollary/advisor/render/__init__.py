"""Advice as text, Markdown, JSON, SQL, and the steps of the algorithm as text and SVG."""
