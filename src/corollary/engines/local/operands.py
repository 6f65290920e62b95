"""Where the argument places of a pipeline get their codes from."""

from collections.abc import Iterable, Mapping
from typing import assert_never

import numpy as np

from corollary.core.pipeline import Compute, Probe, Stage
from corollary.core.terms import Constant, Slot, Variable, Wildcard
from corollary.engines.local import expressions
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.frames import Frame
from corollary.engines.local.layout import Codes, Layout, Mask
from corollary.engines.local.table import Table

BLOCK = 64
"""A constant is kept so many times over, for frames with few rows."""


class Named:
    """A variable."""

    __slots__ = ("_name", "_scope")

    def __init__(self, name: str, scope: "Scope") -> None:
        self._name = name
        self._scope = scope

    @property
    def width(self) -> int | None:
        """A width that all its codes fit, or None if there is none to tell before."""
        return self._scope.width(self._name)

    def column(self, frame: Frame) -> Codes:
        """Return its codes."""
        return frame.columns[self._name]


class Fixed:
    """A constant."""

    __slots__ = ("_block", "width")

    def __init__(self, code: int) -> None:
        self.width = code.bit_length()
        self._block = np.full(BLOCK, code, np.int64)

    def column(self, frame: Frame) -> Codes:
        """Return its code, once for each row."""
        if frame.count <= BLOCK:
            return self._block[: frame.count]
        return np.full(frame.count, self._block[0], np.int64)


Operand = Named | Fixed


class Scope:
    """The variables of a pipeline.

    A variable that a probe has bound fits the width of the column it was read from, so that most
    codes need not be looked at to know that they fit another table.
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

    def width(self, name: str) -> int | None:
        """Return a width that all codes of a variable fit, or None if there is none to tell."""
        place = self._places.get(name)
        return None if place is None else self.tables[place[0]].layout.widths[place[1]]

    def operand(self, slot: Slot) -> Operand:
        """Return what an argument place stands for."""
        match slot:
            case Variable(name=name):
                return Named(name, self)
            case Constant(value=value):
                return Fixed(self.dictionary.code(value, expressions.type_of(slot)))
            case Wildcard():
                raise AssertionError("`_` has no value")
            case _:
                assert_never(slot)


def misfits(operands: Iterable[Operand], columns: list[Codes], layout: Layout) -> Mask | None:
    """Return the rows whose codes are too large for the first columns of a layout, None for none.

    The codes are looked at only where the widths leave a doubt.
    """
    for operand, width in zip(operands, layout.widths, strict=False):
        known = operand.width
        if known is None or known > width:
            return layout.misfits(columns)
    return None
