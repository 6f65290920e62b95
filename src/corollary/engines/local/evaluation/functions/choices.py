"""Functors that decide themselves what nulls and missing values mean: logic, choice, `try`.

All arguments are computed for all rows; what was missing in an argument that is not chosen does not
count.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corollary.core.types import Type
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.arithmetic import compare_values
from corollary.engines.local.evaluation.kernels import OVERFLOW
from corollary.engines.local.evaluation.value_vector import (
    ValueVector,
    dense_mask,
    union_masks,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.native import narrow_integers
from corollary.engines.local.values.texts import Texts, select_texts

Combination = Callable[[Sequence[ValueVector], Type], ValueVector]
FaultMasks = tuple[tuple[Mask, str], ...]


def _counting(faults: FaultMasks, rows: Mask) -> FaultMasks:
    """Return faults in some rows only."""
    found = [(mask & rows, reason) for mask, reason in faults]
    return tuple((mask, reason) for mask, reason in found if mask.any())


def _present(vector: ValueVector, rows: Mask) -> Mask:
    """Return those of some rows in which there is a value, and it is not null."""
    absent = union_masks(vector.nulls, vector.fault_mask)
    return rows if absent is None else rows & ~absent


def _aligned(vector: ValueVector, type_: Type) -> ValueVector:
    """Return decimals with the digits after the point of a type, however many they are then."""
    if not type_.is_decimal or vector.type.scale == type_.scale:
        return vector
    scaled = decimals.rescale(vector.values, type_.scale - vector.type.scale)
    return replace(vector, values=narrow_integers(scaled), type=type_)


def _bounded(vector: ValueVector) -> ValueVector:
    """Return values without decimals that have too many digits."""
    if not vector.type.is_decimal:
        return vector
    values, too_large = decimals.bounded(vector.values)
    lost = _present(vector, too_large)
    faults = ((lost, OVERFLOW),) if lost.any() else ()
    return replace(vector, values=values, faults=vector.faults + faults)


def _select(rows: Mask, one: Any, other: Any) -> Any:
    """Return the one values in some rows, the others elsewhere."""
    if isinstance(one, Texts):
        return select_texts(rows, one, other)
    chosen = np.where(rows, one, other)
    return narrow_integers(chosen)


def _choose(
    chosen: Sequence[tuple[Mask, ValueVector]], type_: Type, faults: FaultMasks = ()
) -> ValueVector:
    """Return for each row the value of the argument that is chosen; any where none is."""
    values: Any = None
    nulls: Mask | None = None
    for rows, each in reversed(chosen):
        vector = _aligned(each, type_)
        values = vector.values if values is None else _select(rows, vector.values, values)
        faults += _counting(vector.faults, rows)
        if vector.nulls is not None:
            nulls = union_masks(nulls, vector.nulls & rows)
    return _bounded(ValueVector(values, type_, nulls, faults))


def _if(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """The value after the first test that is true; a test without a value leaves none."""
    undecided = np.ones(len(inputs[0].values), np.bool_)
    chosen: list[tuple[Mask, ValueVector]] = []
    faults: FaultMasks = ()
    for test, value in zip(inputs[:-1:2], inputs[1:-1:2], strict=True):
        faults += _counting(test.faults, undecided)
        true = _present(test, undecided & (test.values != 0))
        chosen.append((true, value))
        undecided = undecided & ~true
        faulty = test.fault_mask
        if faulty is not None:
            undecided &= ~faulty
    return _choose([*chosen, (undecided, inputs[-1])], type_, faults)


def _coalesce(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """The first value that is not null."""
    undecided = np.ones(len(inputs[0].values), np.bool_)
    chosen: list[tuple[Mask, ValueVector]] = []
    for each in inputs[:-1]:
        decided = undecided if each.nulls is None else undecided & ~each.nulls
        faulty = each.fault_mask
        if faulty is not None:
            decided = decided | (undecided & faulty)
        chosen.append((decided, each))
        undecided = undecided & ~decided
    return _choose([*chosen, (undecided, inputs[-1])], type_)


def _extreme(is_larger: bool) -> Combination:
    """The largest or the smallest value; nulls are passed over."""

    def combine(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
        every = np.ones(len(inputs[0].values), np.bool_)
        best, *others = (_aligned(each, type_) for each in inputs)
        values, present, faults = best.values, _present(best, every), best.faults
        for each in others:
            is_less = compare_values("<", values, type_, each.values, type_)
            here = _present(each, every)
            wins = here & (~present | (is_less if is_larger else ~is_less))
            values = _select(wins, each.values, values)
            present = present | here
            faults += each.faults
        absent = ~present
        nulls = absent if absent.any() else None
        return _bounded(ValueVector(values, type_, nulls, faults))

    return combine


def _null_if(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """The first value, null where the second one is equal to it."""
    one, two = inputs
    equal = compare_values("=", one.values, one.type, two.values, two.type)
    equal = _present(one, _present(two, equal))
    faults = one.faults + two.faults
    return ValueVector(one.values, type_, union_masks(one.nulls, equal), faults)


def _try(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    (vector,) = inputs
    return ValueVector(vector.values, type_, union_masks(vector.nulls, vector.fault_mask))


def _logic(decisive: bool) -> Combination:
    """`and`, which false decides, or `or`, which true decides, whatever else is null or missing."""

    def combine(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
        decided = np.zeros(len(inputs[0].values), np.bool_)
        nulls: Mask | None = None
        faults: FaultMasks = ()
        for each in inputs:
            decided |= _present(each, each.values == int(decisive))
            nulls = union_masks(nulls, each.nulls)
            faults += each.faults
        values = np.where(decided, int(decisive), int(not decisive))
        nulls = None if nulls is None else nulls & ~decided
        return ValueVector(values, type_, nulls, _counting(faults, ~decided))

    return combine


def _is_null(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    (vector,) = inputs
    nulls = dense_mask(vector.nulls, len(vector.values))
    return ValueVector(nulls.astype(np.int64), type_, None, vector.faults)


def _same(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """Equality in which null is equal to null."""
    one, two = inputs
    same = compare_values("=", one.values, one.type, two.values, two.type)
    if one.nulls is not None or two.nulls is not None:
        count = len(same)
        left, right = dense_mask(one.nulls, count), dense_mask(two.nulls, count)
        same = np.where(left | right, left & right, same)
    return ValueVector(same.astype(np.int64), type_, None, one.faults + two.faults)


COMBINATIONS: dict[str, Combination] = {
    "if": _if,
    "coalesce": _coalesce,
    "greatest": _extreme(is_larger=True),
    "least": _extreme(is_larger=False),
    "null_if": _null_if,
    "try": _try,
    "and": _logic(decisive=False),
    "or": _logic(decisive=True),
    "is_null": _is_null,
    "same": _same,
}
"""Makes the values of functors from those of all their arguments."""
