"""Index files that tasks have written: kept in a warehouse, and fetched from an object store.

In a directory they get a second name. In an object store, tasks put them there once: the indexes of
later folds name the same objects. When the warehouse is opened, the engine gets their names; tasks
fetch them when something is looked up.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.core.engine import Engine, Item, TaskPool
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog_rows import StoredIndex
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place

if TYPE_CHECKING:
    import pyarrow as pa


def keep_files(
    files: FileBatch,
    written: Mapping[str, Place],
    tasks: TaskPool | None,
    known: Mapping[str, StoredIndex],
) -> list[StoredIndex]:
    """Keep files in a warehouse, given by the names that they get there.

    Args:
        files: what they belong to.
        written: where each of them is now. An object that the last index has need not be there.
        tasks: what does the work, if there are any.
        known: by name those of the last index. Names are unique, and files never modified: so a
            known file is neither read nor put again.

    Raises:
        WarehouseError: one cannot be written.
    """
    root = files.root
    kept = {path: known.get(path.rpartition("/")[2]) for path in written}
    new = [path for path, found in kept.items() if found is None]
    if isinstance(root, Path):
        for path, data in written.items():
            files.link(data, path, is_synced=False)
        linked = [root.absolute() / path for path in new]
        checksums = _run(tasks, "compute checksums", durable_files.checksum_of_file, linked)
        same = [StoredIndex(path, each.checksum) for path, each in kept.items() if each is not None]
    else:
        put = [(root / path, written[path]) for path in new]
        checksums = _run(tasks, "store index files", put_object, put)
        same = [each for each in kept.values() if each is not None]
    return [*same, *(StoredIndex(path, each) for path, each in zip(new, checksums, strict=True))]


def restore_index(
    engine: Engine, files: "Mapping[str, pa.Buffer]", places: Mapping[str, Place]
) -> set[str]:
    """Load relations from the files of an index; return those that were in it.

    Of those that tasks have written and that are objects, it is only seen that they are there: some
    requests that list a thousand each.

    Raises:
        WarehouseError: an object is missing, or a file is damaged.
    """
    objects = {each for each in places.values() if isinstance(each, ObjectPath)}
    if engine.reads_partitions:
        for directory in {each.parent for each in objects}:
            try:
                objects -= {path for path, _ in directory.entries()}
            except OSError as error:
                raise WarehouseError.cannot_read(directory, error) from None
        if objects:
            missing = FileNotFoundError(errno.ENOENT, "there is no such object")
            raise WarehouseError.cannot_read(min(objects), missing)
    return engine.restore(files, places)


def put_object(item: tuple[ObjectPath, Place]) -> str:
    """Put a file, or what another object has, into an object store, in a task; return its checksum.

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


def _run(
    tasks: TaskPool | None, title: str, function: Callable[[Item], str], items: Sequence[Item]
) -> list[str]:
    """Return the results of a function for items, by tasks if there are any."""
    return (
        [function(each) for each in items] if tasks is None else tasks.run(title, function, items)
    )
