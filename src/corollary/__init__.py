"""Corollary keeps derived data true while the data under it changes."""

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from pathlib import Path

    from corollary.database.database import Database
    from corollary.database.reader import Reader

__version__ = "0.1.0"


@overload
def open(  # noqa: A001 - read as corollary.open
    path: "str | Path | None" = None, *, reader: None = None, **options: Any
) -> "Database": ...


@overload
def open(path: "str | Path", *, reader: str, **options: Any) -> "Reader": ...  # noqa: A001


def open(  # noqa: A001 - read as corollary.open
    path: "str | Path | None" = None, *, reader: str | None = None, **options: Any
) -> "Database | Reader":
    """Open a database: one that lasts in a warehouse, or, with `open(None)`, one in memory.

    With `reader="alice"` it is opened as a reader sees it, limited to what was granted to it; see
    `corollary.database.reader.Reader`. See `corollary.database.opening.open_database` for the
    other options.
    """
    from corollary.database.opening import open_as, open_database

    return open_database(path, **options) if reader is None else open_as(reader, path, **options)


def __getattr__(name: str) -> Any:
    """Return `Limits` or `ActiveDocument`, which are loaded when they are asked for."""
    if name == "Limits":
        from corollary.core.engine import Limits

        return Limits
    if name == "ActiveDocument":
        from corollary.documents.document import ActiveDocument

        return ActiveDocument
    raise AttributeError(f"module 'corollary' has no attribute {name!r}")
