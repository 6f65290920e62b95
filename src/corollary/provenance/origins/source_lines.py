"""In which line of a source's files a row is, if the files are as they were when they were read.

All rows that are asked for are looked for at once: a file is parsed as sources parse it, and a word
for each row finds them. As long as every record has given a row, the number of the row is that of
the record; where a record is malformed, the file is parsed again in halves.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corollary.core.arrow import from_python
from corollary.core.logic import Value
from corollary.core.program import Directive, Relation
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK, GZIP_MAGIC, fingerprint_of
from corollary.warehouse.formats.dialect import Dialect, format_of
from corollary.warehouse.formats.record_blocks import count_lines
from corollary.warehouse.formats.record_index import index_records
from corollary.warehouse.row_words import row_words
from corollary.warehouse.sources import csv_file, json_file
from corollary.warehouse.sources.file_source import FileState, parse_file
from corollary.warehouse.sources.schema_drift import ExpectedColumns
from corollary.warehouse.sources.source import Position

SEARCHED_MAX_BYTES = 64 * 2**20
"""The maximum size of the files in which lines are looked for."""

Place = tuple[str, int | None]
"""A file, and the line in it if that is known."""

Row = tuple[Value, ...]

_SYNTAXES: dict[str, Callable[[ExpectedColumns, str], Dialect]] = {
    "csv": csv_file.syntax,
    "jsonl": json_file.syntax,
}


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source, as they were when it was last read.

    Attributes:
        relation: that they fill.
        directive: the `.input`.
        position: of the last reading.
        folders: where names of files may be relative to.
    """

    relation: Relation
    directive: Directive
    position: Position
    folders: Sequence[Path]

    def find(self, rows: Sequence[Row]) -> dict[Row, Place]:
        """Return where rows are: of a row in several files, the first one.

        A row that is not found has the only file of the source, if there is just one.
        """
        states = {name: FileState(*each) for name, each in self.position.get("files", {}).items()}
        (only,) = states if len(states) == 1 else (None,)
        found: dict[Row, Place] = {} if only is None else dict.fromkeys(rows, (only, None))
        left, budget = list(rows), SEARCHED_MAX_BYTES
        for name, state in sorted(states.items()):
            if not left:
                break
            budget -= state.size
            data = self._read(name, state) if budget >= 0 else None
            if data is None:
                continue
            lines = _FileSearch(self.relation, self._expected(), name, data).find(left)
            found |= {row: (name, line) for row, line in lines.items()}
            left = [row for row in left if row not in lines]
        return found

    def _expected(self) -> ExpectedColumns:
        named = tuple(self.position.get("named", ()))
        return ExpectedColumns(self.relation, self.directive, named)

    def _read(self, name: str, state: FileState) -> bytes | None:
        """Return a file that has not changed since it was read, if it can be found."""
        if format_of(self.directive, name) not in _SYNTAXES:
            return None
        for folder in self.folders:
            path = folder / name
            try:
                if fingerprint_of(path.stat()) == state.fingerprint:
                    data = path.read_bytes()
                    return None if data.startswith(GZIP_MAGIC) else data
            except OSError:
                continue
        return None


class _FileSearch:
    """Looks for rows in the text of a file."""

    def __init__(
        self, relation: Relation, expected: ExpectedColumns, name: str, data: bytes
    ) -> None:
        data = data.removeprefix(BYTE_ORDER_MARK)
        self._data = data if data.endswith(b"\n") or not data else data + b"\n"
        self._relation = relation
        self._expected = expected
        self._name = name
        self._format = format_of(expected.directive, name)
        dialect: Dialect = _SYNTAXES[self._format](expected, name)
        self._ends = index_records(self._data, dialect).ends
        self._first = 1 if dialect.has_header else 0

    def find(self, rows: Sequence[Row]) -> dict[Row, int]:
        """Return the lines of the rows that are there, each its first one."""
        found: dict[Row, int] = {}
        work = [(self._first, len(self._ends))]
        left = dict.fromkeys(rows)
        while work and left:
            first, last = work.pop()
            if first >= last:
                continue
            table = self._parse(first, last)
            if table is None or table.num_rows == 0:
                continue
            numbers = dict(self._numbers(table, list(left)))
            if table.num_rows == last - first:
                for row, number in numbers.items():
                    found[row] = self._line(first + number)
                    del left[row]
            elif numbers:
                if last - first == 1:
                    found |= {row: self._line(first) for row in numbers}
                    left = {row: None for row in left if row not in numbers}
                    continue
                middle = (first + last) // 2
                work += [(middle, last), (first, middle)]
        return found

    def _parse(self, first: int, last: int) -> pa.Table | None:
        """Return the rows of some records."""
        header = self._data[: self._ends[self._first - 1]] if self._first else b""
        start = self._ends[first - 1] if first else 0
        text = header + self._data[start : self._ends[last - 1]]
        try:
            return parse_file(text, self._name, self._format, self._expected).table
        except InputError:
            return None

    def _numbers(self, table: pa.Table, rows: list[Row]) -> Iterator[tuple[Row, int]]:
        """Yield the rows that are in a table, with the number of the first one there."""
        wanted = from_python(rows, self._relation)
        if not self._relation.types:
            yield from ((row, 0) for row in rows)
            return
        both = pa.concat_tables([wanted, table.cast(wanted.schema)])
        words = row_words(both.columns, both.num_rows)
        asked, there = words[: len(rows)], words[len(rows) :]
        distinct, firsts = np.unique(there, return_index=True)
        places = np.searchsorted(distinct, asked)
        for row, word, place in zip(rows, asked, places, strict=True):
            if place < len(distinct) and distinct[place] == word:
                yield row, int(firsts[place])

    def _line(self, record: int) -> int:
        start = self._ends[record - 1] if record else 0
        return 1 + count_lines(self._data[:start])
