"""One file of JSON lines of a source: a line is an object by column names, or an array in order.

Keys that are no columns are ignored; a nullable column may be missing. Empty lines mean nothing.
"""

from typing import Any

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.types import Kind
from corollary.errors import Diagnostic
from corollary.warehouse.contents import LONGEST_LINE, has_longer_line
from corollary.warehouse.sources import json_fast
from corollary.warehouse.sources.drift import Expected, Reading
from corollary.warehouse.sources.json_line import (
    BadLineError,
    Line,
    converted,
    decoder,
    finding,
    line_of,
    parsed,
    values_of,
)

PIECE_SIZE = 2**20
"""Bytes read by vectors at once; an odd line costs no more than its piece."""


def read(data: bytes, name: str, expected: Expected, start: int = 0) -> Reading:
    """Return what a file holds from some offset on; arguments as for `csv_file.read`."""
    relation = expected.relation
    reader = _Reader(name, expected)
    tables = []
    line = data.count(b"\n", 0, start) + 1
    while start < len(data):
        end = data.find(b"\n", start + PIECE_SIZE) + 1 or len(data)
        piece = data[start:end]
        table = None if has_longer_line(piece, LONGEST_LINE) else json_fast.read(piece, relation)
        if table is None:
            table = reader.table(list(enumerate(piece.split(b"\n"), line)))
        else:
            reader.columns |= set(relation.columns)
        tables.append(table)
        start, line = end, line + piece.count(b"\n")
    reader.malformed.sort(key=line_of)
    if not relation.types:
        whole = nullary_table(min(1, sum(each.num_rows for each in tables)))
    else:
        whole = pa.concat_tables([schema_of(relation).empty_table(), *tables])
    return Reading(whole, reader.malformed, tuple(sorted(reader.columns)))


def can_continue_at(data: bytes, offset: int, expected: Expected) -> bool:  # noqa: ARG001
    """Return whether a record ends at an offset of a text."""
    return data.endswith(b"\n", 0, offset)


class _Reader:
    """Turns lines into tables, and notes what cannot be turned into rows."""

    def __init__(self, name: str, expected: Expected) -> None:
        self.name = name
        self.relation = expected.relation
        self.malformed: list[list[Diagnostic]] = []
        self.columns: set[str] = set()
        is_exact = any(type_.kind is Kind.DECIMAL for type_ in self.relation.types)
        self.decode = decoder(is_exact=is_exact)

    def table(self, lines: list[Line]) -> pa.Table:
        """Return the good rows of some lines."""
        rows: list[list[Any]] = []
        held: list[Line] = []
        for number, line in lines:
            if not line or line.isspace():
                continue
            try:
                rows.append(self.row(line))
                held.append((number, line))
            except BadLineError as bad:
                self.malformed.append([finding(self.name, (number, line), bad)])
        table, failures = converted(rows, self.relation)
        self.malformed += (
            [finding(self.name, held[row], BadLineError("C0801", reason)) for reason in reasons]
            for row, reasons in failures.items()
        )
        return table

    def row(self, line: bytes) -> list[Any]:
        """Return the values that a line has for the columns."""
        value = parsed(line, self.decode)
        if isinstance(value, dict):
            self.columns |= value.keys()
        return values_of(value, self.relation)
