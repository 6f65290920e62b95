"""A source beside a model: after each reading, the rows are those that it should hold."""

import gzip
import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corollary.core.arrow import expand_table, from_python, schema_of, to_python
from corollary.core.engine import TaskPool
from corollary.core.program import Directive, Relation
from corollary.core.types import NUMBER, SYMBOL
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span
from corollary.warehouse.files.file_rows import table_of
from corollary.warehouse.sources.quarantine import QUARANTINE, BadRowPolicy, quarantine_change
from corollary.warehouse.sources.source import Position, Source, SourceChange, TableRows
from corollary.warehouse.sources.source_factory import SourceFactory

Row = tuple[Any, ...]
P = Relation("p", ("x", "y"), (NUMBER, SYMBOL), is_derived=False)
SPAN = Span(SourceFile("p.dl", ".input p"), 1, 1, 1, 9)


def canonical(row: Row) -> Row:
    """Returns a row that equals another exactly if the tuples are the same."""

    def one(value: Any) -> Any:
        if isinstance(value, float):
            return "nan" if math.isnan(value) else value + 0.0
        return value

    return tuple(map(one, row))


def a_source(
    base: Path,
    filename: str = "p.facts",
    *,
    relation: Relation = P,
    key: tuple[str, ...] = (),
    quarantine: bool = False,
    tasks: TaskPool | None = None,
    **parameters: str,
) -> Source:
    directive = Directive("input", "p", (("filename", filename), *parameters.items()), SPAN)
    bad_rows = BadRowPolicy.QUARANTINE if quarantine else BadRowPolicy.ABORT
    return SourceFactory(base, bad_rows=bad_rows, tasks=tasks).source(directive, relation, key)


class CountedRows(TableRows):
    """Counts how often all rows are asked for."""

    asked = 0

    def table(self) -> pa.Table:
        self.asked += 1
        return super().table()


class BadRecord(NamedTuple):
    """A malformed record, as the quarantine has it."""

    relation: str
    source: str
    file: str
    line: int
    code: str
    reason: str
    raw: str


class Run:
    """A warehouse's view of a source: what it held, and where it has been read to."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.relation = source.relation
        self.position: Position | None = None
        self.rows: dict[Row, Row] = {}
        self.quarantine = from_python([], QUARANTINE)
        self.asked = 0

    def step(self, expected: Iterable[Row] | None = None) -> SourceChange:
        """Reads the change, applies it, and compares with the rows that there should be."""
        content = CountedRows(from_python(list(self.rows.values()), self.relation))
        change = self.source.change_since(self.position, content)
        self.asked = content.asked
        assert self.asked <= 1
        came, went = table_of(change.added), table_of(change.removed)
        added = [canonical(row) for row in to_python(came)]
        removed = [canonical(row) for row in to_python(went)]
        assert len(set(added)) == len(added) or not self.rows
        assert len(set(removed)) == len(removed)
        assert not set(added) & self.rows.keys()
        assert set(removed) <= self.rows.keys()
        if self.relation.types:
            assert expand_table(came, self.relation).schema == schema_of(self.relation)
            assert went.schema == schema_of(self.relation)
        for row in removed:
            del self.rows[row]
        self.rows |= {canonical(row): row for row in to_python(came)}
        self._quarantine(change)
        if expected is not None:
            assert self.rows.keys() == {canonical(row) for row in expected}
        self.position = json.loads(json.dumps(change.position))
        assert self.source.is_unchanged(self.position)
        return change

    def _quarantine(self, change: SourceChange) -> None:
        name = self.source.name
        added, removed = quarantine_change(
            self.quarantine, name, change.bad_rows, change.reread_files
        )
        rows = {*to_python(self.quarantine)} - {*to_python(removed)} | {*to_python(added)}
        self.quarantine = from_python(sorted(rows), QUARANTINE)

    @staticmethod
    def bad_records(change: SourceChange) -> list[BadRecord]:
        """Returns the malformed records of a change."""
        return [BadRecord(**row) for row in change.bad_rows.to_pylist()]

    def bad_lines(self) -> dict[str, list[int]]:
        """Returns the numbers of the lines that are in quarantine, by file."""
        found: dict[str, list[int]] = {}
        for row in to_python(self.quarantine):
            _, _, file, line, *_ = row
            found.setdefault(str(file), []).append(int(str(line)))
        return found


def refused(action: Any, *codes: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        action()
    found = caught.value.diagnostics
    assert tuple(dict.fromkeys(each.code for each in found)) == codes, str(caught.value)
    return found


def parquet(rows: Iterable[Row], relation: Relation = P) -> bytes:
    sink = io.BytesIO()
    pq.write_table(from_python(list(rows), relation), sink)
    return sink.getvalue()


def csv(rows: Iterable[Row], delimiter: str = "\t") -> bytes:
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()


def objects(rows: Iterable[Row], names: tuple[str, ...] = P.columns) -> bytes:
    lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    return "".join(line + "\n" for line in lines).encode()


def arrays(rows: Iterable[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


FORMS = {
    "p.facts": csv,
    "p.tsv": csv,
    "p.csv": lambda rows: csv(rows, ","),
    "p.csv.gz": lambda rows: gzip.compress(csv(rows, ",")),
    "p.jsonl": objects,
    "p.ndjson": arrays,
    "p.jsonl.gz": lambda rows: gzip.compress(objects(rows)),
    "p.parquet": parquet,
}
