"""Expressions and conditions on batches: decode, compute with NumPy, say where there is no value.

A batch never raises: rows whose expression has no value (overflow, division by zero, a failed
conversion) are marked with the reason, and the caller decides whether they count. A missing value
beats null: `null + 1 / 0` has none.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core import functors
from corollary.core.rules import CONSTRAINTS, Condition
from corollary.core.terms import Constant, Expression, Functor, Value, Variable
from corollary.core.types import Kind, Type
from corollary.engines.local import arithmetic, native, texts
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.layout import Codes
from corollary.engines.local.shares import share_of

Mask = npt.NDArray[np.bool_]
Frame = Mapping[str, Codes]


@dataclass(frozen=True, slots=True)
class Batch:
    """Native values, where they are null, and where there is none and why."""

    values: native.Native
    type: Type
    nulls: Mask | None = None
    faults: tuple[tuple[Mask, str], ...] = ()

    @property
    def faulty(self) -> Mask | None:
        """Where there is no value."""
        return _anywhere(self.faults)


def _anywhere(faults: Iterable[tuple[Mask, str]]) -> Mask | None:
    mask: Mask | None = None
    for fault, _ in faults:
        mask = fault if mask is None else mask | fault
    return mask


@lru_cache(maxsize=1024)
def _native(value: Value, type_: Type) -> native.Native:
    """Return a constant as an array of one."""
    return native.from_python([value], type_)


def either(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return where one of two masks is set; None is nowhere."""
    if one is None or other is None:
        return one if other is None else other
    return one | other


def mask_of(mask: Mask | None, count: int) -> Mask:
    """Return a mask that is there; None is nowhere."""
    return np.zeros(count, np.bool_) if mask is None else mask


def type_of(expression: Expression) -> Type:
    """Return the type that inference gave the expression."""
    assert expression.type is not None, f"{expression} has no type"
    return expression.type


def evaluate(expression: Expression, frame: Frame, count: int, codes: Dictionary) -> Batch:
    """Return the values of an expression for every row of a frame."""
    type_ = type_of(expression)
    match expression:
        case Variable(name=name):
            column = frame[name]
            nulls = column == 0
            has_null = np.count_nonzero(nulls)
            return Batch(codes.decode(column, type_), type_, nulls if has_null else None)
        case Constant(value=value):
            if value is None:
                return Batch(native.blank(count, type_), type_, np.ones(count, np.bool_))
            return Batch(_native(value, type_).repeat(count), type_)
        case Functor(name=functors.TOTAL, arguments=(Variable() as total,)):
            batch = evaluate(total, frame, count, codes)
            missing = mask_of(batch.nulls, count)
            return replace(batch, nulls=None, faults=((missing, arithmetic.OVERFLOW),))
        case Functor(name=functors.SHARE, arguments=(value, Constant(value=int() as shares))):
            batch = evaluate(value, frame, count, codes)  # type: ignore[arg-type]
            return Batch(share_of(batch.values, batch.nulls, batch.type, shares), type_)
        case Functor(name=name, arguments=arguments):
            inputs = [evaluate(each, frame, count, codes) for each in arguments]  # type: ignore[arg-type]
            return _apply(name, inputs, type_)


def _apply(name: str, inputs: list[Batch], type_: Type) -> Batch:
    nulls: Mask | None = None
    faults: tuple[tuple[Mask, str], ...] = ()
    for each in inputs:
        nulls = either(nulls, each.nulls)
        faults += each.faults
    compute: Callable[..., Any] = texts.FUNCTIONS.get(name) or arithmetic.FUNCTIONS[name]
    skip = either(nulls, _anywhere(faults))
    operands = [(each.values, each.type) for each in inputs]
    if skip is not None:
        operands = [(values[~skip], kind) for values, kind in operands]
    values, fresh = compute(operands, type_)
    if skip is not None:
        whole = native.blank(len(skip), type_)
        whole[~skip] = values
        values, spread = whole, []
        for mask, reason in fresh:
            wide = np.zeros(len(skip), np.bool_)
            wide[~skip] = mask
            spread.append((wide, reason))
        fresh = spread
    if type_.kind is Kind.FLOAT:
        values = native.canonical(values)
    return Batch(values, type_, nulls, faults + tuple(fresh))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a condition is true, and where it has no truth value and why."""

    true: Mask
    faults: tuple[tuple[Mask, str], ...] = ()


def holds(condition: Condition, frame: Frame, count: int, codes: Dictionary) -> Verdict:
    """Return where a condition holds; comparisons with null are false, `is` is null-safe."""
    left, right = condition.left, condition.right
    operator = condition.operator
    match left, right:
        case Variable(name=one_name), Variable(name=two_name) if operator in ("=", "!="):
            if type_of(left).domain == type_of(right).domain:
                return Verdict(_same_codes(frame[one_name], frame[two_name], operator))
        case _:
            pass
    one = evaluate(left, frame, count, codes)
    two = evaluate(right, frame, count, codes)
    if operator.removeprefix("!") in CONSTRAINTS:
        true, fresh = texts.constraint(operator.removeprefix("!"), one.values, two.values)
        true = ~true if operator.startswith("!") else true
    else:
        equation = "=" if operator == "is" else operator
        true = arithmetic.compare(equation, one.values, one.type, two.values, two.type)
        fresh = []
    nulls = either(one.nulls, two.nulls)
    both = one.nulls & two.nulls if one.nulls is not None and two.nulls is not None else None
    faults = one.faults + two.faults + tuple(fresh)
    if nulls is not None:
        true &= ~nulls
    for mask, _ in faults:
        true &= ~mask
    if operator == "is" and both is not None:
        true |= both
    return Verdict(true, faults)


def _same_codes(one: Codes, other: Codes, operator: str) -> Mask:
    if one is other:
        return one != 0 if operator == "=" else np.zeros(len(one), np.bool_)
    same = one == other if operator == "=" else one != other
    result: Mask = same & (one != 0) & (other != 0)
    return result


def encode(batch: Batch, codes: Dictionary) -> Codes:
    """Return the codes of a batch; rows without a value get any code."""
    faulty = batch.faulty
    if faulty is None or not np.count_nonzero(faulty):
        return codes.encode(batch.values, batch.nulls, batch.type)
    return codes.encode(batch.values, either(batch.nulls, faulty), batch.type)
