"""Tables in several files, of bounded size or each written by the process that has its tuples.

The catalog references one file, the list of the others: its name ends in `.parts`, and it gives the
rows, size and checksum of each file. The names of the files begin with that of the list; those that
tasks write end in a random token, different for each attempt to write one. So a file that no list
names, because a task was lost or run twice, is an orphan that `gc` removes.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from corollary.core.engine import TableHandle, TaskPool, slice_table
from corollary.data_class import dataclass
from corollary.errors import WarehouseError
from corollary.warehouse.files import LIST_SUFFIX, durable_files
from corollary.warehouse.files.column_bounds import statistics_of
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.files.file_rows import FileRows, RowsFile
from corollary.warehouse.files.parquet_encoding import ROW_GROUP_ROWS, from_parquet, to_parquet
from corollary.warehouse.files.places import Place

FILE_MAX_ROWS = 4 * ROW_GROUP_ROWS
"""The maximum rows of a file: to remove one tuple of a published table, one file is rewritten."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that holds some of the tuples; the list holds these fields as JSON."""

    name: str
    rows: int
    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class TableFileWriter:
    """Writes files of a table; it is pickled, and called in the process that has the tuples.

    Attributes:
        root: the place of the warehouse.
        path: the list that will name the files.
        to_rows: turns tuples into the rows to write.
        has_statistics: whether readers of a published table may read the files.
    """

    root: Place
    path: str
    to_rows: Callable[[pa.Table], pa.Table]
    has_statistics: bool = False

    def __call__(self, rows: pa.Table) -> list[TableFile] | None:
        """Write some tuples; return None if this process does not see the directory."""
        directory = (self.root / self.path).parent
        if isinstance(directory, Path) and not directory.is_dir():
            return None
        files = FileBatch(directory)
        written = [
            _write_file(
                files,
                f"{Path(self.path).name}-{secrets.token_hex(8)}.parquet",
                self.to_rows(each),
                has_statistics=self.has_statistics,
            )
            for each in slice_table(rows, FILE_MAX_ROWS)
        ]
        files.sync()
        return written


def _write_file(files: FileBatch, name: str, rows: pa.Table, *, has_statistics: bool) -> TableFile:
    data = to_parquet(rows, statistics_of(rows) if has_statistics else None)
    return TableFile(name, rows.num_rows, data.size, files.write(name, data))


def write_table(
    files: FileBatch, path: str, slices: Iterable[pa.Table], *, has_statistics: bool = False
) -> tuple[str, str]:
    """Write the rows of a table, one file for each slice; return path and checksum.

    Args:
        files: what the files belong to.
        path: of the table in the warehouse, without a suffix. One slice becomes the file itself,
            several become files that a list names.
        slices: the rows; each slice is in memory only until it is written.
        has_statistics: whether readers of a published table may read the files.
    """
    iterator = iter(slices)
    first, second = next(iterator), next(iterator, None)
    if second is None:
        whole = f"{path}.parquet"
        return whole, _write_file(files, whole, first, has_statistics=has_statistics).checksum
    path += LIST_SUFFIX
    written = [
        _write_file(files, f"{path}-{at}.parquet", each, has_statistics=has_statistics)
        for at, each in enumerate(chain((first, second), iterator))
    ]
    return path, _write_list(files, path, written)


def write_distributed(
    files: FileBatch,
    path: str,
    contents: Iterable[tuple[TableHandle, Callable[[pa.Table], pa.Table]]],
    *,
    has_statistics: bool = False,
) -> tuple[str, str] | None:
    """Write tuples in the processes that have them, and the list; return its path and checksum.

    Returns None if this process does not see the files, because the directory of the warehouse is
    not shared with the others.

    Args:
        files: what the files belong to.
        path: of the table in the warehouse, without a suffix.
        contents: handles on tuples, each with the function that makes the rows to write of them.
        has_statistics: whether readers of a published table may read the files.
    """
    root, path = files.root, path + LIST_SUFFIX
    directory = (root / path).parent
    durable_files.make_directory(directory)
    parts = [
        part
        for handle, to_rows in contents
        for part in handle.map_partitions(
            TableFileWriter(root.absolute(), path, to_rows, has_statistics)
        )
    ]
    written = [each for part in parts for each in part or ()]
    found = [each for each in written if durable_files.has_size(directory / each.name, each.size)]
    if len(found) < len(written) or None in parts:
        for each in found:
            (directory / each.name).unlink()
        return None
    return path, _write_list(files, path, found)


def link_table(files: FileBatch, source: str, checksum: str, path: str) -> tuple[str, str]:
    """Give the files of a table second names, and write their list; return path and checksum.

    Args:
        files: what the second names belong to; the table is below the same root.
        source: the path of the table, with its suffix.
        checksum: of that file.
        path: of the new table, without a suffix.

    Raises:
        WarehouseError: a file is missing.
    """
    if not source.endswith(LIST_SUFFIX):
        whole = f"{path}.parquet"
        files.link(files.root / source, whole)
        return whole, checksum
    path += LIST_SUFFIX
    parts = _parts(durable_files.read(files.root, source, checksum))
    linked = [replace(each, name=f"{path}-{at}.parquet") for at, each in enumerate(parts)]
    for each, second in zip(parts, linked, strict=True):
        files.link(files.root / sibling_path(source, each.name), second.name)
    return path, _write_list(files, path, linked)


def link_rows(files: FileBatch, rows: FileRows, path: str) -> tuple[str, str]:
    """Give the files of rows second names, and write their list; return path and checksum.

    Args:
        files: what the second names belong to.
        rows: all rows of its files.
        path: of the new table, without a suffix.

    Raises:
        WarehouseError: a file is missing.
    """
    path += LIST_SUFFIX
    linked = []
    for at, each in enumerate(rows.files):
        name = f"{path}-{at}.parquet"
        files.link(each.root / each.path, name, is_synced=False)
        size = (files.root / name).stat().st_size
        linked.append(TableFile(name, each.rows, size, each.checksum))
    return path, _write_list(files, path, linked)


def _write_list(files: FileBatch, path: str, written: list[TableFile]) -> str:
    named = [asdict(replace(each, name=Path(each.name).name)) for each in written]
    return files.write(path, json.dumps(named).encode())


def read_table(root: Place, path: str, checksum: str) -> pa.Table:
    """Return the tuples of all files of a list, or of a single file.

    Raises:
        WarehouseError: a file is missing, or not what was written.
    """
    data = durable_files.read(root, path, checksum)
    if not path.endswith(LIST_SUFFIX):
        return from_parquet(data)
    tables, parts = [], _parts(data)
    named = [(sibling_path(path, each.name), each.checksum) for each in parts]
    for each, content in zip(parts, durable_files.read_several(root, named), strict=True):
        table = from_parquet(content)
        if table.num_rows != each.rows and table.num_columns:
            raise WarehouseError.damaged(root / sibling_path(path, each.name))
        tables.append(table)
    return pa.concat_tables(tables)


def table_files(root: Place, path: str, rows: int, checksum: str) -> list[RowsFile]:
    """Return the Parquet files of a table with so many rows, unread.

    Raises:
        WarehouseError: the list of files is missing, or not what was written.
    """
    if not path.endswith(LIST_SUFFIX):
        return [RowsFile(root.absolute(), path, rows, checksum)]
    parts = _parts(durable_files.read(root, path, checksum))
    return [
        RowsFile(root.absolute(), sibling_path(path, each.name), each.rows, each.checksum)
        for each in parts
    ]


def checked_files(
    root: Place, path: str, checksum: str, tasks: TaskPool | None = None
) -> list[Place]:
    """Return the Parquet files of a table, all of them as they were written.

    Args:
        root: the directory of the warehouse.
        path: of the table.
        checksum: of that file.
        tasks: where several files are read to be compared with their checksums, if not here.

    Raises:
        WarehouseError: a file is missing, or not what was written.
    """
    data = durable_files.read(root, path, checksum)
    if not path.endswith(LIST_SUFFIX):
        return [root / path]
    named = [(sibling_path(path, each.name), each.checksum) for each in _parts(data)]
    if tasks is not None:
        tasks.run("compare checksums", FileCheck(root.absolute()), named)
    else:
        for _ in durable_files.read_several(root, named):
            pass
    return [root / name for name, _ in named]


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Compares files with their checksums; it is pickled, and called in tasks."""

    root: Place

    def __call__(self, file: tuple[str, str]) -> None:
        """Compare one.

        Raises:
            WarehouseError: it is missing, or not what was written.
        """
        durable_files.read(self.root, *file)


def expand_lists(root: Place, referenced: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield files with their checksums, and after each list the files that it names.

    The files of a list that cannot be read are unknown, and left out.
    """
    for path, checksum in referenced.items():
        found = listed_files(root, path) or ()  # before the caller may remove the list
        yield path, checksum
        for each in found:
            yield sibling_path(path, each.name), each.checksum


def listed_files(root: Place, path: str) -> list[TableFile] | None:
    """Return the files that a list names; none for other files, None for an unreadable list."""
    if not path.endswith(LIST_SUFFIX):
        return []
    try:
        return _parts(durable_files.memory_map(root / path))
    except (WarehouseError, ValueError, TypeError):
        return None


def find_lists(root: Place, paths: Collection[str], existing: Collection[str]) -> dict[str, str]:
    """Return for each file that a list names, by path, the list.

    Args:
        root: the place of the warehouse.
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


def total_bytes(root: Place, path: str) -> int:
    """Return the bytes of a file, and of the files that it lists.

    Raises:
        WarehouseError: it is missing.
    """
    try:
        own = (root / path).stat().st_size
    except OSError as error:
        raise WarehouseError.cannot_read(root / path, error) from error
    return own + sum(each.size for each in listed_files(root, path) or ())


def sibling_path(path: str, name: str) -> str:
    """Return the path of a file in the directory of another."""
    return str(Path(path).with_name(name))


def _parts(data: pa.Buffer) -> list[TableFile]:
    return [TableFile(**each) for each in json.loads(data.to_pybytes())]
