"""The place of all published tables, the lock of each table, and removing unused files.

Tables in a directory are locked by files beside them; for tables in an object store, the catalog's
server keeps the locks.

Files that no version references are left by a publication that was killed, and by versions that
have been superseded. The former are removed at once: the caller holds the table's lock, so that no
publication is about to reference them. The latter are removed after a while, as readers may still
use them.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock

from deltalake.exceptions import DeltaError

from corollary import fault
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, files_below, remove_files, remove_tree
from corollary.warehouse.formats import delta_entries
from corollary.warehouse.publishing.delta_schema import directory_name
from corollary.warehouse.publishing.published_files import CHANGE_DATA_DIRECTORY
from corollary.warehouse.publishing.published_table import PublishedTable, retention_of
from corollary.warehouse.warehouse_catalog import TABLES_DIRECTORY

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_TORN_ENTRY = re.compile(rf"{delta_entries.LOG_DIRECTORY}/[^/]*\.json#[^/]*")


class TableDirectory:
    """The place of all published tables.

    Args:
        root: the place of the warehouse.
        catalog: its catalog.

    Raises:
        WarehouseError: `C0943`, its path cannot be that of a Delta table.
    """

    def __init__(self, root: Place, catalog: Catalog) -> None:
        self.directory = root.absolute() / TABLES_DIRECTORY
        self.warehouse = catalog.meta("id")
        self._catalog = catalog
        if _ESCAPE.search(str(self.directory)):
            raise WarehouseError.of(
                "C0943",
                f"Nothing can be published in `{self.directory}`: `%` is an escape to Delta.",
                None,
                "move the warehouse to a directory without `%` in its name",
            )

    def table_path(self, relation: str) -> Place:
        """Return the place of a relation's table."""
        return self.directory / directory_name(relation)

    @contextmanager
    def lock(self, relation: str, *, is_read: bool = False) -> Iterator[PublishedTable]:
        """Give the table of a relation, locked against other publishers.

        Args:
            relation: the relation.
            is_read: whether it is only read, which a read-only disk allows.
        """
        path = self.table_path(relation)
        with self._locked(path.name, is_read=is_read):
            yield PublishedTable(path, self.warehouse, relation)

    @contextmanager
    def locked(self, relation: str, replica: str) -> Iterator[None]:
        """Hold the lock of a replica, for which other processes of this warehouse wait."""
        digest = hashlib.blake2b(replica.encode(), digest_size=8).hexdigest()
        with self._locked(f"{self.table_path(relation).name}-{digest}"):
            yield

    def remove_unused(self, keep_seconds: float | None) -> list[Place]:
        """Remove files that no version has referenced for so long, and old entries of logs."""
        removed: list[Place] = []
        found: list[Place] = [*self.directory.iterdir()] if self.directory.is_dir() else []
        for path in sorted(found, key=lambda each: each.name):
            if path.is_dir():
                with self._locked(path.name.partition(".")[0]):  # temporary ones are `NAME.token`
                    removed += clean_directory(path, self.warehouse, keep_seconds)
        return removed

    @contextmanager
    def _locked(self, name: str, *, is_read: bool = False) -> Iterator[None]:
        if isinstance(self.directory, ObjectPath):
            with self._catalog.advisory_lock(f"{self.warehouse} {name}"):
                try:
                    yield
                except OSError as error:
                    where = error.filename or self.directory
                    raise WarehouseError.cannot_write(where, error) from error
            return
        path = self.directory / f"{name}.lock"
        try:
            self.directory.mkdir(exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if not is_read:
                raise WarehouseError.cannot_write(self.directory, error) from error
            if not path.exists():  # nobody has published here, and nobody can
                yield
                return
            handle = os.open(path, os.O_RDONLY)
        # The lock is released when the handle is closed, also by the death of the process. The
        # file stays: removing it would let two processes hold locks on different files.
        try:
            flock(handle, LOCK_EX)
            yield
        except OSError as error:
            raise WarehouseError.cannot_write(error.filename or self.directory, error) from error
        finally:
            os.close(handle)


def clean_directory(directory: Place, warehouse: str, keep_seconds: float | None) -> list[Place]:
    """Remove the files of a table that no version needs that is kept, and old entries of its log.

    Returns what it has removed. A version is kept for as long as is said here, or by the table.

    A directory with a dot in its name is left over from replacing or removing a whole table, and
    `….json#1` is what `deltalake` leaves when it is killed. A table that cannot be read stays.
    """
    if "." in directory.name:
        remove_tree(directory)
        return [directory]
    # Before the log is read: nobody references a file later that is not referenced then.
    found = {each.name: each.modified for each in files_below(directory)}
    table = PublishedTable(directory, warehouse, "")
    has_log = bool(delta_entries.list_versions(table.log))
    now = time.time()
    try:
        if keep_seconds is None and has_log:
            keep_seconds = retention_of(table.open(), "delta.deletedFileRetentionDuration")
        since = now - (keep_seconds or 0)
        needed = _needed_files(table, found, since) if has_log else set()
    except (DeltaError, OSError, ValueError):
        return []
    change_data = f"{CHANGE_DATA_DIRECTORY}/"
    removed = sorted(
        name
        for name, modified in found.items()
        if (name.removeprefix(change_data).startswith(f"{warehouse}-") and name not in needed)
        or (_TORN_ENTRY.fullmatch(name) and modified < since)
    )
    for name in removed:
        fault.hit("during_gc")
        remove_files(directory, [name])
    cleaned = [directory / name for name in removed]
    if has_log:
        with suppress(DeltaError, ValueError):
            cleaned += table.expire_log(now)
    return cleaned


def _needed_files(table: PublishedTable, found: Mapping[str, float], since: float) -> set[str]:
    """Return the files of the newest version, and those that versions since a time speak of."""
    names = {uri.rpartition("/")[2] for uri in table.open().file_uris()}
    log = table.log
    for version in delta_entries.list_versions(log):
        path = delta_entries.entry_path(log, version)
        if found.get(f"{log.name}/{path.name}", since) >= since:
            names |= {
                each[kind]["path"]
                for each in delta_entries.read_actions(path)
                for kind in each.keys() & {"remove", "cdc"}
            }
    return names
