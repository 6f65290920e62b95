"""The warehouse that a command works on: where it is, opening it, what an interrupt leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.console import TerminalConsole
from corollary.database.database import Database, warehouse_of
from corollary.errors import without_password

if TYPE_CHECKING:
    from corollary.database.reader import Reader

URL = ("postgresql://", "postgresql+psycopg://")

warehouse = click.argument("warehouse", metavar="WAREHOUSE")


def is_warehouse(place: str) -> bool:
    """Whether a name stands for a warehouse rather than for a program."""
    return place.startswith(URL) or Path(place).is_dir()


@contextmanager
def opened(
    place: str, console: TerminalConsole, *, create: bool = False, **options: Any
) -> Iterator["Database"]:
    """Open the database of a warehouse, and close it at the end.

    Args:
        place: a directory, or the URL of a catalog on PostgreSQL.
        console: where progress is shown.
        create: whether to make the warehouse if there is none.
        options: others of `open_database`.

    Raises:
        WarehouseError: there is none, or it cannot be read.
        KeyboardInterrupt: with what the interrupted work has left behind, in words.
    """
    from corollary.database.opening import open_database

    left = "nothing was changed"
    try:
        console.progress(f"opening {without_password(place)}")
        with open_database(place, create=create, console=console, **options) as database:
            console.done()
            before = database.commits
            try:
                yield database
            except KeyboardInterrupt:
                left = _left(database, before, place)
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(left) from None
    finally:
        console.done()


def seen_by(database: "Database", reader: str | None) -> "Database | Reader":
    """Return a database as a reader sees it, if one is named."""
    return database if reader is None else database.reader(reader)


def _left(database: "Database", before: int, place: str) -> str:
    """Return what there is after an interrupt."""
    if database.commits > before:
        return (
            f"commit {database.commits} was made and stays; published tables that lag behind "
            "follow with the next run"
        )
    warehouse = warehouse_of(database)
    latest = None if warehouse is None else warehouse.catalog.latest()
    if latest is not None and latest.number > before:
        return f"`corollary log {without_password(place)}` tells what was committed meanwhile"
    return "nothing was changed"
