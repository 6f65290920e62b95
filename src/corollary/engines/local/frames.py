"""Frames: rows of codes on their way through the stages of a pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from corollary.engines.local.layout import Codes, Mask


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


UNIT = Frame({}, 1)
EMPTY = Frame({}, 0)
