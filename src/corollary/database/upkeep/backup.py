"""Copies of a warehouse, made while others commit: backups, and what is made of them again.

the catalog's rows, as they are at one moment → the files they speak of, checksums compared → the
copy gets its catalog

A copy without a catalog is none: whatever stops a copy half-way leaves nothing that could be taken
for a warehouse. Published tables are not copied, since they are made anew from the relations.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corollary.console import Console, SilentConsole
from corollary.errors import ConflictError, Diagnostic, WarehouseError, without_password
from corollary.warehouse import files
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.copying import copy_rows, named_files
from corollary.warehouse.holding import held
from corollary.warehouse.parts import with_parts
from corollary.warehouse.warehouse import CATALOG, DATA, Warehouse, located

UNFINISHED = "catalog.unfinished"
TRIES = 5
"""So often a copy begins again because files have been taken away meanwhile."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied."""

    commit: int
    oldest: int
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return it as `backup` and `restore` print it."""
        return {
            "commit": self.commit,
            "oldest": self.oldest,
            "files": self.files,
            "bytes": self.bytes,
        }


def copy(source: Warehouse, place: str | Path, console: Console | None = None) -> Copied:
    """Copy a warehouse to a place where nothing is.

    Args:
        source: the warehouse.
        place: a directory that is empty or not there, or a database on PostgreSQL without a
            warehouse, `postgresql://user@host/name?data=DIRECTORY`.
        console: where progress is shown.

    Raises:
        WarehouseError: `C0960`, the place is not empty; or a file is damaged or cannot be written.
    """
    console = console or SilentConsole()
    root, url = located(str(place))
    _demand_apart(source.root, root)
    _demand_empty(root)
    server = None if url is None else _empty_server(url)
    try:
        for _ in range(TRIES):
            with held(source.catalog) as beat:
                copied = _copy(source, root, server, console, beat)
            if copied is not None:
                return copied
        raise ConflictError("files are taken away faster than they are copied; nothing was copied")
    except BaseException:
        _clear(root)
        raise
    finally:
        console.done()
        if server is not None:
            server.close()


def _demand_apart(source: Path, target: Path) -> None:
    if target.resolve().is_relative_to(source.resolve()):
        raise _refused(f"`{target}` is in the warehouse itself.", "name a directory outside of it")


def _demand_empty(root: Path) -> None:
    """Refuse a directory that holds something else than a copy that was not finished."""
    try:
        names = {path.name for path in root.iterdir()} if root.exists() else set()
    except OSError as error:
        raise WarehouseError.cannot_read(root, error) from error
    is_ours = any(name.startswith(UNFINISHED) for name in names)
    if is_ours and all(name == DATA or name.startswith(UNFINISHED) for name in names):
        _clear(root)
    elif names:
        raise _refused(f"`{root}` is not empty.", "name a directory that is empty or not there yet")


def _empty_server(url: str) -> Catalog:
    """Return the catalog on a server, in which there is nothing."""
    catalog = Catalog(url)
    try:
        if catalog.exists():
            place = without_password(url)
            raise _refused(f"`{place}` holds a warehouse already.", "name an empty database")
    except BaseException:
        catalog.close()
        raise
    return catalog


def _refused(text: str, cure: str) -> WarehouseError:
    return WarehouseError([Diagnostic("C0960", text, None, f"{cure}; nothing was changed")])


def _clear(root: Path) -> None:
    """Take away what is there of an unfinished copy."""
    for path in root.glob(f"{UNFINISHED}*"):
        path.unlink(missing_ok=True)
    shutil.rmtree(root / DATA, ignore_errors=True)


def _copy(
    source: Warehouse,
    root: Path,
    server: Catalog | None,
    console: Console,
    beat: Callable[[], None],
) -> Copied | None:
    """Copy everything; None if files have gone meanwhile, so that it has to be done again."""
    console.progress("copying the catalog")
    _clear(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseError.cannot_write(root, error) from error
    unfinished = root / UNFINISHED
    catalog = Catalog.at(unfinished)
    try:
        catalog.create(is_bare=True)
        copy_rows(source.catalog, catalog)
        found = dict(with_parts(source.root, dict(named_files(catalog))))
        total = 0
        for at, (path, checksum) in enumerate(found.items(), 1):
            console.progress(f"copying files, {at:,} of {len(found):,}")
            beat()
            try:
                total += _copy_file(source.root / path, root / path, checksum)
            except WarehouseError:
                named = dict(named_files(source.catalog))
                if path in dict(with_parts(source.root, named)):
                    raise
                return None
        latest = catalog.latest()
        oldest = max(1, int(catalog.meta("oldest")))
        if server is not None:
            server.create(is_bare=True)
            copy_rows(catalog, server)
    finally:
        catalog.close()
    if server is None:
        _force(unfinished)
        unfinished.rename(root / CATALOG)
    else:
        unfinished.unlink()
    files.force_directory(root)
    return Copied(0 if latest is None else latest.number, oldest, len(found), total)


def _copy_file(source: Path, target: Path, checksum: str) -> int:
    """Copy a file durably, if it is what was written; return its size."""
    data = files.mapped(source)
    if files.checksum_of(memoryview(data)) != checksum:
        raise WarehouseError.is_damaged(source)
    files.write(target.parent, target.name, memoryview(data))
    return int(data.size)


def _force(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
