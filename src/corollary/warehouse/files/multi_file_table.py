"""Tables in several files, each written by the process that has its tuples.

The catalog references one file, the list of the others: its name ends in `.parts`, and it gives the
rows, size and checksum of each file. The names of the files begin with that of the list and end in
a random token, different for each attempt to write one. So a file that no list names, because a
task was lost or run twice, is an orphan that `gc` removes.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.errors import WarehouseError
from corollary.warehouse.files import LIST_SUFFIX, durable_files


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that holds some of the tuples; the list holds these fields as JSON."""

    name: str
    rows: int
    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class TableFileWriter:
    """Writes one file of a table; it is pickled, and called in the process that has the tuples.

    Attributes:
        root: the directory of the warehouse.
        path: the list that will name the file.
        to_rows: turns tuples into the rows to write.
    """

    root: Path
    path: str
    to_rows: Callable[[pa.Table], pa.Table]

    def __call__(self, rows: pa.Table) -> TableFile | None:
        """Write some tuples; return None if this process does not see the directory."""
        directory = (self.root / self.path).parent
        if not directory.is_dir():
            return None
        name = f"{Path(self.path).name}-{secrets.token_hex(8)}.parquet"
        data = durable_files.to_parquet(self.to_rows(rows))
        return TableFile(name, rows.num_rows, len(data), durable_files.write(directory, name, data))


def write_table(
    root: Path, path: str, handle: TableHandle, to_rows: Callable[[pa.Table], pa.Table]
) -> str | None:
    """Write tuples in the processes that have them, and the list; return the list's checksum.

    Returns None if this process does not see the files, because the directory of the warehouse is
    not shared with the others.
    """
    directory = (root / path).parent
    durable_files.make_directory(directory)
    parts = handle.map_partitions(TableFileWriter(root.absolute(), path, to_rows))
    found = [
        each
        for each in parts
        if each is not None and durable_files.has_size(directory / each.name, each.size)
    ]
    if len(found) < len(parts):
        for each in found:
            (directory / each.name).unlink()
        return None
    data = json.dumps([asdict(each) for each in found]).encode()
    return durable_files.write(root, path, data)


def read_table(root: Path, path: str, checksum: str) -> pa.Table:
    """Return the tuples of all files of a list, or of a single file.

    Raises:
        WarehouseError: a file is missing, or not what was written.
    """
    data = durable_files.read(root, path, checksum)
    if not path.endswith(LIST_SUFFIX):
        return durable_files.from_parquet(data)
    tables = []
    for each in _parts(data):
        name = sibling_path(path, each.name)
        table = durable_files.from_parquet(durable_files.read(root, name, each.checksum))
        if table.num_rows != each.rows and table.num_columns:
            raise WarehouseError.damaged(root / name)
        tables.append(table)
    return pa.concat_tables(tables)


def expand_lists(root: Path, referenced: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield files with their checksums, and after each list the files that it names.

    The files of a list that cannot be read are unknown, and left out.
    """
    for path, checksum in referenced.items():
        found = listed_files(root, path) or ()  # before the caller may remove the list
        yield path, checksum
        for each in found:
            yield sibling_path(path, each.name), each.checksum


def listed_files(root: Path, path: str) -> list[TableFile] | None:
    """Return the files that a list names; none for other files, None for an unreadable list."""
    if not path.endswith(LIST_SUFFIX):
        return []
    try:
        return _parts(durable_files.memory_map(root / path))
    except (WarehouseError, ValueError, TypeError):
        return None


def find_lists(root: Path, paths: Collection[str], existing: Collection[str]) -> dict[str, str]:
    """Return for each file that a list names, by path, the list.

    Args:
        root: the directory of the warehouse.
        paths: the files that the catalog references.
        existing: all existing files. For an unreadable list, every file that may belong to it does,
            so that `gc` removes nothing that a repair could still need.
    """
    found: dict[str, str] = {}
    for path in paths:
        parts = listed_files(root, path)
        if parts is None:
            found |= {each: path for each in existing if each.startswith(f"{path}-")}
        else:
            found |= {sibling_path(path, each.name): path for each in parts}
    return found


def total_bytes(root: Path, path: str) -> int:
    """Return the bytes of a file, and of the files that it lists.

    Raises:
        WarehouseError: it is missing.
    """
    own = int(durable_files.memory_map(root / path).size)
    return own + sum(each.size for each in listed_files(root, path) or ())


def sibling_path(path: str, name: str) -> str:
    """Return the path of a file in the directory of another."""
    return str(Path(path).with_name(name))


def _parts(data: pa.Buffer) -> list[TableFile]:
    return [TableFile(**each) for each in json.loads(data.to_pybytes())]
