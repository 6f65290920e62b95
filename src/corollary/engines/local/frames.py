"""Frames: rows of codes on their way through the stages of a pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corollary.engines.local.layout import Codes, Mask, layout_of

MARKED_BITS = 20
"""Rows of up to so many bits may be condensed by marking those that occur."""


@dataclass(slots=True)
class Frame:
    """So many rows, and the codes of the variables that are still needed."""

    columns: Mapping[str, Codes]
    count: int

    def select(self, rows: Mask) -> "Frame":
        """Return the rows where the mask is set."""
        count = int(np.count_nonzero(rows))
        if count == self.count:
            return self
        return Frame({name: column[rows] for name, column in self.columns.items()}, count)

    def condense(self, widths: Mapping[str, int]) -> "Frame":
        """Return each row once, if there are so many that most must be equal.

        Args:
            widths: for each column, the bits that its codes fit.
        """
        layout = layout_of(tuple(widths.values()))
        if layout.bits > MARKED_BITS or self.count >> 2 < 1 << layout.bits:
            return self
        marks = np.zeros(1 << layout.bits, np.bool_)
        marks[layout.pack([self.columns[name] for name in widths], self.count)] = True
        words = marks.nonzero()[0]
        columns = dict(zip(widths, layout.columns(words), strict=True))
        return Frame(columns, len(words))


UNIT = Frame({}, 1)
EMPTY = Frame({}, 0)
