"""The stages of a pipeline for few rows: each row is a tuple of codes, looked up by itself.

A vector costs some microseconds for every operation however few rows it has; a row costs one or
two for each stage. So a pipeline that few tuples lead begins with rows, and goes on with frames
from the first stage on that makes many of them.

The codes of a row are in *registers*: first those of all constants, then those of the variables in
the order in which they are bound. Nothing is dropped on the way.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np

from corollary.core import logic
from corollary.core.functors import conversions
from corollary.core.logic import type_of
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe
from corollary.engines.local.evaluation.frames import Frame, VariableScope
from corollary.engines.local.evaluation.row_expressions import RowExpression, compile_expression
from corollary.engines.local.evaluation.stages import (
    ComputeStage,
    FilterStage,
    MemberStage,
    PreparedStage,
    ProbeStage,
)
from corollary.engines.local.storage.layout import Row
from corollary.engines.local.storage.rows import permutation
from corollary.engines.local.values.codes import Dictionary

FEW_TUPLES = 16
"""Up to this many rows are handled one by one."""

ROW_COLUMN = "•row"
"""The column of a frame that says which row each of its rows comes from."""


class Registers:
    """Where in a row the codes of constants and variables are."""

    def __init__(self, scope: VariableScope) -> None:
        self.dictionary = scope.dictionary
        self.constants: list[int] = []
        self.names: dict[str, int] = {}
        self._count = 0

    def add_constants(self, pipeline: Pipeline) -> None:
        """Give all constants their registers, before the first variable."""
        for stage in pipeline.stages:
            if isinstance(stage, Probe | AntiProbe):
                for slot in stage.slots:
                    self._add_constant(slot)
            elif isinstance(stage, Filter):
                self._add_all(stage.condition.left)
                self._add_all(stage.condition.right)
            else:
                self._add_all(stage.expression)
        for slot in pipeline.head:
            self._add_constant(slot)

    def _add_all(self, expression: logic.Expression) -> None:
        for part in logic.subterms(expression):
            self._add_constant(part)

    def _add_constant(self, term: object) -> None:
        if isinstance(term, logic.Constant):
            code = self.dictionary.encode_value(term.value, type_of(term))
            if code not in self.constants:
                self.constants.append(code)
                self._count += 1

    def bind(self, name: str) -> None:
        """Give a variable the next register."""
        self.names[name] = self._count
        self._count += 1

    def of(self, term: object) -> int:
        """Return the register of a variable or constant."""
        if isinstance(term, logic.Variable):
            return self.names[term.name]
        assert isinstance(term, logic.Constant)
        return self.constants.index(self.dictionary.encode_value(term.value, type_of(term)))


class _ProbeRows:
    """Joins rows with the tuples of a relation whose bound columns, not all of them, match."""

    def __init__(self, stage: ProbeStage, registers: Registers, *, is_bag: bool) -> None:
        probe = stage.probe
        self._tables = stage.tables
        self._relation, self._state = probe.source.relation, probe.source.state
        self._order = order = stage.order_in(stage.tables[self._relation])
        length = stage.key_length
        self._is_scan = not length
        self._key = permutation(tuple([registers.of(probe.slots[each]) for each in order[:length]]))
        reads: list[int] = []
        self._equals: list[tuple[int, int]] = []
        bound: dict[str, int] = {}
        for position, column in enumerate(order[length:], length):
            slot = probe.slots[column]
            if isinstance(slot, logic.Constant):
                self._equals.append((registers.of(slot), position))
            elif not isinstance(slot, logic.Variable):
                continue
            elif slot.name in registers.names:
                self._equals.append((registers.names[slot.name], position))
            elif slot.name in stage.needed or any(
                slot == other for other in probe.slots[:column] + probe.slots[column + 1 :]
            ):
                bound[slot.name] = position
                reads.append(position)
                registers.bind(slot.name)
        # A variable that the tuple has twice is compared with the register that it has just got.
        self._reads = permutation(tuple(reads))
        self._is_whole = tuple(reads) == tuple(range(len(order)))
        self._is_test = not reads and not self._equals and not is_bag

    def apply(self, rows: list[Row], most: int) -> list[Row] | None:
        """Return the rows joined with the tuples that match; None if they are too many."""
        table, order, state = self._tables[self._relation], self._order, self._state
        joined: list[Row] = []
        for row in rows:
            if self._is_scan:
                if table.size(state) > most:
                    return None
                matches = table.rows(state) if order == table.primary_order else None
                if matches is None:
                    matches = [*map(permutation(order), table.rows(state))]
            else:
                found = table.matching_rows(order, self._key(row), state, most)
                if found is None:
                    return None
                matches = found
            if self._is_test:
                if matches:
                    joined.append(row)
            elif self._equals:
                for match in matches:
                    both = row + self._reads(match)
                    if all(both[at] == match[position] for at, position in self._equals):
                        joined.append(both)
            elif self._is_whole:
                joined += [row + match for match in matches]
            else:
                reads = self._reads
                joined += [row + reads(match) for match in matches]
            if len(joined) > most:
                return None
        return joined


class _MemberRows:
    """Keeps the rows whose tuple is in a relation, or, negated, those whose tuple is not."""

    def __init__(
        self, stage: Probe | AntiProbe, prepared: MemberStage, registers: Registers
    ) -> None:
        self._tables = prepared.tables
        self._relation, self._state = stage.source.relation, stage.source.state
        self._tuple = permutation(tuple([registers.of(slot) for slot in stage.slots]))
        self._is_wanted = isinstance(stage, Probe)

    def apply(self, rows: list[Row], most: int) -> list[Row]:  # noqa: ARG002 - they only get fewer
        """Return the rows whose tuple is in the relation, or not."""
        table, state = self._tables[self._relation], self._state
        return [row for row in rows if table.has_row(self._tuple(row), state) is self._is_wanted]


class _CompareRows:
    """Keeps the rows in which two codes compare; null compares with nothing."""

    def __init__(
        self,
        condition: logic.Condition,
        sides: tuple[RowExpression, RowExpression],
        vectors: "_VectorRows",
        dictionary: Dictionary,
    ) -> None:
        self._one, self._two = sides
        self._compare = logic.COMPARATORS[condition.operator]
        domain = dictionary.domain(type_of(condition.left))
        self._domain = None if condition.operator in ("=", "!=") else domain
        self._vectors = vectors

    def apply(self, rows: list[Row], most: int) -> list[Row] | None:
        """Return the rows in which the codes compare."""
        if self._domain is not None and not self._domain.is_ordered:
            return self._vectors.apply(rows, most)
        one, two, compare = self._one, self._two, self._compare
        kept: list[Row] = []
        for row in rows:
            left, right = one(row), two(row)
            if left < 0 or right < 0:
                return self._vectors.apply(rows, most)
            if left and right and compare(left, right):
                kept.append(row)
        return kept


class _ComputeRows:
    """Binds a variable to what an expression says."""

    def __init__(
        self, expression: RowExpression, vectors: "_VectorRows", *, accepts_null: bool
    ) -> None:
        self._expression = expression
        self._accepts_null = accepts_null
        self._vectors = vectors

    def apply(self, rows: list[Row], most: int) -> list[Row] | None:
        """Return the rows with the code; null where it must not be drops a row."""
        expression, accepts_null = self._expression, self._accepts_null
        made: list[Row] = []
        for row in rows:
            code = expression(row)
            if code < 0:
                return self._vectors.apply(rows, most)
            if code or accepts_null:
                made.append((*row, code))
        return made


class _CheckedRows:
    """Binds a variable to a sum that is there; null is one that was too large."""

    def __init__(self, source: int, prepared: ComputeStage) -> None:
        self._source = source
        self._prepared = prepared

    def apply(self, rows: list[Row], most: int) -> list[Row]:  # noqa: ARG002 - they only get fewer
        """Return the rows with the sum."""
        source = self._source
        copied = [(*row, row[source]) for row in rows if row[source]]
        if len(copied) < len(rows):
            self._prepared.has_fault = True
        return copied


class _VectorRows:
    """Applies a stage that has only a form for frames."""

    def __init__(self, prepared: FilterStage | ComputeStage, registers: Registers) -> None:
        self._prepared = prepared
        self._names = [(name, registers.names[name]) for name in prepared.names_read]
        self._target = prepared.target

    def apply(self, rows: list[Row], most: int) -> list[Row] | None:
        """Return what the stage makes of a frame of the rows."""
        columns = {name: np.array([row[at] for row in rows], np.int64) for name, at in self._names}
        columns[ROW_COLUMN] = np.arange(len(rows))
        result = self._prepared.apply(Frame(columns, len(rows)))
        made: list[Row] = []
        for frame in (result,) if isinstance(result, Frame) else result:
            if len(made) + frame.count > most:
                return None
            kept = [rows[at] for at in frame.columns[ROW_COLUMN].tolist()]
            if self._target is None:
                made += kept
            else:
                codes = frame.columns[self._target].tolist()
                made += [(*row, code) for row, code in zip(kept, codes, strict=True)]
        return made


RowStage = _ProbeRows | _MemberRows | _CompareRows | _ComputeRows | _CheckedRows | _VectorRows
"""A stage that maps rows to rows; None where they become too many."""


class RowPipeline:
    """A pipeline for few rows.

    Attributes:
        first: the row that the first stage gets: all constants.
        stages: each with the relation to record a lookup of, if any.
        head: makes the head of a row.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        stages: Sequence[tuple[PreparedStage, str | None]],
        scope: VariableScope,
    ) -> None:
        registers = Registers(scope)
        registers.add_constants(pipeline)
        self.first = tuple(registers.constants)
        self.stages: list[tuple[RowStage, str | None]] = []
        self._names: list[dict[str, int]] = []
        for stage, (prepared, recorded) in zip(pipeline.stages, stages, strict=True):
            self._names.append(dict(registers.names))
            made = _row_stage(stage, prepared, registers, is_bag=pipeline.is_bag)
            self.stages.append((made, recorded))
        self._names.append(dict(registers.names))
        self.head: Callable[[Row], Row] = permutation(
            tuple([registers.of(slot) for slot in pipeline.head])
        )

    def frame(self, rows: list[Row], index: int) -> Frame:
        """Return the rows that come to a stage as a frame."""
        matrix = np.array(rows, np.int64)
        columns = {name: matrix[:, at].copy() for name, at in self._names[index].items()}
        return Frame(columns, len(rows))


def _row_stage(
    stage: Probe | AntiProbe | Compute | Filter,
    prepared: PreparedStage,
    registers: Registers,
    *,
    is_bag: bool,
) -> RowStage:
    match stage:
        case Probe() | AntiProbe():
            if isinstance(prepared, MemberStage):
                return _MemberRows(stage, prepared, registers)
            assert isinstance(prepared, ProbeStage)
            return _ProbeRows(prepared, registers, is_bag=is_bag)
        case Filter(condition=condition):
            assert isinstance(prepared, FilterStage)
            vectors = _VectorRows(prepared, registers)
            sides = [
                compile_expression(each, registers.of) for each in (condition.left, condition.right)
            ]
            is_alike = type_of(condition.left).domain == type_of(condition.right).domain
            if condition.operator not in logic.COMPARATORS or not is_alike:
                return vectors
            if sides[0] is None or sides[1] is None:
                return vectors
            both = sides[0], sides[1]
            return _CompareRows(condition, both, vectors, registers.dictionary)
        case Compute(variable=variable, expression=expression, accepts_null=accepts_null):
            assert isinstance(prepared, ComputeStage)
            made: RowStage
            vectors = _VectorRows(prepared, registers)
            match expression:
                case logic.Functor(
                    name=conversions.CHECKED_SUM, arguments=(logic.Variable() as total,)
                ):
                    made = _CheckedRows(registers.of(total), prepared)
                case _:
                    compiled = compile_expression(expression, registers.of)
                    made = (
                        vectors
                        if compiled is None
                        else _ComputeRows(compiled, vectors, accepts_null=accepts_null)
                    )
            registers.bind(variable.name)
            return made
        case _:
            assert_never(stage)
