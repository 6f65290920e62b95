"""The values of an expression for all rows, and the masks of rows that have none."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native

IS_NULL = "null"
"""The reason of rows that are null, where a functor may be null of values."""


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


class ComputedRows:
    """The rows that a functor computes: those in which no argument is null or has no value.

    Attributes:
        skipped: the mask of the others, None for none.
    """

    __slots__ = ("_faults", "_nulls", "skipped")

    def __init__(self, inputs: Sequence[ValueVector], nullable: Collection[int] = ()) -> None:
        """Choose rows by the arguments; those at `nullable` places may be null."""
        nulls: Mask | None = None
        faults: tuple[tuple[Mask, str], ...] = ()
        for at, each in enumerate(inputs):
            if at not in nullable:
                nulls = union_masks(nulls, each.nulls)
            faults += each.faults
        self._nulls, self._faults = nulls, faults
        self.skipped = union_masks(nulls, fault_mask_of(faults))

    def take(self, values: Any) -> Any:
        """Return the values in these rows, of those in all rows."""
        return values if self.skipped is None else values[~self.skipped]

    def vector(
        self,
        values: Any,
        type_: Type,
        nulls: Mask | None = None,
        faults: Iterable[tuple[Mask, str]] = (),
    ) -> ValueVector:
        """Return the values of all rows, given those of these rows, and which have none."""
        if self.skipped is not None:
            rows = ~self.skipped
            values = native.scatter_values(values, rows)
            nulls = None if nulls is None else _scatter(nulls, rows)
            faults = [(_scatter(mask, rows), reason) for mask, reason in faults]
        nulls, found = union_masks(self._nulls, nulls), self._faults
        for mask, reason in faults:
            if reason == IS_NULL:
                nulls = union_masks(nulls, mask)
            elif mask.any():
                found += ((mask, reason),)
        return ValueVector(values, type_, nulls, found)


def _scatter(mask: Mask, rows: Mask) -> Mask:
    found = np.zeros(len(rows), np.bool_)
    found[rows] = mask
    return found
