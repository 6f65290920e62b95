"""Index files that tasks have written: kept in a warehouse, and fetched from an object store.

In a directory they get a second name. In an object store, tasks put them there, and copy them to a
directory that all tasks see when the warehouse is opened: the process of the database handles
names only, and nothing is sorted again.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.core.engine import Engine, Item, TaskPool
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog_rows import StoredIndex
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.files.file_rows import StagingDirectory
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place

if TYPE_CHECKING:
    import pyarrow as pa


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


def restore_index(
    engine: Engine, files: "Mapping[str, pa.Buffer]", places: Mapping[str, Place]
) -> set[str]:
    """Load relations from the files of an index; return those that were in it.

    Those that tasks have written are copied by tasks if they are objects; without tasks nobody
    would read them.

    Raises:
        WarehouseError: an object is missing or cannot be read, or a file is damaged.
    """
    found = {name: each for name, each in places.items() if isinstance(each, Path)}
    objects = {name: each for name, each in places.items() if isinstance(each, ObjectPath)}
    tasks = engine.tasks
    if tasks is None or not objects:
        return engine.restore(files, found)
    directory = StagingDirectory(tasks)  # until the engine has names of its own for them
    copies = {name: directory.path / name for name in objects}
    copied = list(zip(objects.values(), copies.values(), strict=True))
    tasks.run("fetch index files", fetch_object, copied)
    return engine.restore(files, found | copies)


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
