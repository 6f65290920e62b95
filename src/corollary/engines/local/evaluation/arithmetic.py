"""Arithmetic, bits, comparisons and conversions between numbers, on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.types import TYPE_SPECS, Kind, Type
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.kernels import (
    DIVISION_BY_ZERO,
    FAILED_CONVERSION,
    OVERFLOW,
    Faults,
    Kernel,
    Operand,
    Result,
    faults_of,
    on_values,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.native import NativeArray
from corollary.engines.local.values.texts import Texts, compare_texts, select_texts

EXACT_PRODUCT_MIN = 2.0**62
"""Products that are smaller, as floats, cannot overflow an int64."""


def _exact(function: Callable[..., int], operands: list[NativeArray], kind: Kind) -> Result:
    """Compute with Python's integers, where 64 bits may not be enough."""
    low, high = TYPE_SPECS[kind].bounds
    exact = [function(*row) for row in zip(*(each.tolist() for each in operands), strict=True)]
    overflow = np.array([not low <= value <= high for value in exact], np.bool_)
    values = [value if low <= value <= high else 0 for value in exact]
    return np.array(values, _integer_dtype(kind)), faults_of(overflow, OVERFLOW)


def _integer_dtype(kind: Kind) -> Any:
    return np.uint64 if kind is Kind.UNSIGNED else np.int64


def _decimal(name: str, operands: list[Operand], type_: Type) -> Result:
    values, too_large, zero = decimals.compute(name, operands, type_.scale)
    return values, faults_of(too_large & ~zero, OVERFLOW) + faults_of(zero, DIVISION_BY_ZERO)


def _add(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    match type_.kind:
        case Kind.DECIMAL:
            return _decimal("+", operands, type_)
        case Kind.FLOAT:
            return _float(np.add, one, two)
        case Kind.UNSIGNED:
            total = one + two
            return total, faults_of(total < one, OVERFLOW)
        case _:
            # Overflow: the sign of the sum is neither that of the one nor of the other.
            total = one + two
            return total, faults_of(((one ^ total) & (two ^ total)) < 0, OVERFLOW)


def _subtract(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    match type_.kind:
        case Kind.DECIMAL:
            return _decimal("-", operands, type_)
        case Kind.FLOAT:
            return _float(np.subtract, one, two)
        case Kind.UNSIGNED:
            return one - two, faults_of(one < two, OVERFLOW)
        case _:
            rest = one - two
            return rest, faults_of(((one ^ two) & (one ^ rest)) < 0, OVERFLOW)


def _multiply(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    if type_.is_decimal:
        return _decimal("*", operands, type_)
    if type_.is_float:
        return _float(np.multiply, one, two)
    large = np.abs(one.astype(np.float64) * two.astype(np.float64)) >= EXACT_PRODUCT_MIN
    values = one * two
    if not large.any():
        return values, []
    overflow = np.zeros(len(one), np.bool_)
    values[large], faults = _exact(lambda a, b: a * b, [one[large], two[large]], type_.kind)
    for mask, _ in faults:
        overflow[large] = mask
    return values, faults_of(overflow, OVERFLOW)


def _divide(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    if type_.is_decimal:
        return _decimal("/", operands, type_)
    zero = two == 0
    if type_.is_float:
        values, faults = _float(np.divide, one, np.where(zero, 1.0, two))
        return values, [(mask & ~zero, why) for mask, why in faults] + faults_of(
            zero, DIVISION_BY_ZERO
        )
    divisor = np.where(zero, np.ones_like(two), two)
    if type_.is_unsigned:
        return one // divisor, faults_of(zero, DIVISION_BY_ZERO)
    overflow = (one == np.iinfo(np.int64).min) & (two == -1)
    divisor = np.where(overflow, 1, divisor)
    # NumPy rounds towards minus infinity, the language towards zero.
    quotient = one // divisor
    rest = one - quotient * divisor
    quotient += (rest != 0) & ((one < 0) != (divisor < 0))
    return quotient, faults_of(zero, DIVISION_BY_ZERO) + faults_of(overflow, OVERFLOW)


def _modulo(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    zero = two == 0
    # `min % -1` traps on some processors; modulo 1 gives the same result, 0.
    unsafe = zero if type_.is_unsigned else zero | (two == -1)
    divisor = np.where(unsafe, np.ones_like(two), two)
    return np.fmod(one, divisor), faults_of(zero, DIVISION_BY_ZERO)


def _power(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    if type_.is_float:
        pole = (one == 0.0) & (two < 0)
        values, faults = _float(_float_powers, np.where(pole, 1.0, one), two)
        undefined = np.isnan(values) & ~np.isnan(one) & ~np.isnan(two)
        return values, faults + faults_of(pole, DIVISION_BY_ZERO) + faults_of(
            undefined, "undefined power"
        )
    pole = (one == 0) & (two < 0)
    base = np.where(pole, np.ones_like(one), one)
    values, faults = _exact(_integer_power, [base, two], type_.kind)
    return values, faults + faults_of(pole, DIVISION_BY_ZERO)


def _float_powers(bases: NativeArray, exponents: NativeArray) -> NativeArray:
    """Return powers as the C library has them: those of NumPy depend on the processor."""
    one, two = (pa.array(each) for each in np.broadcast_arrays(bases, exponents))
    found: NativeArray = pc.power(one, two).to_numpy(zero_copy_only=False)
    return found


def _integer_power(base: int, exponent: int) -> int:
    if exponent < 0:
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    if base in (-1, 0, 1) or exponent < 64:
        return int(base ** (exponent if exponent < 64 else 2 + exponent % 2))
    return 2**64  # out of all bounds, as the power is: no need to compute it


def _float(function: Any, one: NativeArray, two: NativeArray) -> Result:
    with np.errstate(all="ignore"):
        values = function(one, two)
    overflow = np.isinf(values) & np.isfinite(one) & np.isfinite(two)
    return values, faults_of(overflow, OVERFLOW)


def _negate(operands: list[Operand], type_: Type) -> Result:
    ((values, _),) = operands
    if type_.is_unsigned:
        return np.zeros_like(values), faults_of(values != 0, OVERFLOW)
    if type_.is_float or type_.is_decimal:
        return -values, []
    lowest = np.iinfo(np.int64).min
    return -values, faults_of(values == lowest, OVERFLOW)


def _bits(function: Callable[..., Any]) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        patterns = [values.view(np.uint64) for values, _ in operands]
        return function(*patterns).astype(np.uint64).view(_integer_dtype(type_.kind)), []

    return apply


def _logical(function: Callable[..., Any]) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        result = function(*(values != 0 for values, _ in operands))
        return result.astype(_integer_dtype(type_.kind)), []

    return apply


def _extreme(is_larger: bool) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        columns = [values for values, _ in operands]
        faults: Faults = []
        if type_.is_decimal:
            columns = decimals.align(operands, type_.scale)
        best: Any = columns[0]
        for values in columns[1:]:
            wins = compare_values("<", best, type_, values, type_)
            select = select_texts if isinstance(values, Texts) else np.where
            best = select(wins if is_larger else ~wins, values, best)
        if type_.is_decimal:
            best, too_large = decimals.bounded(best)
            faults = faults_of(too_large, OVERFLOW)
        return best, faults

    return apply


def compare_values(operator: str, one: Any, one_type: Type, two: Any, two_type: Type) -> Mask:
    """Return the mask of rows in which a comparison of non-null values is true.

    NaN equals NaN and is greater than all other numbers.
    """
    if one_type.is_decimal and one_type.scale != two_type.scale:
        scale = max(one_type.scale, two_type.scale)
        one, two = decimals.align([(one, one_type), (two, two_type)], scale)
    if operator in (">", ">=", "!="):
        opposite = {">": "<=", ">=": "<", "!=": "="}[operator]
        return ~compare_values(opposite, one, two_type, two, two_type)
    if isinstance(one, Texts):
        return compare_texts(operator, one, two)
    if one_type.kind is Kind.FLOAT:
        equal: Mask = (one == two) | (np.isnan(one) & np.isnan(two))
        less: Mask = (one < two) | (~np.isnan(one) & np.isnan(two))
    else:
        equal = np.asarray(one == two, np.bool_)
        less = np.asarray(one < two, np.bool_) if operator != "=" else equal
    return {"=": equal, "<": less, "<=": less | equal}[operator]


def to_integer(operands: list[Operand], type_: Type) -> Result:
    """Convert numbers to `number` or `unsigned`; fractions are cut off."""
    ((values, source),) = operands
    match source.kind:
        case Kind.FLOAT:
            top = 2.0**64 if type_.is_unsigned else 2.0**63
            bottom = 0.0 if type_.is_unsigned else -(2.0**63)
            cut = np.trunc(values)
            bad = ~(np.isfinite(values) & (cut < top) & (cut >= bottom))
            safe = np.where(bad, 0.0, cut)
            return safe.astype(_integer_dtype(type_.kind)), faults_of(bad, FAILED_CONVERSION)
        case Kind.DECIMAL:
            values = decimals.to_integers(values, source.scale)
        case _:
            pass
    low, high = type_.spec.bounds
    bad = np.asarray((values < low) | (values > high), np.bool_)
    fitting = np.where(bad, 0, values) if bad.any() else values
    return fitting.astype(_integer_dtype(type_.kind)), faults_of(bad, FAILED_CONVERSION)


def to_float(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    """Convert numbers to `float`, correctly rounded."""
    ((values, source),) = operands
    if source.is_decimal:
        return decimals.to_floats(values, source.scale), []
    return values.astype(np.float64), []


ARITHMETIC_FUNCTIONS: dict[str, Kernel] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _modulo,
    "^": _power,
    "neg": _negate,
    "band": _bits(np.bitwise_and),
    "bor": _bits(np.bitwise_or),
    "bxor": _bits(np.bitwise_xor),
    "bnot": _bits(np.bitwise_not),
    "bshl": _bits(lambda one, two: one << (two & np.uint64(63))),
    "bshru": _bits(lambda one, two: one >> (two & np.uint64(63))),
    "bshr": on_values(
        lambda one, two: one >> (two.view(np.uint64) & np.uint64(63)).astype(one.dtype)
    ),
    "land": _logical(np.logical_and),
    "lor": _logical(np.logical_or),
    "lxor": _logical(np.logical_xor),
    "lnot": _logical(np.logical_not),
    "min": _extreme(is_larger=False),
    "max": _extreme(is_larger=True),
}
