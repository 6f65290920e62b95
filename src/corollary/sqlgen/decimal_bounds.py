"""How many digits decimals can have: fewer than their types say, where the operands have few.

Inference gives everything that is computed all digits that there are. Here a type with fewer stands
for what an expression can be at most, so that an engine may compute with narrow integers, and need
not look for an overflow that cannot happen.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import Digits
from corollary.core.logic import Constant
from corollary.core.types import Type
from corollary.core.values import unscaled_integer


def _whole_digits(type_: Type) -> int:
    """Return the number of digits before the point."""
    return len(str(type_.spec.bounds[1])) if type_.is_integral else type_.precision - type_.scale


def most_digits(name: str, types: Sequence[Type], scale: int) -> int:
    """Return the number of digits, with those after the point, that the result can have at most.

    >>> from corollary.core.types import decimal
    >>> cents = decimal(12, 2)
    >>> most_digits("+", [cents, cents], 2), most_digits("*", [cents, cents], 2)
    (13, 22)
    """
    whole = [_whole_digits(type_) for type_ in types]
    match FUNCTORS[name].digits:
        case Digits.CARRY:
            return max(whole) + 1 + scale
        case Digits.PRODUCT:
            return sum(whole[:2]) + scale
        case Digits.FIRST:
            return whole[0] + scale
        case Digits.ROUNDED:
            return whole[0] + scale + 1
        case Digits.QUOTIENT:
            # The least divisor is one at the last place of its scale.
            return whole[0] + types[1].scale + scale
        case Digits.RESCALED:
            return whole[0] + scale + (scale < types[0].scale)
        case Digits.WIDEST:
            return max(whole) + scale


def narrow_result(name: str, types: Sequence[Type], result: Type) -> Type:
    """Return the type of what a functor can give at most; others than decimals stay.

    Args:
        name: the functor.
        types: what its operands can be.
        result: what inference says.
    """
    if not result.is_decimal:
        return result
    digits = most_digits(name, types, result.scale)
    return replace(result, precision=max(1, min(result.precision, digits)))


def can_overflow(name: str, types: Sequence[Type], result: Type) -> bool:
    """Whether a decimal can have more digits than its type."""
    return most_digits(name, types, result.scale) > result.precision


def narrow_constant(constant: Constant, type_: Type) -> Type:
    """Return the narrowest type that has a constant.

    >>> from corollary.core.types import decimal
    >>> money = decimal(38, 2)
    >>> narrow_constant(Constant(Decimal("1.19")), money).precision
    3
    """
    if not type_.is_decimal or not isinstance(constant.value, int | Decimal):
        return type_
    digits = len(str(abs(unscaled_integer(constant.value, type_.scale))))
    return replace(type_, precision=max(digits, type_.scale))
