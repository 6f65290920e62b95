"""Literals in the type that their place asks for."""

from decimal import ROUND_HALF_UP, Decimal

from corollary.core.terms import Constant, Value
from corollary.core.types import Kind, Type

_RANGES = {Kind.NUMBER: (-(2**63), 2**63 - 1), Kind.UNSIGNED: (0, 2**64 - 1)}


def convert(constant: Constant, type_: Type) -> Value:
    """Return the value of a literal in a type.

    >>> convert(Constant(5), Type(Kind.DECIMAL, precision=12, scale=2))
    Decimal('5.00')

    Raises:
        OverflowError: if the type has no such value; the message says why.
    """
    value = constant.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and type_.kind in _RANGES:
        least, most = _RANGES[type_.kind]
        if not least <= value <= most:
            raise OverflowError(f"`{type_.kind}` goes from {least} to {most}")
        return value
    if isinstance(value, int | float | Decimal):
        if type_.kind is Kind.FLOAT:
            return _float(value)
        if type_.kind is Kind.DECIMAL:
            return _decimal(value, type_)
    return value


def _float(value: float | Decimal) -> float:
    try:
        converted = float(value)
    except OverflowError:
        converted = float("inf")
    if converted in (float("inf"), float("-inf")):
        raise OverflowError("`float` goes to about 1.8e308")
    return converted + 0.0


def _decimal(value: float | Decimal, type_: Type) -> Decimal:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if exact.adjusted() >= type_.precision - type_.scale and exact != 0:
        whole = type_.precision - type_.scale
        raise OverflowError(f"`{type_}` has {whole} digits before the point")
    rounded = exact.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
    if rounded != exact:
        raise OverflowError(f"`{type_}` has {type_.scale} digits behind the point")
    return rounded or abs(rounded)
