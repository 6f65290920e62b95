"""Functors that users write in Python, applied to columns of values.

A function is pure, so it is called once for equal arguments. What it raises, and what is not a
value of the declared type, is a fault of these rows, as a division by zero is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.types import SYMBOL, Type
from corollary.core.user_functors.registration import missing_function
from corollary.core.user_functors.user_functor import UserCall, UserFunction, UserFunctor
from corollary.core.values import format_value, is_value, quote_text
from corollary.engines.local.evaluation.value_vector import ComputedRows, ValueVector
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native

REASONS_MAX_COUNT = 32
"""The maximum number of reasons that one call tells apart; further faults have the last one."""

Faults = list[tuple[Mask, str]]


def apply_user_functor(call: UserCall, inputs: Sequence[ValueVector], count: int) -> ValueVector:
    """Return the values of a functor for every row; null where an argument is.

    Args:
        call: the functor and its function.
        inputs: its arguments.
        count: the number of rows.

    Raises:
        InputError: no function is registered for it.
    """
    functor, function = call.functor, call.functor.function
    if function is None:
        raise missing_function(functor.name)
    rows = ComputedRows(inputs)
    operands = [rows.take(each.values) for each in inputs]
    size = count if rows.skipped is None else int(np.count_nonzero(~rows.skipped))
    compute = _vectorised if function.is_vectorised else _by_row
    values, nulls, faults = compute(functor, function, operands, size)
    return rows.vector(values, call.type or functor.result, nulls if nulls.any() else None, faults)


# --- a call for each row -------------------------------------------------------------------------


def _by_row(
    functor: UserFunctor, function: UserFunction, operands: Sequence[Any], rows: int
) -> tuple[Any, Mask, Faults]:
    columns = [
        _python_values(values, type_)
        for values, type_ in zip(operands, functor.parameters, strict=True)
    ]
    arguments = list(zip(*columns, strict=True)) if columns else [()] * rows
    distinct = {each: at for at, each in enumerate(dict.fromkeys(arguments))}
    found = [_call(functor, function.function, each) for each in distinct]
    places = np.fromiter((distinct[each] for each in arguments), np.int64, rows)
    values, nulls, faults = _collect(functor, found)
    return values[places], nulls[places], [(mask[places], reason) for mask, reason in faults]


def _python_values(values: Any, type_: Type) -> list[Any]:
    if type_.is_symbol or type_.is_integral or type_.is_float:
        return list(values.tolist())
    return [native.to_python(value, type_) for value in values]


class _NoValue(str):
    """The reason why a call has no value."""

    __slots__ = ()


def _call(functor: UserFunctor, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        value = function(*arguments)
    except Exception as error:  # noqa: BLE001 - the code of users may raise anything
        return _NoValue(_raised(functor, error))
    if not is_value(value, functor.result):
        return _NoValue(_not_a_value(functor, value))
    return value


def _raised(functor: UserFunctor, error: Exception) -> str:
    told = " ".join(str(error).split())
    return f"`@{functor.name}` raised {type(error).__name__}{f': {told}' if told else ''}"


def _not_a_value(functor: UserFunctor, value: object) -> str:
    shown = "None" if value is None else quote_text(repr(value))
    return f"`@{functor.name}` returned {shown}, not a {functor.result},"


def _collect(functor: UserFunctor, found: list[Any]) -> tuple[Any, Mask, Faults]:
    """Return native values, the mask of nulls, and the faults of the results of calls."""
    type_ = functor.result
    has_value = np.array([each is not None and type(each) is not _NoValue for each in found], bool)
    present = [each for each, is_value_ in zip(found, has_value, strict=True) if is_value_]
    values = native.scatter_values(native.from_python(present, type_), has_value)
    nulls = np.array([each is None for each in found], np.bool_)
    masks: dict[str, Mask] = {}
    for at in np.flatnonzero(~has_value & ~nulls).tolist():
        reason = str(found[at])
        if reason not in masks and len(masks) >= REASONS_MAX_COUNT:
            reason = f"`@{functor.name}` raised an error"
        masks.setdefault(reason, np.zeros(len(found), np.bool_))[at] = True
    return values, nulls, [(mask, reason) for reason, mask in masks.items()]


# --- a call for many rows ------------------------------------------------------------------------


def _vectorised(
    functor: UserFunctor, function: UserFunction, operands: Sequence[Any], rows: int
) -> tuple[Any, Mask, Faults]:
    arrays = [
        native.to_arrow(values, np.zeros(rows, np.bool_), type_)
        for values, type_ in zip(operands, functor.parameters, strict=True)
    ]
    if not rows:
        return _collect(functor, [])
    parts, faults = _compute_parts(functor, function.function, arrays, 0, rows)
    column = pa.chunked_array(parts, arrow_type(functor.result))
    values, nulls = native.from_arrow(column, functor.result)
    nulls = np.zeros(rows, np.bool_) if nulls is None else nulls
    masks: Faults = []
    faulty = np.zeros(rows, np.bool_)
    for first, reason in faults:
        faulty[first] = True
        masks.append((np.arange(rows) == first, reason))
    if not functor.result.nullable and (lost := nulls & ~faulty).any():
        masks.append((lost, _not_a_value(functor, None)))
    return values, nulls & functor.result.nullable & ~faulty, masks


def _compute_parts(
    functor: UserFunctor,
    function: Callable[..., Any],
    arrays: list[pa.Array],
    first: int,
    rows: int,
) -> tuple[list[pa.Array], list[tuple[int, str]]]:
    """Return the results of some rows, null where the function fails, and why it does.

    A call that fails is repeated for each half of its rows, down to the rows that make it fail.
    """
    try:
        part = [each.slice(first, rows) for each in arrays]
        return [_checked(functor, function(*part), rows)], []
    except Exception as error:  # noqa: BLE001 - the code of users may raise anything
        if rows == 1:
            reason = str(error) if isinstance(error, _ResultError) else _raised(functor, error)
            return [pa.nulls(1, arrow_type(functor.result))], [(first, reason)]
    half = rows // 2
    parts, faults = _compute_parts(functor, function, arrays, first, half)
    others, more = _compute_parts(functor, function, arrays, first + half, rows - half)
    return parts + others, faults + more


class _ResultError(Exception):
    """What a vectorised function has returned is not an array of its values."""


def _checked(functor: UserFunctor, result: Any, rows: int) -> pa.Array:
    """Return the array that a function has returned, in the type of the functor."""
    name = functor.name
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    elif isinstance(result, np.ndarray):
        result = pa.array(result)
    if not isinstance(result, pa.Array):
        kind = type(result).__name__
        raise _ResultError(f"`@{name}` returned a {kind}, not an Arrow array,")
    if len(result) != rows:
        raise _ResultError(f"`@{name}` returned {len(result)} values for {rows} rows")
    try:
        return result.cast(arrow_type(functor.result))
    except pa.ArrowException:
        shown = format_value(str(result[0]), SYMBOL)
        raise _ResultError(
            f"`@{name}` returned {quote_text(shown)}, not a {functor.result},"
        ) from None
