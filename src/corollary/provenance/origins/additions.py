"""Since when base tuples are there: the last commit that added each of them, by the change feed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pyarrow as pa

from corollary.core.arrow import from_python
from corollary.core.logic import Value
from corollary.core.program import NormalProgram, Relation
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.row_words import is_among, row_words
from corollary.warehouse.warehouse import Warehouse

READ_MAX_ROWS = 20_000_000
"""The maximum number of changed tuples that are read; older commits are not looked at."""

Row = tuple[Value, ...]


class Additions:
    """The commits of a warehouse up to one of them."""

    def __init__(self, warehouse: Warehouse, upto: int) -> None:
        self._warehouse = warehouse
        self._upto = upto
        self._left = READ_MAX_ROWS
        self._oldest = int(warehouse.catalog.meta("oldest"))
        self._programs = {each.number: each.program for each in warehouse.commits()}
        self._layout = cache(self._read_layout)
        self.is_cut = False

    def _read_layout(self, program: int) -> NormalProgram:
        return program_of_layout(self._warehouse.catalog.program(program).layout)

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
            added = self._added(number, name, relation)
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

    def _added(self, number: int, name: str, relation: Relation) -> pa.Table | None:
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
