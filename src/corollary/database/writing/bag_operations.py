"""Writes to relations with copies: what a transaction does to their counts.

All operations on a row, in order, are one function of the number of copies that there are (see
`compose_copies`). So the counts are looked up once, however many operations there are. The parts of
a bag have counts of their own, and those of the bag are their sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
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
from corollary.warehouse import copies


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

        Rows outside of this process stay there.
        """
        program = self._program
        if isinstance(rows, copies.CopiesHandle):
            if sign is State.ADDED and self._load(rows.counted, part, base):
                return
            relation, counted = base, rows.counted
            rows = counted if counted.is_distributed else counted.table()
        if (base, part) not in self._operations:
            target = program.parts.get(base, {}).get(part)
            self._operations[base, part] = _PartOperations(target, program.relations[base])
        if not getattr(rows, "is_distributed", False):
            rows = LocalTable(counted_table(program, relation, rows))
        self._operations[base, part].operations.append((sign, rows))

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
        kept: dict[str, TableHandle] = {}
        # Manual writes come last, when it is known what other parts assert.
        for (base, part), each in sorted(self._operations.items(), key=_is_manual):
            others = [at for name, at in program.parts.get(base, {}).items() if name != part]
            found = each.apply(engine, program, limits, others if part == MANUAL_PART else ())
            if len(found):
                kept[self.counted[base]] = found
        several = relations_with_parts(program, (base for base, _ in self._operations))
        _sum_parts(engine, program, several, limits)
        return kept


def _is_manual(operations: tuple[tuple[str, str], object]) -> bool:
    return operations[0][1] == MANUAL_PART


def counted_table(program: NormalProgram, relation: str, rows: Any) -> pa.Table:
    """Return rows that are written to a bag, or to its counts, with a column of counts."""
    shape = program.relations[program.bags.get(relation, relation)]
    if relation not in program.bags:
        table = rows if isinstance(rows, pa.Table) else from_python(rows, shape)
        return table.rename_columns(list(shape.columns)).cast(schema_of(shape))
    table = rows if isinstance(rows, pa.Table) else from_python(rows, program.relations[relation])
    return copies.with_counts(table, np.ones(table.num_rows, np.int64), shape)


def check_counts(relation: Relation, rows: Any) -> None:
    """Refuse numbers of copies that make no sense.

    Raises:
        InputError: `C0976`.
    """
    counts = (
        copies.split_counts(rows)[1] if isinstance(rows, pa.Table) else [row[-1] for row in rows]
    )
    if len(counts) and min(counts) < 1:
        raise InputError.of(
            "C0976",
            f"A row for `{relation.name}` has {int(min(counts))} in the column "
            f"`{relation.columns[-1]}`.",
            None,
            "give how many copies to add or to remove, 1 or more",
        )


@dataclass(frozen=True, slots=True)
class _PartOperations:
    """The operations of a transaction on one part of a bag.

    Attributes:
        relation: holds the counts of the part; None if the part has no tuples at all.
        shape: the relation of counts, with its columns.
        operations: copies to add or to remove; those outside of this process may have no counts.
    """

    relation: str | None
    shape: Relation
    operations: list[tuple[State, TableHandle]] = field(default_factory=list)

    def apply(
        self, engine: Engine, program: NormalProgram, limits: Limits, others: Sequence[str] = ()
    ) -> TableHandle:
        """Change the counts; return the rows that lack a copy for a delete, and that others have.

        If some rows are outside of this process, that is done in tasks.
        """
        if any(rows.is_distributed for _, rows in self.operations):
            from corollary.database.writing.task_changes import change_counts

            there = [engine.handle(each) for each in others]
            return change_counts(engine, self.relation, self.shape, self.operations, there)
        change = copies.CountChange.of([(sign, rows.table()) for sign, rows in self.operations])
        had = np.zeros(change.rows.num_rows, np.int64)
        if self.relation is not None:
            had = _counts_of(engine, program, self.relation, change.rows, limits)
        has = change.counts(had, self.shape)
        if self.relation is not None:
            copies.apply_counts(
                engine, self.relation, copies.change_of_counts(change.rows, had, has, self.shape)
            )
        missing = change.missing(had, has)
        kept = np.zeros(missing.num_rows, np.int64)
        for each in others:
            kept += _counts_of(engine, program, each, missing, limits)
        return LocalTable(missing.take(index_array(np.flatnonzero(kept))))


def _sum_parts(
    engine: Engine, program: NormalProgram, bases: Iterable[str], limits: Limits
) -> None:
    """Bring the counts of bags up to date with those of their parts."""
    for base in bases:
        parts = program.parts[base].values()
        came, went = ([engine.handle(part, sign) for part in parts] for sign in CHANGES)
        # The bag itself has had some of these changes, in an earlier round of triggers.
        came.append(engine.handle(base, State.REMOVED))
        went.append(engine.handle(base, State.ADDED))
        operations = [(State.ADDED, each) for each in came if len(each)]
        operations += [(State.REMOVED, each) for each in went if len(each)]
        if operations:
            _PartOperations(base, program.relations[base], operations).apply(
                engine, program, limits
            )


def _counts_of(
    engine: Engine, program: NormalProgram, relation: str, rows: pa.Table, limits: Limits
) -> copies.Counts:
    """Return how many copies of some rows, which are distinct, there are now."""
    if not rows.num_rows or not engine.size(relation):
        return np.zeros(rows.num_rows, np.int64)
    columns = range(program.relations[relation].arity - 1)
    found = find_agreeing(engine, program, relation, rows, columns=columns, limits=limits)
    return copies.known_counts(rows, found)
