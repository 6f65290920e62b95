"""Functions on numbers: products and quotients of a scale, rounding, signs, roots."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

import numpy as np

from corollary.core.functors import conversions
from corollary.core.types import NUMBER, Type
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.arithmetic import ARITHMETIC_FUNCTIONS, to_integer
from corollary.engines.local.evaluation.kernels import (
    DIVISION_BY_ZERO,
    FAILED_CONVERSION,
    OVERFLOW,
    Kernel,
    Operand,
    Result,
    faults_of,
    on_values,
)
from corollary.engines.local.values.native import NativeArray, narrow_integers

_QUIETLY = np.errstate(all="ignore")

UNDEFINED_ROOT = "undefined root"
EXACT_FLOAT_MAX = 2.0**52
"""Smaller floats have digits after the point, or are integers that can be counted on from."""

EXACT_POWER_MAX = 22
"""Powers of ten up to this one are floats without rounding."""

EXACT_DIGITS = 18
"""A power of ten with more digits does not fit 64 bits."""

_CONTEXT = Context(prec=1200, rounding=ROUND_HALF_UP)
"""Has room for all digits of any float."""


def _literal(operand: Operand) -> int:
    """Return the one value of an argument that is a literal."""
    values, _ = operand
    return int(values[0]) if len(values) else 0


def _product(operands: list[Operand], type_: Type) -> Result:
    (one, one_type), (two, two_type), _ = operands
    digits = one_type.scale + two_type.scale - type_.scale
    values, too_large = decimals.bounded(decimals.product(one, two, digits))
    return values, faults_of(too_large, OVERFLOW)


def _quotient(operands: list[Operand], type_: Type) -> Result:
    (one, one_type), (two, two_type), _ = operands
    zero = np.asarray(two == 0, np.bool_)
    divisor = np.where(zero, 1, two)
    digits = type_.scale - one_type.scale + two_type.scale
    values, too_large = decimals.bounded(decimals.quotient(one, divisor, digits))
    return values, faults_of(too_large & ~zero, OVERFLOW) + faults_of(zero, DIVISION_BY_ZERO)


def _remainder(operands: list[Operand], type_: Type) -> Result:
    (one, _), (two, _) = operands
    if type_.is_integral:
        return ARITHMETIC_FUNCTIONS["%"](operands, type_)
    zero = np.asarray(two == 0, np.bool_)
    if type_.is_float:
        with np.errstate(all="ignore"):
            return np.fmod(one, np.where(zero, 1.0, two)), faults_of(zero, DIVISION_BY_ZERO)
    one, two = decimals.align(operands, type_.scale)
    divisor = abs(np.where(zero, 1, two))
    rest = abs(one) % divisor
    values, too_large = decimals.bounded(narrow_integers(np.where(one < 0, -rest, rest)))
    return values, faults_of(too_large & ~zero, OVERFLOW) + faults_of(zero, DIVISION_BY_ZERO)


def _fit(operands: list[Operand], type_: Type) -> Result:
    values, too_large = decimals.bounded(operands[0][0], 10**type_.precision)
    return values, faults_of(too_large, OVERFLOW)


def _round_half_even(values: NativeArray, unit: int) -> NativeArray:
    quotient = values // unit
    twice = 2 * (values - quotient * unit)
    rounded: NativeArray = quotient + ((twice > unit) | ((twice == unit) & (quotient % 2 == 1)))
    return rounded


_ROUNDINGS: dict[str, Callable[[NativeArray, int], NativeArray]] = {
    ROUND_HALF_UP: decimals.round_units,
    ROUND_HALF_EVEN: _round_half_even,
    ROUND_FLOOR: lambda values, unit: values // unit,
    ROUND_CEILING: lambda values, unit: -(-values // unit),
}


def _round_to(rounding: str, operands: list[Operand], type_: Type) -> Result:
    (values, source), places = operands[0], _literal(operands[1])
    round_units = _ROUNDINGS[rounding]
    if type_.is_float:
        return _round_floats(values, places, rounding)
    if type_.is_decimal:
        digits = source.scale - places
        if digits <= 0:
            return values, []
        exact = values.astype(object) if digits > EXACT_DIGITS else values
        rounded = decimals.rescale(narrow_integers(round_units(exact, 10**digits)), digits)
        values, too_large = decimals.bounded(narrow_integers(rounded))
        return values, faults_of(too_large, OVERFLOW)
    if places >= 0:
        return values, []
    low, high = type_.spec.bounds
    unit = 10**-places
    exact = values.astype(object)
    rounded = round_units(exact, unit) * unit if len(values) else exact
    too_large = np.asarray((rounded < low) | (rounded > high), np.bool_)
    return np.where(too_large, 0, rounded).astype(values.dtype), faults_of(too_large, OVERFLOW)


def _round_floats(values: NativeArray, places: int, rounding: str) -> Result:
    """Round the shortest decimals that the floats are written as."""
    power = 10.0 ** min(abs(places), EXACT_POWER_MAX)
    with np.errstate(all="ignore"):
        scaled = values * power if places >= 0 else values / power
        near = np.rint(scaled)
        result = near / power if places >= 0 else near * power
        # Where the scaled value is not near a half, no rounding of ours decides.
        is_plain = (abs(scaled) < EXACT_FLOAT_MAX) & (abs(abs(scaled - near) - 0.5) > 1e-3)
    is_plain &= (abs(places) <= EXACT_POWER_MAX) | ~np.isfinite(values)
    rest = np.flatnonzero(~(is_plain | ~np.isfinite(values)))
    exact = [_rounded(each, places, rounding) for each in values[rest].tolist()]
    result = np.where(np.isfinite(values), result, values)
    result[rest] = exact
    too_large = np.isinf(result) & np.isfinite(values)
    return result, faults_of(too_large, OVERFLOW)


def _rounded(value: float, places: int, rounding: str) -> float:
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding, _CONTEXT))


def _whole(function: Any, is_up: bool) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        values, source = operands[0]
        if source.is_float:
            with np.errstate(all="ignore"):
                return to_integer([(function(values), source)], type_)
        if source.is_decimal:
            unit = 10**source.scale
            exact = values.astype(object) if unit > np.iinfo(np.int64).max else values
            whole = -(-exact // unit) if is_up else exact // unit
            return to_integer([(narrow_integers(whole), NUMBER)], type_)
        return to_integer(operands, type_)

    return apply


def _absolute(operands: list[Operand], type_: Type) -> Result:
    ((values, _),) = operands
    if type_.is_unsigned:
        return values, []
    if type_.is_number:
        return abs(values), faults_of(values == np.iinfo(np.int64).min, OVERFLOW)
    return abs(values), []


def _sign(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    ((values, source),) = operands
    if source.is_float:
        return np.sign(values), []
    return np.asarray(values > 0, np.int64) - np.asarray(values < 0, np.int64), []


def _root(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    ((values, _),) = operands
    negative = values < 0
    return np.sqrt(np.where(negative, 0.0, values)), faults_of(negative, UNDEFINED_ROOT)


def _to_integer(operands: list[Operand], type_: Type) -> Result:
    (given, source), _ = operands
    if source.is_float:  # the largest integer has no float: like Spark, take the one above for it
        is_largest = given == 2.0**63
        values, faults = to_integer([(np.where(is_largest, 0.0, given), source)], type_)
        values = np.where(is_largest, np.iinfo(np.int64).max, values)
    else:
        values, faults = to_integer(operands[:1], type_)
    bits = _literal(operands[1]) or 64  # there may be no row
    bound = 1 << (bits - 1)
    if bound.bit_length() < 64:
        reason = OVERFLOW if operands[0][1].is_integral else FAILED_CONVERSION
        faults = faults + faults_of((values >= bound) | (values < -bound), reason)
    return values, faults


def _single(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    ((values, _),) = operands
    rounded = _to_float32(values)
    return rounded, faults_of(np.isinf(rounded) & np.isfinite(values), OVERFLOW)


@_QUIETLY
def _to_float32(values: NativeArray) -> NativeArray:
    return values.astype(np.float32).astype(np.float64)


@_QUIETLY  # a signalling NaN
def _single_of_bits(values: NativeArray) -> NativeArray:
    return values.astype(np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)


@_QUIETLY
def _bits_of_single(values: NativeArray) -> NativeArray:
    return values.astype(np.float32).view(np.int32).astype(np.int64)


def _same_bits(dtype: Any) -> Kernel:
    return on_values(lambda values: np.ascontiguousarray(values).view(dtype))


NUMBER_FUNCTIONS: dict[str, Kernel] = {
    "multiply": _product,
    "divide": _quotient,
    "rem": _remainder,
    "fit": _fit,
    "round_to": partial(_round_to, ROUND_HALF_UP),
    "round_even": partial(_round_to, ROUND_HALF_EVEN),
    "floor_to": partial(_round_to, ROUND_FLOOR),
    "ceil_to": partial(_round_to, ROUND_CEILING),
    "rint": on_values(np.rint),
    "degrees": on_values(_QUIETLY(lambda values: values * 57.29577951308232)),
    "radians": on_values(lambda values: values * 0.017453292519943295),
    "floor": _whole(np.floor, is_up=False),
    "ceil": _whole(np.ceil, is_up=True),
    "abs": _absolute,
    "sign": _sign,
    "sqrt": _root,
    "to_integer": _to_integer,
    "to_float32": on_values(_to_float32),
    conversions.SINGLE: _single,
    conversions.SINGLE_OF_BITS: on_values(_single_of_bits),
    conversions.BITS_OF_SINGLE: on_values(_bits_of_single),
    conversions.AS_NUMBER: _same_bits(np.int64),
    conversions.AS_UNSIGNED: _same_bits(np.uint64),
    conversions.AS_FLOAT: _same_bits(np.float64),
}
