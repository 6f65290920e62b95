"""Writes to relations with copies: what a transaction does to their counts.

All operations on a row, in order, are one function of the number of copies that there are (see
`compose_copies`). So the counts are looked up once, however many operations there are. The parts of
a bag have counts of their own, and those of the bag are their sums.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import from_python, schema_of
from corollary.core.arrow_buffers import index_array
from corollary.core.engine import Engine, Limits, LocalTable, TableHandle
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.program.parts import MANUAL_PART, find_agreeing, relations_with_parts
from corollary.errors import InputError
from corollary.warehouse.copies import (
    CopiesHandle,
    Counts,
    compose_copies,
    distinct_rows,
    split_counts,
    with_counts,
)

COPIES_MAX = 2**53
"""The maximum number of copies that a transaction adds, and of those that a row has."""


class BagChanges:
    """What the operations of a transaction do to relations with copies.

    Attributes:
        counted: the relations of counts that are written to, each with its bag.
    """

    def __init__(self, engine: Engine, program: NormalProgram, limits: Limits) -> None:
        self._engine, self._program, self._limits = engine, program, limits
        self._operations: dict[tuple[str, str], _PartOperations] = {}
        self.counted = {program.bases[bag]: bag for bag in program.bags}

    def add(self, sign: State, relation: str, rows: Any, *, part: str, base: str) -> None:
        """Note an operation on a part of a bag, or of its counts, which `base` holds.

        Rows outside of this process that are the first of a bag stay there.
        """
        program = self._program
        if isinstance(rows, CopiesHandle):
            if sign is State.ADDED and self._load(rows.counted, part, base):
                return
            relation, rows = base, rows.counted.table()
        if (base, part) not in self._operations:
            target = program.parts.get(base, {}).get(part)
            self._operations[base, part] = _PartOperations(target, program.relations[base])
        self._operations[base, part].add(sign, counted_table(program, relation, rows))

    def _load(self, counted: TableHandle, part: str, base: str) -> bool:
        """Give a bag without rows its first ones; return whether that was done."""
        parts = self._program.parts.get(base, {})
        targets = {*parts.values(), base} if len(parts) > 1 else {*parts.values()}
        is_written = any(each == base for each, _ in self._operations)
        if part not in parts or is_written or any(map(self._engine.size, targets)):
            return False
        for target in {parts[part], base} & targets:
            self._engine.insert(target, counted)
        return True

    def apply(self) -> dict[str, TableHandle]:
        """Change the counts; return by bag the rows to be deleted that only other parts assert."""
        engine, program, limits = self._engine, self._program, self._limits
        missing = {
            place: each.apply(engine, program, limits) for place, each in self._operations.items()
        }
        several = set(relations_with_parts(program, (base for base, _ in missing)))
        _sum_parts(engine, program, several, limits)
        kept: dict[str, TableHandle] = {}
        for (base, part), rows in missing.items():
            if part == MANUAL_PART and set(program.parts.get(base, ())) - {MANUAL_PART}:
                counts = _counts_of(engine, program, base, rows, limits)
                if counts.any():
                    there = rows.take(index_array(np.flatnonzero(counts)))
                    kept[self.counted[base]] = LocalTable(there)
        return kept


def counted_table(program: NormalProgram, relation: str, rows: Any) -> pa.Table:
    """Return rows that are written to a bag, or to its counts, with a column of counts."""
    shape = program.relations[program.bags.get(relation, relation)]
    if relation not in program.bags:
        table = rows if isinstance(rows, pa.Table) else from_python(rows, shape)
        return table.rename_columns(list(shape.columns)).cast(schema_of(shape))
    table = rows if isinstance(rows, pa.Table) else from_python(rows, program.relations[relation])
    return with_counts(table, np.ones(table.num_rows, np.int64), shape)


def check_counts(relation: Relation, rows: Any) -> None:
    """Refuse numbers of copies that make no sense.

    Raises:
        InputError: `C0976`.
    """
    counts = split_counts(rows)[1] if isinstance(rows, pa.Table) else [row[-1] for row in rows]
    if len(counts) and min(counts) < 1:
        raise InputError.of(
            "C0976",
            f"A row for `{relation.name}` has {int(min(counts))} in the column "
            f"`{relation.columns[-1]}`.",
            None,
            "give how many copies to add or to remove, 1 or more",
        )


@dataclass(slots=True)
class _PartOperations:
    """The operations of a transaction on one part of a bag.

    Attributes:
        relation: holds the counts of the part; None if the part has no tuples at all.
        shape: the relation of counts, with its columns.
    """

    relation: str | None
    shape: Relation
    signs: list[State] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)

    def add(self, sign: State, counted: pa.Table) -> None:
        """Note copies to add or to remove; rows without any, which triggers may give, are not."""
        counts = split_counts(counted)[1]
        if len(counts) and counts.min() < 1:
            counted = counted.take(index_array(np.flatnonzero(counts > 0)))
        self.signs.append(sign)
        self.tables.append(counted)

    def apply(self, engine: Engine, program: NormalProgram, limits: Limits) -> pa.Table:
        """Change the counts; return the rows of which no copy is left for a delete."""
        every, counts = split_counts(pa.concat_tables(self.tables))
        rows, places = distinct_rows(every)
        is_insert = np.repeat(
            np.array([sign is State.ADDED for sign in self.signs]),
            [table.num_rows for table in self.tables],
        )
        signed = np.where(is_insert, counts, -counts)
        delta, least = compose_copies(places, signed, rows.num_rows)
        if self.relation is None:
            had = np.zeros(rows.num_rows, np.int64)
        else:
            had = _counts_of(engine, program, self.relation, rows, limits)
        if counts.sum(dtype=np.float64) + had.max(initial=0) > COPIES_MAX:
            raise InputError.of(
                "C0976",
                f"`{self.shape.name}` would have more than {COPIES_MAX:,} copies of a row.",
                None,
                "add fewer copies; nothing was changed",
            )
        has = np.maximum(had + delta, least)
        if self.relation is not None:
            _set_counts(engine, replace(self.shape, name=self.relation), rows, had=had, has=has)
        return rows.take(index_array(np.flatnonzero((has == 0) & (had + delta < 0))))


def _sum_parts(
    engine: Engine, program: NormalProgram, bases: Iterable[str], limits: Limits
) -> None:
    """Bring the counts of bags up to date with those of their parts."""
    for base in bases:
        shape = program.relations[base]
        parts = tuple(program.parts[base].values())
        changes = [engine.read(part, sign) for part in parts for sign in CHANGES]
        touched = distinct_rows(split_counts(pa.concat_tables(changes))[0])[0]
        if touched.num_rows:
            had = _counts_of(engine, program, base, touched, limits)
            sums = (_counts_of(engine, program, part, touched, limits) for part in parts)
            has = sum(sums, np.zeros(len(had), np.int64))
            _set_counts(engine, shape, touched, had=had, has=has)


def _counts_of(
    engine: Engine, program: NormalProgram, relation: str, rows: pa.Table, limits: Limits
) -> Counts:
    """Return how many copies of some rows, which are distinct, there are now."""
    counts = np.zeros(rows.num_rows, np.int64)
    if not rows.num_rows or not engine.size(relation):
        return counts
    columns = range(program.relations[relation].arity - 1)
    found = find_agreeing(engine, program, relation, rows, columns=columns, limits=limits)
    known, known_counts = split_counts(found)
    if not known.num_rows:
        return counts
    both = pa.concat_tables([rows, known.cast(rows.schema)])
    _, places = distinct_rows(both)
    asked = np.empty(rows.num_rows, np.int64)
    asked[places[: rows.num_rows]] = np.arange(rows.num_rows)
    counts[asked[places[rows.num_rows :]]] = known_counts
    return counts


def _set_counts(
    engine: Engine, relation: Relation, rows: pa.Table, *, had: Counts, has: Counts
) -> None:
    """Replace the counts of some rows."""
    changed = had != has
    for change, counts in ((engine.delete, had), (engine.insert, has)):
        at = np.flatnonzero(changed & (counts > 0))
        if len(at):
            change(relation.name, with_counts(rows.take(index_array(at)), counts[at], relation))
