"""Orphan files: data files that no row of the catalog references, nor ever will.

Writers that died leave them, and history that was dropped. A writer inserts its intent before its
first file, and its commit deletes the intent and references the files in one transaction. So a file
that existed before the catalog was read, without intent and without reference, stays an orphan.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath

from corollary.data_class import dataclass
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.copy_lease import COPY_PREFIX
from corollary.warehouse.files import LIST_SUFFIX
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, files_below, remove_files
from corollary.warehouse.warehouse_catalog import DATA_DIRECTORY

_REFERENCED = {
    "changes": "SELECT path FROM corollary_changes WHERE path IS NOT NULL",
    "snapshots": "SELECT path FROM corollary_snapshots",
    "index": "SELECT path FROM corollary_indexes",
}
"""The queries for referenced files, by what the files are called."""


@dataclass(frozen=True, slots=True)
class DataFileListing:
    """The existing data files, and what the catalog references.

    Attributes:
        directories: the directories that writers have made.
        sizes: the bytes of each existing file, by its path in the warehouse.
        referenced: the kind of each file that the catalog references.
        intents: the intents of running writers.
    """

    directories: frozenset[str]
    sizes: dict[str, int]
    referenced: dict[str, str]
    intents: frozenset[str]

    @property
    def in_flight(self) -> set[str]:
        """The files of running writers."""
        return {path for path in self.sizes if PurePosixPath(path).parts[1] in self.intents}

    @property
    def has_copy_lease(self) -> bool:
        """Whether a process copies files, so that none may be removed."""
        return any(writer.startswith(COPY_PREFIX) for writer in self.intents)

    @property
    def orphans(self) -> set[str]:
        """The files that nothing references."""
        return self.sizes.keys() - self.referenced.keys() - self.in_flight


def list_data_files(root: Place, catalog: Catalog) -> DataFileListing:
    """Return the data files of a warehouse, and what the catalog references."""
    # Files before the catalog: a file written in between is not listed, so never an orphan.
    sizes, directories = _existing(root)
    named: dict[str, str] = {}
    with catalog.read_transaction() as connection:
        for kind, query in _REFERENCED.items():
            named |= dict.fromkeys(connection.column(query), kind)
        named |= _listed(root, named, sizes)
        writers = frozenset(connection.column("SELECT id FROM corollary_intents"))
    return DataFileListing(directories, sizes, named, writers)


def _existing(root: Place) -> tuple[dict[str, int], frozenset[str]]:
    """Return the bytes of each data file, and the directories."""
    data = root / DATA_DIRECTORY
    if isinstance(data, ObjectPath):
        return {
            f"{DATA_DIRECTORY}/{each.name}": each.size for each in files_below(data)
        }, frozenset()
    directories = [each for each in data.iterdir() if each.is_dir()] if data.exists() else []
    sizes: dict[str, int] = {}
    for directory in directories:
        with suppress(FileNotFoundError):  # another `gc` is running as well
            for path in directory.iterdir():
                with suppress(FileNotFoundError):
                    sizes[str(path.relative_to(data.parent))] = path.stat().st_size
    return sizes, frozenset(each.name for each in directories)


def _listed(root: Place, named: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the kind of each file that a list names."""
    lists = [path for path in named if path.endswith(LIST_SUFFIX)]
    if not lists:
        return {}
    from corollary.warehouse.files.multi_file_table import find_lists  # imports Arrow

    return {part: named[owner] for part, owner in find_lists(root, lists, sizes).items()}


def remove_orphans(root: Place, found: DataFileListing) -> None:
    """Remove the orphans of a listing, and directories that are then empty.

    Raises:
        WarehouseError: one cannot be removed.
    """
    assert not found.has_copy_lease, "files are being copied"
    try:
        remove_files(root, sorted(found.orphans))
        for name in sorted(found.directories - found.intents):
            directory = root / DATA_DIRECTORY / name
            with suppress(FileNotFoundError):
                if not any(directory.iterdir()):
                    directory.rmdir()
    except OSError as error:
        raise WarehouseError.cannot_write(error.filename or root, error) from error
