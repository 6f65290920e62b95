"""The database that a command works on: a warehouse, or a program that is loaded into memory."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.cli.options import PropagationOptions
from corollary.cli.recording import Recording, current_recording
from corollary.console import Console, TerminalConsole
from corollary.errors import redact_password

if TYPE_CHECKING:
    from datetime import date

    from corollary.core.engine import Limits
    from corollary.database.database import Database
    from corollary.database.options import DatabaseOptions
    from corollary.warehouse.files.places import Place
    from corollary.warehouse.warehouse import Warehouse
    from corollary.warehouse.warehouse_catalog import WarehouseCatalog

CATALOG_SCHEMES = ("postgresql://", "postgresql+psycopg://")


def is_warehouse(place: str) -> bool:
    """Whether a name on the command line is a warehouse rather than a program."""
    if current_recording() is not None:  # a server answers, and has a warehouse
        return True
    path = Path(place)
    is_unknown = not path.suffix and not path.exists()  # programs have an ending
    return place.startswith(CATALOG_SCHEMES) or path.is_dir() or is_unknown


def open_catalog(place: str, *, in_any_format: bool = False) -> "closing[WarehouseCatalog]":
    """Open the catalog of a warehouse, of which no data is read.

    One that another version has written is refused, unless any format will do.

    Raises:
        WarehouseError: there is no warehouse.
    """
    from corollary.warehouse.warehouse_catalog import WarehouseCatalog

    recording = current_recording()
    place = place if recording is None else recording.place
    return closing(WarehouseCatalog.open(place, create=False, in_any_format=in_any_format))


def open_files(place: str) -> "closing[Warehouse]":
    """Open the catalog and the files of a warehouse, of which no relation is read.

    Raises:
        WarehouseError: there is no warehouse.
    """
    from corollary.warehouse.warehouse import Warehouse

    return closing(Warehouse.open(place, create=False))


@contextmanager
def open_warehouse(
    place: str,
    console: TerminalConsole,
    options: "DatabaseOptions | None" = None,
    *,
    create: bool = False,
    today: "date | None" = None,
) -> "Iterator[Database]":
    """Open the database of a warehouse, and close it at the end.

    Args:
        place: a directory, or the URL of a catalog on PostgreSQL.
        console: where progress is shown.
        options: of the database.
        create: whether to make the warehouse if there is none.
        today: the day that the next commit sets.

    Raises:
        WarehouseError: there is none, or it cannot be read.
        KeyboardInterrupt: with a sentence that says what the interrupted work has committed.
    """
    from corollary.database.database import state_of
    from corollary.database.opening import open_with
    from corollary.database.options import DatabaseOptions

    recording = current_recording()
    if recording is not None:
        with _borrowed(recording, console, today) as database:
            yield database
        return
    outcome = "nothing was changed"
    try:
        console.progress(f"opening {redact_password(place)}")
        chosen = options or DatabaseOptions()
        with open_with(place, chosen, console=console, create=create) as database:
            console.done()
            state_of(database).day = today
            before = database.commits
            try:
                yield database
            except KeyboardInterrupt:
                outcome = _interrupted(database, before, place)
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(outcome) from None
    finally:
        console.done()


@contextmanager
def _borrowed(
    recording: Recording, console: TerminalConsole, today: "date | None"
) -> "Iterator[Database]":
    """Give the database of a server, which stays open."""
    from corollary.database.database import state_of

    database, state = recording.database, state_of(recording.database)
    with state.lock:
        database.refresh()
        before, state.console, state.day = state.console, console, today
        try:
            yield database
        finally:
            state.console, state.day = before, None
            console.done()


def open_to_read(
    place: str,
    console: TerminalConsole,
    limits: "Limits | None" = None,
    *,
    log_queries: bool = True,
) -> "AbstractContextManager[Database]":
    """Open the database of a warehouse to answer goals, which never needs Spark."""
    from corollary.database.options import LOCAL, DatabaseOptions

    options = DatabaseOptions(LOCAL, limits=limits, log_queries=log_queries)
    return open_warehouse(place, console, options)


def _interrupted(database: "Database", before: int, place: str) -> str:
    """Return a sentence about what an interrupt leaves behind."""
    if database.commits > before:
        return (
            f"commit {database.commits} was made and stays; published tables that lag behind "
            "follow with the next run"
        )
    from corollary.database.database import warehouse_of

    warehouse = warehouse_of(database)
    latest = None if warehouse is None else warehouse.catalog.latest_commit()
    if latest is not None and latest.number > before:
        return f"`corollary log {redact_password(place)}` tells what was committed meanwhile"
    return "nothing was changed"


def load_in_memory(
    programs: tuple[Path, ...],
    facts: "Place",
    root: "Place | None",
    propagation: PropagationOptions,
    limits: "Limits",
    console: Console,
    placement: str = "driver",
    without: Iterable[str] = (),
    today: "date | None" = None,
) -> "Database":
    """Return a database in memory with a program and its facts; it watches what that asks for."""
    from corollary.database.database import state_of
    from corollary.database.opening import open_with
    from corollary.database.options import LOCAL, SPARK, DatabaseOptions

    options = DatabaseOptions(
        LOCAL if placement == "driver" else SPARK,
        placement,
        algorithm=propagation.algorithms,
        without=tuple(without),
        limits=limits,
    )
    database = open_with(None, options, console=console)
    state_of(database).is_trial = True
    state_of(database).day = today
    top = None if root is None else str(root)
    database.load(*programs, facts=str(facts), root=top)
    loaded = state_of(database).loaded
    propagation.check(loaded.normal)
    for name in propagation.watched(loaded):
        database.watch(name)
    return database
