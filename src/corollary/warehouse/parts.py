"""Tables in several files, each written where its tuples are, by whatever process has them.

The catalog speaks of one file, the list of the others: it has a name that ends in `.parts`, and
says how many rows each part holds, and its checksum. The names of the parts begin with that of the
list, and go on with something that no other attempt to write it has. So a part that no list names,
because a task was lost or done twice, is a file that nobody speaks of.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from corollary.core.engine import Kept
from corollary.errors import WarehouseError
from corollary.warehouse import files

LIST = ".parts"


@dataclass(frozen=True, slots=True)
class Part:
    """A file that holds some of the tuples."""

    name: str
    rows: int
    size: int
    checksum: str


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes a part of a table; it is pickled, and called wherever the tuples are.

    Attributes:
        root: the directory of the warehouse.
        path: the list that will name the part.
        shape: makes of the tuples what is written.
    """

    root: Path
    path: str
    shape: Callable[[pa.Table], pa.Table]

    def __call__(self, rows: pa.Table) -> Part | None:
        """Write some tuples; None if the directory of the list is not seen from here."""
        directory = (self.root / self.path).parent
        if not directory.is_dir():
            return None
        name = f"{Path(self.path).name}-{secrets.token_hex(8)}.parquet"
        data = files.parquet_bytes(self.shape(rows))
        return Part(name, rows.num_rows, len(data), files.write(directory, name, data))


def write(root: Path, path: str, kept: Kept, shape: Callable[[pa.Table], pa.Table]) -> str | None:
    """Write tuples where they are, and a list of the parts; return the checksum of the list.

    None if the files are not in the directory of the warehouse as it is seen from here.
    """
    directory = (root / path).parent
    files.make_directory(directory)
    parts = kept.each(PartWriter(root.absolute(), path, shape))
    found = [
        each
        for each in parts
        if each is not None and files.has_size(directory / each.name, each.size)
    ]
    if len(found) < len(parts):
        for each in found:
            (directory / each.name).unlink()
        return None
    data = json.dumps([asdict(each) for each in found]).encode()
    return files.write(root, path, data)


def read(root: Path, path: str, checksum: str) -> pa.Table:
    """Return the tuples of all parts of a list, or of a file without parts.

    Raises:
        WarehouseError: a file is missing, or not what was written.
    """
    data = files.read(root, path, checksum)
    if not path.endswith(LIST):
        return files.parquet_table(data)
    tables = []
    for each in _parts(data):
        name = beside(path, each.name)
        table = files.parquet_table(files.read(root, name, each.checksum))
        if table.num_rows != each.rows and table.num_columns:
            raise WarehouseError.is_damaged(root / name)
        tables.append(table)
    return pa.concat_tables(tables)


def with_parts(root: Path, named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield files with their checksums, and behind each list the parts that it names.

    The parts of a list that cannot be read are not known.
    """
    for path, checksum in named.items():
        found = parts_of(root, path) or ()
        yield path, checksum
        for each in found:
            yield beside(path, each.name), each.checksum


def parts_of(root: Path, path: str) -> list[Part] | None:
    """Return what a list names, nothing for other files; None if the list cannot be read."""
    if not path.endswith(LIST):
        return []
    try:
        return _parts(files.mapped(root / path))
    except (WarehouseError, ValueError, TypeError):
        return None


def named_parts(root: Path, paths: Collection[str], there: Collection[str]) -> dict[str, str]:
    """Return the list of each part that lists name, by its path.

    Args:
        root: the directory of the warehouse.
        paths: the files that the catalog speaks of.
        there: all files; of a list that cannot be read, whatever may be a part is one.
    """
    found: dict[str, str] = {}
    for path in paths:
        parts = parts_of(root, path)
        if parts is None:
            found |= {each: path for each in there if each.startswith(f"{path}-")}
        else:
            found |= {beside(path, each.name): path for each in parts}
    return found


def size_of(root: Path, path: str) -> int:
    """Return the bytes of a file, with those of its parts.

    Raises:
        WarehouseError: it is missing.
    """
    own = int(files.mapped(root / path).size)
    return own + sum(each.size for each in parts_of(root, path) or ())


def beside(path: str, name: str) -> str:
    """Return the path of a file in the directory of another."""
    return str(Path(path).with_name(name))


def _parts(data: pa.Buffer) -> list[Part]:
    return [Part(**each) for each in json.loads(data.to_pybytes())]
