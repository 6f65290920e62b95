"""Expressions of a single row, by codes: what is common and short, and the rest by vectors.

Each function here takes a row and returns a code, or `BY_VECTORS` where codes alone do not tell:
an integer that is interned, or a result that does not fit. Then the stage runs on vectors, which
know what is an error.
"""

import operator as operators
from collections.abc import Callable, Mapping
from operator import itemgetter

from corollary.core import logic
from corollary.core.functors import catalog
from corollary.core.logic import type_of
from corollary.engines.local.storage.code_range import (
    INTERNED_CODE,
    LAST_INLINE_CODE,
    ZERO_CODE,
)
from corollary.engines.local.storage.layout import Row
from corollary.engines.local.values.codes import Dictionary

BY_VECTORS = -1

RowExpression = Callable[[Row], int]

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "multiply": operators.mul,
    "to_decimal": operators.mul,
}


MAX_DEPTH = 20
"""Expressions that are nested deeper are left to vectors."""


def compile_expression(
    expression: object, register_of: Callable[[object], int], depth: int = 0
) -> RowExpression | None:
    """Return what computes an expression for a row; None if only vectors do.

    Args:
        expression: with the types that inference gave to it.
        register_of: returns where in a row a variable or constant is.
        depth: how many functors it is inside.
    """
    match expression:
        case logic.Variable() | logic.Constant():
            return itemgetter(register_of(expression))
        case logic.Functor(name=name, arguments=arguments) if depth < MAX_DEPTH:
            inputs = [compile_expression(each, register_of, depth + 1) for each in arguments]
            known = [each for each in inputs if each is not None]
            if len(known) < len(inputs):
                return None
            if name in catalog.COMPARISON_OPERATORS:
                return _compile_comparison(expression, known)
            if name == "if" and _is_one_domain(expression, (*arguments[1:-1:2], arguments[-1])):
                return _choice(known)
            if name == "is_null":
                return _null_test(*known)
            return _compile_arithmetic(expression, known)
        case _:
            pass
    return None


def _is_one_domain(expression: logic.Functor, values: tuple[object, ...]) -> bool:
    """Whether all values have the codes of an expression; null has the same code everywhere."""
    domain = type_of(expression).domain
    return all(
        type_of(each).domain == domain  # type: ignore[arg-type]
        for each in values
        if not (isinstance(each, logic.Constant) and each.value is None)
    )


def _compile_comparison(
    functor: logic.Functor, inputs: list[RowExpression]
) -> RowExpression | None:
    types = [type_of(each) for each in functor.arguments]  # type: ignore[arg-type]
    operator = catalog.COMPARISON_OPERATORS[functor.name]
    is_ordered = operator not in ("=", "!=")
    if types[0].domain != types[1].domain or (is_ordered and not Dictionary.has_integers(types[0])):
        return None
    one, two = inputs
    compare = logic.COMPARATORS[operator]

    def compared(row: Row) -> int:
        left, right = one(row), two(row)
        if left < 0 or right < 0 or (is_ordered and max(left, right) >= INTERNED_CODE):
            return BY_VECTORS
        return ZERO_CODE + compare(left, right) if left and right else 0

    return compared


def _choice(inputs: list[RowExpression]) -> RowExpression:
    tests, otherwise = list(zip(inputs[:-1:2], inputs[1:-1:2], strict=True)), inputs[-1]

    def chosen(row: Row) -> int:
        for test, value in tests:
            code = test(row)
            if code < 0:
                return BY_VECTORS
            if code and code != ZERO_CODE:
                return value(row)
        return otherwise(row)

    return chosen


def _null_test(tested: RowExpression) -> RowExpression:
    def is_null(row: Row) -> int:
        code = tested(row)
        return BY_VECTORS if code < 0 else ZERO_CODE + (not code)

    return is_null


def _compile_arithmetic(
    functor: logic.Functor, inputs: list[RowExpression]
) -> RowExpression | None:
    """Return what computes with numbers and decimals, without rounding."""
    compute = _ARITHMETIC.get(functor.name)
    types = [type_of(each) for each in (functor, *functor.arguments[:2])]  # type: ignore[arg-type]
    if compute is None or not all(each.is_number or each.is_decimal for each in types):
        return None
    scale, one, two = (each.scale for each in types)
    if functor.name == "to_decimal":  # whose second argument is a scale
        digits, inputs = (scale - one, 0), [inputs[0], lambda _: ZERO_CODE + 1]
    elif compute is operators.mul:
        digits = scale - one - two, 0
    else:
        digits = scale - one, scale - two
    if min(digits) < 0:
        return None
    units = 10 ** digits[0], 10 ** digits[1]
    most = 10 ** types[0].precision if types[0].is_decimal else INTERNED_CODE
    return _arithmetic(compute, inputs[0], inputs[1], units, most)


def _arithmetic(
    compute: Callable[[int, int], int],
    one: RowExpression,
    two: RowExpression,
    units: tuple[int, int],
    most: int,
) -> RowExpression:
    """Return what computes with integers in some units; a result of `most` or more overflows."""
    first, second = units

    def computed(row: Row) -> int:
        left, right = one(row), two(row)
        if left < 0 or right < 0 or max(left, right) >= INTERNED_CODE:
            return BY_VECTORS
        if not left or not right:
            return 0
        value = compute((left - ZERO_CODE) * first, (right - ZERO_CODE) * second)
        code = value + ZERO_CODE
        # Vectors decide what an overflow means.
        return code if abs(value) < most and 0 < code <= LAST_INLINE_CODE else BY_VECTORS

    return computed
