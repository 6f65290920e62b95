"""The command line."""

from corollary.cli.main import main

__all__ = ["main"]
