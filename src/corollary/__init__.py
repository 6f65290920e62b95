"""Corollary keeps derived data true while the data under it changes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from corollary.database.database import Database

__version__ = "0.1.0"


def open(path: "str | Path | None" = None, **options: Any) -> "Database":  # noqa: A001 - read as corollary.open
    """Open a database: one that lasts in a warehouse, or, with `open(None)`, one in memory.

    See `corollary.database.database.open_database` for the options.
    """
    from corollary.database.database import open_database

    return open_database(path, **options)


def __getattr__(name: str) -> Any:
    """Return `Limits` or `ActiveDocument`, which are loaded when they are asked for."""
    if name == "Limits":
        from corollary.core.engine import Limits

        return Limits
    if name == "ActiveDocument":
        from corollary.documents.document import ActiveDocument

        return ActiveDocument
    raise AttributeError(f"module 'corollary' has no attribute {name!r}")
