"""Index files that tasks have written: kept in a warehouse, and fetched from an object store.

In a directory they get a second name. In an object store, tasks put them there, and copy them to a
directory that all tasks see when the warehouse is opened: the process of the database handles
names only, and nothing is sorted again.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corollary.core.engine import Item, TaskPool
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog_rows import StoredIndex
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.files.file_rows import StagingDirectory
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place


def keep_files(
    files: FileBatch, written: Mapping[str, Path], tasks: TaskPool | None
) -> list[StoredIndex]:
    """Keep files in a warehouse, given by the names that they get there.

    Raises:
        WarehouseError: one cannot be written.
    """
    root = files.root
    if isinstance(root, Path):
        for path, data in written.items():
            files.link(data, path, is_synced=False)
        linked = [root.absolute() / path for path in written]
        checksums = _run(tasks, "compute checksums", durable_files.checksum_of_file, linked)
    else:
        put = [(root / path, data) for path, data in written.items()]
        checksums = _run(tasks, "store index files", put_object, put)
    return [StoredIndex(path, each) for path, each in zip(written, checksums, strict=True)]


@contextmanager
def fetched_files(places: Mapping[str, Place], tasks: TaskPool | None) -> Iterator[dict[str, Path]]:
    """Let tasks copy objects to files, which are there inside; those of a directory stay.

    Without tasks there are no objects: nobody would read them.

    Raises:
        WarehouseError: an object is missing, or cannot be read.
    """
    found = {name: each for name, each in places.items() if isinstance(each, Path)}
    objects = {name: each for name, each in places.items() if isinstance(each, ObjectPath)}
    if tasks is None or not objects:
        yield found
        return
    directory = StagingDirectory(tasks)
    copies = {name: directory.path / name for name in objects}
    tasks.run(
        "fetch index files", fetch_object, list(zip(objects.values(), copies.values(), strict=True))
    )
    yield found | copies
    del directory


def put_object(item: tuple[ObjectPath, Path]) -> str:
    """Put a file into an object store, in a task; return its checksum.

    Raises:
        WarehouseError: it cannot be put.
    """
    target, path = item
    data = durable_files.memory_map(path)
    try:
        target.create(data)
    except OSError as error:
        raise WarehouseError.cannot_write(target, error) from None
    return durable_files.checksum_of(data)


def fetch_object(item: tuple[ObjectPath, Path]) -> None:
    """Copy an object to a file, in a task; one that runs twice copies the same.

    Raises:
        WarehouseError: it is missing, or cannot be read.
    """
    source, path = item
    try:
        data = source.read_buffer()
    except OSError as error:
        raise WarehouseError.cannot_read(source, error) from None
    written = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    written.write_bytes(data)
    written.rename(path)


def _run(
    tasks: TaskPool | None, title: str, function: Callable[[Item], str], items: Sequence[Item]
) -> list[str]:
    """Return the results of a function for items, by tasks if there are any."""
    return (
        [function(each) for each in items] if tasks is None else tasks.run(title, function, items)
    )
