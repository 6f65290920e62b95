"""The values of an expression for all rows, and the masks of rows that have none."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.storage.layout import Mask


@dataclass(frozen=True, slots=True)
class ValueVector:
    """The values of an expression for all rows.

    Attributes:
        values: native ones, `Texts` for symbols, arbitrary where they are null or missing.
        nulls: the mask of nulls, None for none.
        faults: masks of rows without a value, each with the reason.
    """

    values: Any
    type: Type
    nulls: Mask | None = None
    faults: tuple[tuple[Mask, str], ...] = ()

    @property
    def fault_mask(self) -> Mask | None:
        """The mask of rows without a value, None for none."""
        return fault_mask_of(self.faults)


def take_rows(vector: ValueVector, rows: Any) -> ValueVector:
    """Return the values of some rows, or of those of a mask."""
    nulls = None if vector.nulls is None else vector.nulls[rows]
    faults = ((mask[rows], reason) for mask, reason in vector.faults)
    found = tuple(each for each in faults if each[0].any())
    return ValueVector(vector.values[rows], vector.type, nulls, found)


def fault_mask_of(faults: Iterable[tuple[Mask, str]]) -> Mask | None:
    """Return the union of the masks of faults, None for none."""
    mask: Mask | None = None
    for fault, _ in faults:
        mask = fault if mask is None else mask | fault
    return mask


def union_masks(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the union of two masks, each None for none."""
    if one is None or other is None:
        return one if other is None else other
    return one | other


def dense_mask(mask: Mask | None, count: int) -> Mask:
    """Return a mask as an array, None for none."""
    return np.zeros(count, np.bool_) if mask is None else mask
