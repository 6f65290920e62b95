"""Frames: rows of codes that flow through a pipeline, and the operands that its stages read."""

from collections.abc import Iterable, Mapping
from typing import assert_never

import numpy as np

from corollary.core.logic import Constant, Slot, Variable, Wildcard, type_of
from corollary.core.pipeline import Compute, Probe, Stage
from corollary.data_class import dataclass
from corollary.engines.local.storage.code_range import CodeRange, Codes, range_of_code
from corollary.engines.local.storage.layout import Layout, Mask, layout_of
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

BITMAP_MAX_BITS = 20
"""The maximum width of rows that are deduplicated by a bitmap."""

BITMAP_ROWS_FACTOR = 8
"""A bitmap may be this many times as long as the rows are many."""

SORTED_MAX_BITS = 62
"""The maximum width of rows that are deduplicated by sorting: one word."""

SORTED_MIN_ROWS = 1 << 14
"""The minimum number of rows that are deduplicated by sorting."""

SAMPLE_ROWS, SAMPLE_DUPLICATES = 1 << 15, 4
"""How many of the first rows are counted, and how many times the different ones they have to be."""

CONSTANT_BLOCK_ROWS = 64
"""A constant operand keeps an array of this length, to be sliced for frames with few rows."""


@dataclass(slots=True)
class Frame:
    """A number of rows, and the codes of the variables that are still needed."""

    columns: Mapping[str, Codes]
    count: int

    def select(self, rows: Mask) -> "Frame":
        """Return the rows where the mask is set."""
        count = int(np.count_nonzero(rows))
        if count == self.count:
            return self
        return Frame({name: column[rows] for name, column in self.columns.items()}, count)

    def deduplicate(self, ranges: Mapping[str, CodeRange], *, may_sort: bool = True) -> "Frame":
        """Remove duplicate rows, by a bitmap or, if most of the first ones are, by sorting.

        So variables that are no longer needed do not multiply the rows of the next join. Where far
        more different rows are possible than there are, the first rows tell whether it pays.

        Args:
            ranges: for each column, a range that has all its codes.
            may_sort: whether sorting may pay.
        """
        layout = layout_of(tuple(ranges.values()))
        has_bitmap = (
            layout.bits <= BITMAP_MAX_BITS and 1 << layout.bits <= BITMAP_ROWS_FACTOR * self.count
        )
        is_sortable = layout.bits <= SORTED_MAX_BITS and self.count >= SORTED_MIN_ROWS
        if not has_bitmap and not (may_sort and is_sortable):
            return self
        packed = layout.pack([self.columns[name] for name in ranges], self.count)
        if has_bitmap:
            occurs = np.zeros(1 << layout.bits, np.bool_)
            occurs[packed] = True
            words = occurs.nonzero()[0]
        else:
            sample = packed[:SAMPLE_ROWS]
            if SAMPLE_DUPLICATES * len(sort_distinct(sample)) > len(sample):
                return self
            words = sort_distinct(packed)
        columns = dict(zip(ranges, layout.unpack(words), strict=True))
        return Frame(columns, len(words))


UNIT_FRAME = Frame({}, 1)
EMPTY_FRAME = Frame({}, 0)


class VariableOperand:
    """A variable in an argument place."""

    __slots__ = ("_name", "_scope")

    def __init__(self, name: str, scope: "VariableScope") -> None:
        self._name = name
        self._scope = scope

    @property
    def range(self) -> CodeRange | None:
        """A range that has all its codes, or None if unknown."""
        return self._scope.range(self._name)

    def column(self, frame: Frame) -> Codes:
        """Return its codes."""
        return frame.columns[self._name]


class ConstantOperand:
    """A constant in an argument place."""

    __slots__ = ("_block", "code", "range")

    def __init__(self, code: int) -> None:
        self.code = code
        self.range = range_of_code(code)
        self._block = np.full(CONSTANT_BLOCK_ROWS, code, np.int64)

    def column(self, frame: Frame) -> Codes:
        """Return its code, once for each row."""
        if frame.count <= CONSTANT_BLOCK_ROWS:
            return self._block[: frame.count]
        return np.full(frame.count, self._block[0], np.int64)


Operand = VariableOperand | ConstantOperand


class VariableScope:
    """The variables of a pipeline.

    The codes of a variable that a probe binds are in the range of the column they are read from:
    most codes need not be inspected to know that they fit another table.
    """

    def __init__(
        self, stages: Iterable[Stage], tables: Mapping[str, Table], dictionary: Dictionary
    ) -> None:
        self.tables = tables
        self.dictionary = dictionary
        self._places: dict[str, tuple[str, int] | None] = {}
        for stage in stages:
            if isinstance(stage, Compute):
                self._places.setdefault(stage.variable.name, None)
            elif isinstance(stage, Probe):
                for column, slot in enumerate(stage.slots):
                    if isinstance(slot, Variable):
                        self._places.setdefault(slot.name, (stage.source.relation, column))

    def range(self, name: str) -> CodeRange | None:
        """Return a range that has all codes of a variable, or None if unknown."""
        place = self._places.get(name)
        return None if place is None else self.tables[place[0]].layout.columns[place[1]]

    def operand(self, slot: Slot) -> Operand:
        """Return the operand for an argument place."""
        match slot:
            case Variable(name=name):
                return VariableOperand(name, self)
            case Constant(value=value):
                return ConstantOperand(self.dictionary.encode_value(value, type_of(slot)))
            case Wildcard():
                raise AssertionError("`_` has no value")
            case _:
                assert_never(slot)


def overflow_mask(operands: Iterable[Operand], columns: list[Codes], layout: Layout) -> Mask | None:
    """Return the mask of rows with a code outside of the layout's first columns, None for none.

    The codes are inspected only if the ranges of the operands do not decide.
    """
    for operand, column in zip(operands, layout.columns, strict=False):
        known = operand.range
        if known is None or not column.includes(known):
            return layout.overflow_mask(columns)
    return None
