"""The stages of a pipeline, prepared: whatever does not depend on rows is computed once.

A stage maps a frame to a frame, or to several where one would become too large.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from corollary.core.logic import Functor, Variable
from corollary.core.pipeline import AntiProbe, Compute, Filter, Probe, names_read
from corollary.engines.local.evaluation import expressions, matches
from corollary.engines.local.evaluation.frames import (
    EMPTY_FRAME,
    ConstantOperand,
    Frame,
    VariableScope,
    overflow_mask,
)
from corollary.engines.local.evaluation.prefetch import is_selective
from corollary.engines.local.evaluation.value_vector import union_masks
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Mask
from corollary.engines.local.storage.runs import PendingProbe
from corollary.engines.local.storage.table import Table

FRAME_MAX_ROWS = 1 << 14
"""Up to this many matches are one frame, those of several layers concatenated."""

DEDUPLICATE_MIN_ROWS = 1 << 8
"""Frames with at least this many rows are deduplicated, if few rows are possible."""


class ProbeStage:
    """Joins rows with the tuples of a relation whose bound columns, not all of them, match.

    Attributes:
        probe: as it is written.
        tables: what it reads.
        needed: the variables that later stages read.
        key_length: how many columns of the order are looked up, once that is chosen.
        is_joined_further: whether a later stage joins the rows again.
    """

    def __init__(
        self,
        stage: Probe,
        scope: VariableScope,
        known: frozenset[str],
        needed: frozenset[str],
        is_bag: bool,
    ) -> None:
        self.probe = stage
        self._scope = scope
        self.tables = scope.tables
        self._relation, self._state = stage.source.relation, stage.source.state
        self._operands = {column: scope.operand(stage.slots[column]) for column in stage.bound}
        self._known = known
        self.needed = needed
        self._is_bag = is_bag
        self._order: Order | None = None
        self.key_length = 0
        self.is_joined_further = False

    def _arrange(self, order: Order, length: int) -> None:
        """Set the order to probe in, and with it which position of a match holds which variable.

        Args:
            order: of the columns.
            length: how many of the first ones are looked up; other bound ones are compared.
        """
        self._order, self.key_length = order, length
        self._keys = [self._operands[column] for column in order[:length]]
        names = [
            (slot.name, position)
            for position, column in enumerate(order[length:], length)
            if isinstance(slot := self.probe.slots[column], Variable)
        ]
        occurrences = [name for name, _ in names]
        self._reads: list[tuple[str, int]] = []  # variables that the match binds
        self._equals: list[tuple[str, int]] = []  # variables that the match must agree with
        bound = set(self._known)
        for name, position in names:
            if name in bound:
                self._equals.append((name, position))
            elif name in self.needed or occurrences.count(name) > 1:
                self._reads.append((name, position))
                bound.add(name)
        self._constants = [  # that the match must agree with
            (operand.code, position)
            for position, column in enumerate(order[length:], length)
            if isinstance(operand := self._operands.get(column), ConstantOperand)
        ]
        compared = {name for name, _ in self._equals}
        self._carried = [name for name in self._known if name in self.needed | compared]
        self._is_test = not self._reads and not self._equals and not self._constants
        # Only a projection can make equal rows: of the tuples, or of the frame.
        compared_count = len(self._equals) + len(self._constants)
        used = len(self._keys) + len(self._reads) + compared_count
        self._is_projection = used < len(order) or len(self._carried) < len(self._known)

    @property
    def rows_read(self) -> int:
        """How many tuples it reads without a key."""
        return 0 if self.probe.bound else self.tables[self._relation].size(self._state)

    @property
    def is_remote(self) -> bool:
        """Whether the tuples are outside of this process."""
        return self.tables[self._relation].is_remote(self._state)

    def is_selective(self, asked: Sequence[PendingProbe]) -> bool:
        """Whether most rows will not pass: it is asked for far more keys than it has tuples."""
        return is_selective(self.tables[self._relation].size(self._state), asked)

    def unfetched(self, frame: Frame) -> list[PendingProbe] | None:
        """Return what it has to fetch for some rows; None if that cannot be said."""
        table = self.tables[self._relation]
        order = self.order_in(table)
        keys = [operand.column(frame) for operand in self._keys]
        remote = table.remote
        return [] if remote is None else remote.unfetched(order, keys, self._state)

    def order_in(self, table: Table) -> Order:
        """Return the order to probe in, which is chosen once."""
        if self._order is None:
            self._arrange(*self._choose_order(table))
        assert self._order is not None
        return self._order

    def _choose_order(self, table: Table) -> tuple[Order, int]:
        bound = self.probe.bound
        is_single = not any(isinstance(self.probe.slots[each], Variable) for each in bound)
        return table.probe_order(bound, is_single=is_single and not self._known)

    def apply(self, frame: Frame) -> Frame | Iterator[Frame]:
        """Return the rows joined with the tuples that match."""
        table = self.tables[self._relation]
        arrangement = table.arrangement(self.order_in(table))
        layers = arrangement.layers(self._state)
        if not layers:
            return EMPTY_FRAME
        layout = arrangement.layout
        keys: list[Codes] = []
        if self._keys:
            keys = [operand.column(frame) for operand in self._keys]
            # A code outside of the column's range is in no tuple of it, and cannot be packed.
            overflow = overflow_mask(self._keys, keys, layout)
            if overflow is not None:
                frame = frame.select(~overflow)
                if not frame.count:
                    return EMPTY_FRAME
                keys = [operand.column(frame) for operand in self._keys]
        if self._is_test and not self._is_bag and not any(layer.excluded for layer in layers):
            columns = {name: frame.columns[name] for name in self._carried}
            return Frame(columns, frame.count).select(
                matches.match_mask(layers, layout, keys, frame.count)
            )
        found = [matches.find_matches(layer, layout, keys, frame.count) for layer in layers]
        found = [each for each in found if each.total]
        if not found:
            return EMPTY_FRAME
        if len(found) > 1 and sum(each.total for each in found) <= FRAME_MAX_ROWS:
            return self._join(frame, matches.concatenate_matches(found), layout)
        if len(found) > 1 or found[0].total > FRAME_MAX_ROWS:
            return (
                self._join(frame, matched, layout) for each in found for matched in each.batches()
            )
        return self._join(frame, found[0].gather(), layout)

    def _join(self, frame: Frame, matched: matches.MatchedRows, layout: Layout) -> Frame:
        rows, words = matched
        count = len(words)
        columns: dict[str, Codes]
        if rows is not None:
            columns = {name: frame.columns[name][rows] for name in self._carried}
        elif count == 1:
            columns = {name: frame.columns[name] for name in self._carried}
        else:
            columns = {name: frame.columns[name].repeat(count) for name in self._carried}
        for name, position in self._reads:
            columns[name] = layout.unpack_column(words, position)
        same: Mask | None = None
        for name, position in self._equals:
            equal = columns[name] == layout.unpack_column(words, position)
            same = equal if same is None else same & equal
        for code, position in self._constants:
            equal = layout.unpack_column(words, position) == code
            same = equal if same is None else same & equal
        joined = Frame(columns, count)
        if same is not None:
            joined = joined.select(same)
        if count < DEDUPLICATE_MIN_ROWS or self._is_bag or not self._is_projection:
            return joined
        ranges = {name: self._scope.range(name) for name in self._carried}
        ranges |= {name: layout.columns[position] for name, position in self._reads}
        known = {name: each for name, each in ranges.items() if each is not None}
        if len(known) < len(ranges):
            return joined
        # The heads of the last join are made distinct anyway.
        return joined.deduplicate(known, may_sort=self.is_joined_further)


class MemberStage:
    """Keeps the rows whose tuple is in a relation, or, negated, those whose tuple is not.

    Attributes:
        tables: what it reads.
    """

    def __init__(self, stage: Probe | AntiProbe, scope: VariableScope) -> None:
        self.tables = scope.tables
        self._relation, self._state = stage.source.relation, stage.source.state
        self._operands = [scope.operand(slot) for slot in stage.slots]
        self._is_negated = isinstance(stage, AntiProbe)

    @property
    def is_remote(self) -> bool:
        """Whether the tuples are outside of this process."""
        return self.tables[self._relation].is_remote(self._state)

    def is_selective(self, asked: Sequence[PendingProbe]) -> bool:
        """Whether most rows will not pass: it is asked for far more keys than it has tuples."""
        size = self.tables[self._relation].size(self._state)
        return not self._is_negated and is_selective(size, asked)

    def unfetched(self, frame: Frame) -> list[PendingProbe]:
        """Return what it has to fetch for some rows."""
        remote = self.tables[self._relation].remote
        columns = [operand.column(frame) for operand in self._operands]
        return [] if remote is None else remote.unfetched_codes(columns, self._state)

    def apply(self, frame: Frame) -> Frame:
        """Return the rows whose tuple is in the relation, or not."""
        table = self.tables[self._relation]
        if not table.size(self._state):
            return frame if self._is_negated else EMPTY_FRAME
        columns = [operand.column(frame) for operand in self._operands]
        layout = table.layout
        if overflow_mask(self._operands, columns, layout) is None:
            found = table.contains(layout.pack(columns, frame.count), self._state)
        else:
            found = table.contains_codes(columns, frame.count, self._state)
        return frame.select(~found if self._is_negated else found)


class FilterStage:
    """Keeps the rows for which a condition is true.

    Attributes:
        has_fault: whether the condition had no value for some row.
        names_read: the variables of the condition.
        target: the variable that it binds: none.
    """

    target: str | None = None

    def __init__(self, stage: Filter, scope: VariableScope) -> None:
        self._condition = stage.condition
        self.names_read = names_read(stage)
        self._dictionary = scope.dictionary
        self.has_fault = False

    def apply(self, frame: Frame) -> Frame:
        """Return the rows for which the condition is true."""
        verdict = expressions.evaluate_condition(
            self._condition, frame.columns, frame.count, self._dictionary
        )
        self.has_fault |= any(np.count_nonzero(mask) for mask, _ in verdict.faults)
        return frame.select(verdict.true)


class ComputeStage:
    """Binds a variable to the value of an expression.

    Attributes:
        has_fault: whether the expression had no value for some row.
        names_read: the variables of the expression.
        target: the variable that it binds.
    """

    def __init__(self, stage: Compute, scope: VariableScope) -> None:
        self._stage = stage
        self.names_read = names_read(stage)
        self.target: str | None = stage.variable.name
        self._dictionary = scope.dictionary
        self.has_fault = False

    def apply(self, frame: Frame) -> Frame | Iterator[Frame]:
        """Return the rows with the value; a range makes several rows of one."""
        expression = self._stage.expression
        if isinstance(expression, Functor) and expression.name == "range":
            return self._range(expression, frame)
        batch = expressions.evaluate(expression, frame.columns, frame.count, self._dictionary)
        codes = expressions.encode_vector(batch, self._dictionary)
        computed = Frame({**frame.columns, self._stage.variable.name: codes}, frame.count)
        drop = batch.fault_mask
        if drop is not None and np.count_nonzero(drop):
            self.has_fault = True
        if not self._stage.accepts_null:
            drop = union_masks(drop, batch.nulls)
        return computed if drop is None else computed.select(~drop)

    def _range(self, functor: Functor, frame: Frame) -> Iterator[Frame]:
        numbers = expressions.RangeValues(functor, frame.columns, frame.count, self._dictionary)
        self.has_fault |= len(numbers.faulty_rows) > 0
        for rows, codes in numbers.batches():
            columns = {name: column[rows] for name, column in frame.columns.items()}
            columns[self._stage.variable.name] = codes
            yield Frame(columns, len(codes))


PreparedStage = ProbeStage | MemberStage | FilterStage | ComputeStage
