"""Interpreters of plans; `interpreter` and `budget` serve both engines."""
