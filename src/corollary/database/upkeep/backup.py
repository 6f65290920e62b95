"""Copies a warehouse while others commit: backups, and their restoration.

the catalog's rows, in one consistent read → the files they reference, with checksums compared → the
copy gets its catalog

The catalog comes last, under a temporary name until then: a copy that is interrupted cannot be
mistaken for a warehouse. In an object store, where a catalog cannot be, a mark of that name says
that the copy is not complete. Published tables are not copied, since they are built from the
relations.

A branch is a copy whose files are second names of the same files: they are never written again, and
a file lives as long as one of its names, so that neither warehouse has to know of the other.
"""

import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corollary.console import Console, Phase, SilentConsole
from corollary.data_class import dataclass
from corollary.errors import ConflictError, Diagnostic, WarehouseError, redact_password
from corollary.warehouse.catalog import credentials, idempotency_keys, query_log, schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.copy_lease import copy_lease
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.multi_file_table import expand_lists
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, is_below, remove_tree
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import CATALOG_FILE, DATA_DIRECTORY, parse_location

UNFINISHED = "catalog.unfinished"
MAX_TRIES = 5
"""How often a copy is tried when files are removed while it runs."""
COPY_BATCH_ROWS = 500
NOT_COPIED = ("corollary_intents", "corollary_published")
"""Running writers and published tables belong to the original only."""
NOT_BRANCHED = (*NOT_COPIED, "corollary_outbox")
"""Alerts that wait are delivered by the original: a backup takes its place, a branch does not."""
ORIGIN_KEY = "branched_from"
"""The property of a catalog that says which warehouse it is a branch of, and of which commit."""
OPTIONAL_TABLES = {
    query_log.TABLE: query_log.CREATE,
    credentials.TABLE: credentials.CREATE,
    idempotency_keys.TABLE: idempotency_keys.CREATE,
    idempotency_keys.DIGESTS_TABLE: idempotency_keys.CREATE_DIGESTS,
}
"""What not every catalog has, and what creates it."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What was copied."""

    commit: int
    oldest: int
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the result as `backup` and `restore` print it."""
        return asdict(self)


def copy(
    source: Warehouse,
    place: str | Path,
    console: Console | None = None,
    *,
    is_branch: bool = False,
) -> CopyResult:
    """Copy a warehouse to an empty place.

    That is a directory that is empty or does not exist, or a database on PostgreSQL without a
    warehouse, `postgresql://user@host/name?data=PLACE`. A branch shares the files.

    Raises:
        WarehouseError: `C0960`, the place is not empty; or a file is damaged or cannot be written.
    """
    console = console or SilentConsole()
    root, url = parse_location(str(place))
    if is_below(root, source.root):
        raise refuse_copy(f"`{root}` is in the warehouse itself.", "name a place outside of it")
    server = None if url is None else _empty_server(url)
    try:
        require_empty(root)
    except BaseException:
        if server is not None:
            server.close()
        raise
    try:
        for _ in range(MAX_TRIES):
            with copy_lease(source.catalog) as beat:
                copied = _copy(source, root, server, console, beat, is_branch=is_branch)
            if copied is not None:
                return copied
        raise ConflictError("files are removed faster than they are copied; nothing was copied")
    except BaseException:
        _clear(root)
        raise
    finally:
        console.enter(Phase.OTHER)
        if server is not None:
            server.close()


def branch(source: Warehouse, place: str | Path, console: Console | None = None) -> CopyResult:
    """Make a warehouse that shares the files of another, on the same file system.

    Raises:
        WarehouseError: `C1907`, the two are on different file systems; `C0960`, the place is not
            empty.
    """
    root, url = parse_location(str(place))
    if url is not None or not isinstance(root, Path) or not isinstance(source.root, Path):
        raise _cannot_share("only files on a disk can be shared, and objects and databases cannot")
    if (root / CATALOG_FILE).exists():
        text = f"There is a warehouse in `{root}` already."
        cure = "name another directory, or remove this one to begin anew"
        raise refuse_copy(text, cure)
    above = next(each for each in (root.absolute(), *root.absolute().parents) if each.exists())
    if above.stat().st_dev != source.root.stat().st_dev:
        raise _cannot_share(f"`{root}` is on another file system than `{source.root}`")
    return copy(source, root, console, is_branch=True)


def _cannot_share(reason: str) -> WarehouseError:
    note = "name a directory beside the warehouse, or copy it with `corollary backup`"
    text = f"There can be no branch: {reason}."
    return WarehouseError([Diagnostic("C1907", text, None, note)])


def origin_of(branch: Catalog) -> str:
    """Return the warehouse that another is a branch of.

    Raises:
        WarehouseError: `C1908`, it is none.
    """
    with branch.read_transaction() as connection:
        found = branch.find_meta(connection, ORIGIN_KEY)
    if found is None:
        location = redact_password(branch.location).removesuffix(f"/{CATALOG_FILE}")
        text = f"`{location}` is not a branch of another warehouse."
        note = "name the one that gets its program, with `--to WAREHOUSE`"
        raise WarehouseError([Diagnostic("C1908", text, None, note)])
    return str(json.loads(found)["warehouse"])


def require_empty(root: Place) -> None:
    """Refuse a place that holds anything but an unfinished copy."""
    try:
        names = {path.name for path in root.iterdir()} if root.exists() else set()
    except OSError as error:
        raise WarehouseError.cannot_read(root, error) from error
    is_unfinished = any(name.startswith(UNFINISHED) for name in names)
    if is_unfinished and all(
        name == DATA_DIRECTORY or name.startswith(UNFINISHED) for name in names
    ):
        _clear(root)
    elif names:
        raise refuse_copy(f"`{root}` is not empty.", "name one that is empty or does not exist yet")


def _empty_server(url: str) -> Catalog:
    """Return the catalog of an empty database on a server."""
    catalog = Catalog(url)
    try:
        if catalog.exists():
            place = redact_password(url)
            raise refuse_copy(f"`{place}` holds a warehouse already.", "name an empty database")
    except BaseException:
        catalog.close()
        raise
    return catalog


def refuse_copy(text: str, cure: str) -> WarehouseError:
    """Return the error of a place that is not empty."""
    return WarehouseError([Diagnostic("C0960", text, None, f"{cure}; nothing was changed")])


def _clear(root: Place) -> None:
    """Remove an unfinished copy."""
    with suppress(OSError):
        remove_tree(root / DATA_DIRECTORY)
    for path in root.glob(f"{UNFINISHED}*"):
        path.unlink(missing_ok=True)


def _copy(
    source: Warehouse,
    root: Place,
    server: Catalog | None,
    console: Console,
    beat: Callable[[], None],
    *,
    is_branch: bool,
) -> CopyResult | None:
    """Copy everything; None if files were removed meanwhile, so that it has to be repeated."""
    console.enter(Phase.COPY)
    console.progress("copying the catalog")
    _clear(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseError.cannot_write(root, error) from error
    with _unfinished_catalog(root) as unfinished:
        return _copy_into(source, root, unfinished, server, console, beat=beat, is_branch=is_branch)


@contextmanager
def _unfinished_catalog(root: Place) -> Iterator[Path]:
    """Give the file of a catalog that is being filled, and mark the place as unfinished."""
    mark = root / UNFINISHED
    if isinstance(mark, Path):
        yield mark
        return
    try:
        mark.write_bytes(b"")
    except OSError as error:
        raise WarehouseError.cannot_write(mark, error) from error
    with tempfile.TemporaryDirectory(prefix="corollary-copy-") as directory:
        yield Path(directory) / UNFINISHED


def _copy_into(
    source: Warehouse,
    root: Place,
    unfinished: Path,
    server: Catalog | None,
    console: Console,
    *,
    beat: Callable[[], None],
    is_branch: bool,
) -> CopyResult | None:
    """Copy everything to a place; the catalog is filled in a file."""
    batch = durable_files.FileBatch(root)
    catalog = Catalog(str(unfinished))
    try:
        catalog.create(is_empty=True)
        _copy_rows(source.catalog, catalog, NOT_BRANCHED if is_branch else NOT_COPIED)
        if is_branch:
            _note_origin(catalog, source)
        found = dict(expand_lists(source.root, dict(_referenced_files(catalog))))
        progress = console.progress("copying files")
        for at, (path, checksum) in enumerate(found.items(), 1):
            progress.stage = f"{at:,} of {len(found):,}"
            beat()
            try:
                if is_branch:
                    batch.link(source.root / path, path)
                else:
                    progress.advance(bytes=_copy_file(source.root / path, root / path, checksum))
            except WarehouseError:
                named = dict(_referenced_files(source.catalog))
                if path in dict(expand_lists(source.root, named)):
                    raise  # still referenced, so it is damaged
                return None
        batch.sync()
        latest = catalog.latest_commit()
        oldest = max(1, int(catalog.meta("oldest")))
        if server is not None:
            if isinstance(root, ObjectPath):
                # Before the catalog: what is marked as unfinished may be removed by the next copy.
                (root / UNFINISHED).unlink(missing_ok=True)
            server.create(is_empty=True)
            _copy_rows(catalog, server, NOT_COPIED)
    finally:
        catalog.close()
    if server is None:
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.rename(unfinished.with_name(CATALOG_FILE))
    else:
        unfinished.unlink()
    durable_files.sync_path(root)
    return CopyResult(0 if latest is None else latest.number, oldest, len(found), progress.bytes)


def _copy_file(source: Place, target: Place, checksum: str) -> int:
    """Copy a file durably if its checksum is right; return its size."""
    data = durable_files.memory_map(source)
    if durable_files.checksum_of(memoryview(data)) != checksum:
        raise WarehouseError.damaged(source)
    durable_files.write(target.parent, target.name, memoryview(data))
    return int(data.size)


# --- the catalog ---------------------------------------------------------------------------------


def _note_origin(catalog: Catalog, source: Warehouse) -> None:
    """Note in the catalog of a branch what it is a branch of."""
    assert isinstance(source.root, Path)
    latest, location = catalog.latest_commit(), source.catalog.location
    is_directory = (source.root / CATALOG_FILE).exists()
    origin = {
        "warehouse": str(source.root.absolute()) if is_directory else redact_password(location),
        "commit": 0 if latest is None else latest.number,
    }
    with catalog.write_transaction() as writing:
        catalog.replace_meta(writing, ORIGIN_KEY, json.dumps(origin))


def _copy_rows(source: Catalog, target: Catalog, omitted: Collection[str]) -> None:
    """Copy all rows of a catalog, but of some tables, into one that has the tables without rows.

    Tables that not every catalog has are created there if the source has them.
    """
    with source.read_transaction() as reading, target.write_transaction() as writing:
        tables = [each for each in schema.TABLES if each not in omitted]
        there = reading.tables()
        for table, create in OPTIONAL_TABLES.items():
            if table in there:
                writing.execute(create)
                tables.append(table)
        for table in tables:
            query = f"SELECT * FROM {table}"  # noqa: S608 - a name of ours
            for batch in reading.batches(query, COPY_BATCH_ROWS):
                writing.insert(table, [_copied(table, row._asdict()) for row in batch])


def _copied(table: str, row: dict[str, Any]) -> dict[str, Any]:
    match table:
        case "corollary_changes":  # SQLite has 0 and 1
            return {**row, "is_full": bool(row["is_full"])}
        case "corollary_outbox":  # claims are made on alerts of the original
            return {**row, "claim": None, "claimed": None}
        case _:
            return row


def _referenced_files(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the files that a catalog references, each with its checksum."""
    for query in (
        "SELECT path, checksum FROM corollary_changes WHERE path IS NOT NULL",
        "SELECT path, checksum FROM corollary_snapshots",
        "SELECT path, checksum FROM corollary_indexes",
    ):
        with catalog.read_transaction() as connection:
            rows = connection.rows(query)
        yield from rows
