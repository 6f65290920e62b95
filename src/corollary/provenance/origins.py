"""Where base tuples are from: the program text, a file of a source, a write by hand; since when.

Tuples are looked for as sets, relation by relation: the engine says which parts hold them, files
and changes are read once for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from corollary.core import logic
from corollary.core.arrow import from_python, to_python
from corollary.core.program import Directive, Relation
from corollary.core.values import comparable_row
from corollary.data_class import dataclass
from corollary.database.program.parts import (
    MANUAL_PART,
    SOURCE_PREFIX,
    TEXT_PART,
    Row,
    find_asserted,
)
from corollary.database.state import DatabaseState
from corollary.errors import InputError
from corollary.provenance.nodes import CutReason, FactOrigin, ProofCut, ProofKind, ProofNode
from corollary.rewrite.clauses.expressions import fold_negative
from corollary.source import Span
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK, GZIP_MAGIC, fingerprint_of
from corollary.warehouse.formats.dialect import Dialect, file_name_of, format_of
from corollary.warehouse.formats.text_records import count_lines, index_records
from corollary.warehouse.row_words import is_among, row_words
from corollary.warehouse.sources import csv_file, json_file
from corollary.warehouse.sources.file_formats import parse_file
from corollary.warehouse.sources.file_source import FileState
from corollary.warehouse.sources.schema_drift import ExpectedColumns
from corollary.warehouse.sources.source import Position
from corollary.warehouse.warehouse import Warehouse

READ_MAX_ROWS = 20_000_000
"""The maximum number of changed tuples that are read; older commits are not looked at."""


class Additions:
    """The commits of a warehouse up to one of them."""

    def __init__(self, warehouse: Warehouse, upto: int) -> None:
        self._warehouse = warehouse
        self._upto = upto
        self._left = READ_MAX_ROWS
        self._oldest = int(warehouse.catalog.meta("oldest"))
        self._programs = {each.number: each.program for each in warehouse.commits()}
        self._layout = cache(
            lambda program: program_of_layout(warehouse.catalog.program(program).layout)
        )
        self.is_cut = False

    def find(
        self, base: str, part: str, relation: Relation, rows: Sequence[Row]
    ) -> dict[Row, int | str]:
        """Return for tuples of a part which commit has added them, or `before N`.

        A part is the base relation itself as long as it is the only one; when there is a second
        one, it becomes a relation of its own, whose first change is no addition.

        Args:
            base: the base relation.
            part: the part.
            relation: with its columns; of a bag, those of its counts.
            rows: the tuples; of a bag, without their counts.
        """
        found: dict[Row, int | str] = {}
        left = list(rows)
        for number, name in self._changes(base, part):
            if not left:
                break
            added = self._added_rows(number, name, relation)
            if added is None:
                break
            is_there = _are_among(left, added, relation)
            found |= {row: number for row, is_new in zip(left, is_there, strict=True) if is_new}
            left = [row for row in left if row not in found]
        if not self.is_cut:
            found |= dict.fromkeys(left, f"before {self._oldest}")
        return found

    def _changes(self, base: str, part: str) -> list[tuple[int, str]]:
        """Return the commits that may have added to a part, newest first, with its name then."""
        names = {number: self._name(number, base, part) for number in self._programs}
        found = []
        for name in {each for each in names.values() if each is not None}:
            stored = self._warehouse.catalog.changes(self._oldest - 1, self._upto, name)
            for number, change in stored:
                before = names.get(number - 1)
                is_split = change.is_full and before is not None and before != name
                if names.get(number) == name and change.added and not is_split:
                    found.append((number, name))
        return sorted(found, reverse=True)

    def _name(self, commit: int, base: str, part: str) -> str | None:
        """Return the relation that holds a part at a commit."""
        return self._layout(self._programs[commit]).parts.get(base, {}).get(part)

    def _added_rows(self, number: int, name: str, relation: Relation) -> pa.Table | None:
        """Return what a commit has added; None if too much was read already."""
        ((_, stored),) = self._warehouse.catalog.changes(number - 1, number, name)
        self._left -= stored.added + stored.removed
        if self._left < 0:
            self.is_cut = True
            return None
        added = self._warehouse.read_change(stored).added
        if added.num_columns < len(relation.types):
            return added.slice(0, 0)  # the relation had other columns then
        return added


def _are_among(rows: Sequence[Row], table: pa.Table, relation: Relation) -> list[bool]:
    """Return for each row whether a table has it; columns after those of the rows do not count."""
    arity = len(rows[0])
    if not arity:
        return [table.num_rows > 0] * len(rows)
    columns, types = relation.columns[:arity], relation.types[:arity]
    shape = replace(relation, columns=columns, types=types)
    wanted = from_python(rows, shape)
    known = table.select(list(range(arity))).rename_columns(wanted.column_names)
    try:
        both = pa.concat_tables([wanted, known.cast(wanted.schema)])
    except pa.ArrowInvalid:  # the relation had other types then
        return [False] * len(rows)
    words = row_words(both.columns, both.num_rows)
    return [bool(each) for each in is_among(words[: len(rows)], words[len(rows) :])]


# --- lines of files ------------------------------------------------------------------------------


SEARCHED_MAX_BYTES = 64 * 2**20
"""The maximum size of the files in which lines are looked for."""

Place = tuple[str, int | None]
"""A file, and the line in it if that is known."""


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
            lines = _FileSearch(self.relation, self._expected_columns(), name, data).find(left)
            found |= {row: (name, line) for row, line in lines.items()}
            left = [row for row in left if row not in lines]
        return found

    def _expected_columns(self) -> ExpectedColumns:
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
        self._expected_columns = expected
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
            return parse_file(text, self._name, self._format, self._expected_columns).table
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


# --- origins -------------------------------------------------------------------------------------


SOURCE_PART = "source"
"""What the part of a source is called in answers."""


@dataclass
class OriginFinder:
    """Finds where base tuples are from.

    Attributes:
        state: in which they are.
        warehouse: that has their history; None if the database is in memory.
    """

    state: DatabaseState
    warehouse: Warehouse | None = None
    _additions: Additions | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.warehouse is not None:
            self._additions = Additions(self.warehouse, self.state.commits)

    def with_origins(
        self, nodes: Sequence[ProofNode]
    ) -> tuple[tuple[ProofNode, ...], tuple[ProofCut, ...]]:
        """Return nodes whose base tuples have their origins, and whether history was cut."""
        wanted: dict[str, dict[Row, None]] = {}
        for node in nodes:
            if node.kind is ProofKind.BASE and not node.sources:
                wanted.setdefault(node.relation, {})[node.row] = None
        found = {name: self.find(name, list(rows)) for name, rows in wanted.items()}
        made = tuple(
            replace(node, sources=found[node.relation].get(node.row, ()))
            if node.row in wanted.get(node.relation, {}) and node.kind is ProofKind.BASE
            else node
            for node in nodes
        )
        is_cut = self._additions is not None and self._additions.is_cut
        return made, (ProofCut(CutReason.HISTORY),) * is_cut

    def find(self, name: str, rows: Sequence[Row]) -> Mapping[Row, tuple[FactOrigin, ...]]:
        """Return who asserts tuples of a relation, each part in the order of the parts."""
        normal = self.state.loaded.normal
        counts = normal.bags.get(name, name)
        base = normal.bases.get(counts, counts)
        if base not in normal.relations:
            return {}
        found: dict[Row, list[FactOrigin]] = {}
        asserted = find_asserted(self.state.engine, normal, name, rows, self.state.limits)
        for part, held in asserted.items():
            commits = self._commits(base, part, normal.relations[base], held)
            places = self._places(name, part, held)
            word = part if part in (TEXT_PART, MANUAL_PART) else SOURCE_PART
            for row in held:
                file, line = places.get(row, (None, None))
                origin = FactOrigin(word, file, line, commits.get(row))
                found.setdefault(row, []).append(origin)
        return {row: tuple(each) for row, each in found.items()}

    def _commits(
        self, base: str, part: str, relation: Relation, rows: Sequence[Row]
    ) -> Mapping[Row, int | str]:
        return {} if self._additions is None else self._additions.find(base, part, relation, rows)

    # --- places --------------------------------------------------------------------------------

    def _places(self, name: str, part: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        if part == TEXT_PART:
            return self._places_in_text(name, rows)
        if part.startswith(SOURCE_PREFIX) and self.warehouse is not None:
            return self._places_in_files(name, part.removeprefix(SOURCE_PREFIX), rows)
        return {}

    def _places_in_text(self, name: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        """Return in which lines of the program facts are, each its first one."""
        wanted = {comparable_row(row): row for row in rows}
        facts = list(_facts(self.state.loaded.checked.program.clauses, name))
        relation = self.state.loaded.normal.relations[name]
        # As the engine has them: decimals with all their digits, integers as floats.
        values = to_python(from_python([row for row, _ in facts], relation))
        found: dict[Row, Place] = {}
        for row, (_, span) in zip(values, facts, strict=True):
            asked = wanted.pop(comparable_row(row), None)
            if asked is not None and span is not None:
                found[asked] = span.file.name, span.line
        return found

    def _places_in_files(self, name: str, source: str, rows: Sequence[Row]) -> Mapping[Row, Place]:
        """Return in which files of a source rows are, and in which lines."""
        assert self.warehouse is not None
        _, position = self.warehouse.catalog.source_positions().get(source, ("", {}))
        written = source.partition(" < ")[2]
        directive = self._directive(name, written)
        if directive is None or "files" not in position:
            return dict.fromkeys(rows, (written, None))
        relation = self.state.loaded.normal.relations[name]
        folders = [*self._folders(position.get("folder", ""))]
        files = SourceFiles(relation, directive, position, folders)
        folder = Path(position.get("folder", ""))
        found = {row: (str(folder / file), line) for row, (file, line) in files.find(rows).items()}
        return {**dict.fromkeys(rows, (written, None)), **found}

    def _directive(self, name: str, written: str) -> Directive | None:
        """Return the `.input` of a source."""
        for each in self.state.program.directives:
            if each.name == "input" and each.relation == name and file_name_of(each) == written:
                return each
        return None

    def _folders(self, folder: str) -> Iterator[Path]:
        """Yield where files of a source may be, if names are relative to a folder.

        The folder may be relative to where the command ran: here, or beside the warehouse. A file
        counts only if it is the one that was read, by its size, times and inode.
        """
        assert self.warehouse is not None
        root = self.warehouse.root
        yield Path(folder)
        if isinstance(root, Path):
            yield root.parent / folder


def _facts(clauses: Iterable[logic.Clause], name: str) -> Iterator[tuple[Row, Span | None]]:
    """Yield the facts of a relation in a program, with their places."""
    for clause in clauses:
        for head in clause.heads if not clause.body else ():
            terms = map(fold_negative, head.arguments)
            values = [each.value for each in terms if isinstance(each, logic.Constant)]
            if head.relation == name and len(values) == len(head.arguments):
                yield tuple(values), clause.span
