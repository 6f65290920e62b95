"""Kernels: what computes a function on columns, and what many of them have in common.

A kernel takes operands as (values, type) pairs and the type of the result. It returns the values
with a list of faults: masks of the rows that have no value, each with the reason. What Arrow and
NumPy do not compute is computed in Python, once for each distinct row.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from corollary.core.types import Type
from corollary.engines.local.evaluation.value_vector import IS_NULL
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.sorting import number_distinct
from corollary.engines.local.values import native
from corollary.engines.local.values.texts import Texts

Operand = tuple[Any, Type]
Faults = list[tuple[Mask, str]]
Result = tuple[Any, Faults]
"""Values, native ones, and the faults."""

Kernel = Callable[[list[Operand], Type], Result]

OVERFLOW = "overflow"
DIVISION_BY_ZERO = "division by zero"
FAILED_CONVERSION = "failed conversion"

FEW_ROWS = 64
"""Up to this many rows are computed one by one, which is faster than finding distinct values."""


class NoValueError(Exception):
    """A function has no value; the message is the reason."""


def faults_of(mask: Mask, reason: str) -> Faults:
    """Return the rows of a mask as faults, if there are any."""
    return [(mask, reason)] if mask.any() else []


def on_values(function: Callable[..., Any]) -> Kernel:
    """Return the kernel of a function of columns that has a value in all rows."""
    return lambda operands, _: (function(*(values for values, _ in operands)), [])


# --- distinct rows -----------------------------------------------------------------------------


def distinct_rows(columns: list[Any]) -> tuple[list[list[Any]], Codes | None]:
    """Return the distinct rows of some columns as Python values, and for each row its number."""
    found, rows = distinct_columns(columns)
    return [values.tolist() for values in found], rows


def distinct_columns(columns: list[Any]) -> tuple[list[Any], Codes | None]:
    """Return the distinct rows of some columns, and for each row its number; few rows as they are.

    >>> distinct_columns([np.array([7, 7]), Texts.of(["a", "a"])])[1] is None
    True
    """
    if len(columns[0]) <= FEW_ROWS:
        return columns, None
    first, rows = _distinct(columns[0])
    found = [first]
    for values in columns[1:]:
        others, numbers = _distinct(values)
        size = len(others)
        pairs, rows = number_distinct(rows * size + numbers)
        found = [*(each[pairs // size] for each in found), others[pairs % size]]
    return found, rows


def _distinct(values: Any) -> tuple[Any, Codes]:
    """Return the distinct values of a column, and for each row the number of its value."""
    if isinstance(values, Texts):
        return values.distinct()
    if values.dtype == object:
        return np.unique(values, return_inverse=True)
    found, rows = number_distinct(values.view(np.int64))
    return found.view(values.dtype), rows


def spread_rows(results: Any, rows: Codes | None) -> Any:
    """Return the results of distinct rows for all rows."""
    return results if rows is None else results[rows]


# --- row by row --------------------------------------------------------------------------------


def compute_rows(
    function: Callable[..., Any], operands: list[Operand]
) -> tuple[list[Any], Faults, Codes | None]:
    """Compute the distinct rows one by one.

    Returns:
        the results, None for null and where there is none, the faults of all rows, and for each row
        the number of its result.
    """
    columns, rows = distinct_rows([values for values, _ in operands])
    results: list[Any] = []
    places: dict[str, list[int]] = {}
    for row in zip(*columns, strict=True):
        reason = IS_NULL
        try:
            results.append(function(*row))
        except NoValueError as error:
            results.append(None)
            reason = str(error)
        if results[-1] is None:
            places.setdefault(reason, []).append(len(results) - 1)
    faults = []
    for reason, found in places.items():
        mask = np.zeros(len(results), np.bool_)
        mask[found] = True
        faults.append((spread_rows(mask, rows), reason))
    return results, faults, rows


def each_row(function: Callable[..., Any]) -> Kernel:
    """Return a kernel that computes native values of distinct rows one by one; None is null."""

    def apply(operands: list[Operand], type_: Type) -> Result:
        results, faults, rows = compute_rows(function, operands)
        if type_.stores_texts:
            made: Any = Texts.of([each or "" for each in results])
        elif type_.is_decimal:
            made = native.narrow_integers(np.array([each or 0 for each in results], object))
        else:
            made = np.array([each or 0 for each in results], native.dtype_of(type_.kind))
        return spread_rows(made, rows), faults

    return apply


def each_typed_row(function: Callable[..., Any]) -> Kernel:
    """Return the same for a function that is given the type of the first operand first."""
    return lambda operands, type_: each_row(partial(function, operands[0][1]))(operands, type_)


def each_text(read: Callable[[str, Type], Any]) -> Kernel:
    """Return a kernel that reads distinct texts one by one as native values of a type.

    Where that raises an error of values, the conversion has failed.
    """

    def apply(operands: list[Operand], type_: Type) -> Result:
        def value(text: str) -> Any:
            try:
                return read(text, type_)
            except (ValueError, OverflowError, ArithmeticError):
                raise NoValueError(FAILED_CONVERSION) from None

        return each_row(value)(operands[:1], type_)

    return apply
