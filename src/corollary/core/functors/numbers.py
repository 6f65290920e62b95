"""Functors of numbers: operators, bits, rounding."""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.spec import (
    Digits,
    FunctorSpec,
    Monotone,
    Nullness,
    Word,
    computed,
    define,
)
from corollary.core.types import DECIMAL_MAX_DIGITS

_define = partial(define, section="numbers")
_operator = partial(define, is_fallible=True, is_expanding=True, word=Word.WRAPPED, is_mixing=True)
_bits = partial(define, word=Word.CLOSED)

_SIGNED, _UNSIGNED = "number", "duckdb unsigned"
_INTEGERS = "duckdb number unsigned"
_MOST = range(DECIMAL_MAX_DIGITS + 1)
_REMAINDER = {
    # The least integer modulo -1 raises, though it is 0.
    "duckdb number": "CASE WHEN b = CAST('-1' AS BIGINT) THEN a * 0 ELSE TRY(a % b) END",
    "duckdb unsigned": "TRY(a % b)",
}

_HASHED = "number|float|decimal|symbol|bool|date|timestamp|binary"


def _truths(operator: str) -> dict[str, str]:
    """Return the templates of an operator on truths: `AND` would give 0 for null and 0."""
    return {
        key: operator.join(
            f"CAST({each} <> CAST('0' AS {type_}) AS {type_})" for each in ("a", "b")
        )
        for key, type_ in ((_SIGNED, "BIGINT"), (_UNSIGNED, "UBIGINT"))
    }


def _shift(function: str) -> dict[str, str]:
    return {"spark number": f"{function}(a, CAST(b & CAST('63' AS BIGINT) AS INT))"}


def arithmetic() -> Iterable[FunctorSpec]:
    """Yield the operators, whose table in the documentation is written by hand."""
    for sign, kinds, precedence, digits, spark, grows in (
        ("+", "numeric|symbol", 8, Digits.CARRY, "TRY_ADD", Monotone.ALL),
        ("-", "numeric", 8, Digits.CARRY, "TRY_SUBTRACT", Monotone.NONE),
        ("*", "numeric", 9, Digits.PRODUCT, "TRY_MULTIPLY", Monotone.NONE),
    ):
        yield _operator(
            f"{sign}(a: {kinds}, b: {kinds})",
            precedence=precedence,
            monotone=grows,
            digits=digits,
            readable=f"a {sign} b",
            exact={_INTEGERS: f"TRY(a {sign} b)", "spark number": f"{spark}(a, b)"},
        )
    yield _operator(
        "/(a: numeric, b: numeric)",
        precedence=9,
        digits=Digits.QUOTIENT,
        readable={"number unsigned": "a DIV b", "": "a / b"},
        exact={
            _INTEGERS: "TRY(a DIV b)",
            # Division by zero raises, and so does that of the least integer by -1.
            "spark number": "CASE WHEN NOT (b = CAST('0' AS BIGINT) OR ("
            "a = CAST('-9223372036854775808' AS BIGINT) AND b = CAST('-1' AS BIGINT)))"
            " THEN a DIV b END",
        },
    )
    yield define(
        "%(a: integral, b: integral)",
        precedence=9,
        is_fallible=True,
        word=Word.CLOSED,
        readable="a % b",
        exact=_REMAINDER
        | {
            "spark number": "CASE WHEN b = CAST('-1' AS BIGINT) THEN a & CAST('0' AS BIGINT)"
            " WHEN b <> CAST('0' AS BIGINT) THEN a % b END"
        },
    )
    yield define(
        "^(a: countable, b: countable)",
        precedence=11,
        is_fallible=True,
        is_expanding=True,
        word=Word.WRAPPED,
    )
    yield define(
        "neg(a: numeric)",
        prefix="-",
        is_fallible=True,
        word=Word.WRAPPED,
        readable="-a",
        exact={
            "duckdb number": "TRY(CAST('0' AS BIGINT) - a)",
            "duckdb unsigned": "TRY(CAST('0' AS UBIGINT) - a)",
            "spark number": "TRY_SUBTRACT(CAST('0' AS BIGINT), a)",
            "float": "CAST('0.0' AS DOUBLE) - a",
        },
    )
    for name, precedence, sign, readable in (
        ("band", 6, "&", {"": "a & b"}),
        ("bor", 4, "|", {"": "a | b"}),
        ("bxor", 5, "^", {}),
    ):
        yield _bits(
            f"{name}(a: integral, b: integral)",
            precedence=precedence,
            sql_names=name,
            readable=readable,
            exact=dict.fromkeys((_SIGNED, _UNSIGNED), f"a {sign} b"),
        )
    wrapped = partial(_bits, precedence=7, word=Word.WRAPPED)
    yield wrapped("bshl(a: integral, b: integral)", exact=_shift("SHIFTLEFT"))
    yield _bits("bshr(a: integral, b: integral)", precedence=7, exact=_shift("SHIFTRIGHT"))
    yield wrapped("bshru(a: integral, b: integral)", exact=_shift("SHIFTRIGHTUNSIGNED"))
    yield _bits("land(a: integral, b: integral)", precedence=3, exact=_truths(" & "))
    yield _bits("lor(a: integral, b: integral)", precedence=1, exact=_truths(" | "))
    yield _bits("lxor(a: integral, b: integral)", precedence=2, exact=_truths(" ^ "))
    yield define(
        "bnot(a: integral)",
        prefix="bnot",
        word=Word.WRAPPED,
        sql_names="bnot",
        exact=dict.fromkeys((_SIGNED, _UNSIGNED), "~a"),
    )
    yield _bits(
        "lnot(a: integral)",
        prefix="lnot",
        exact={
            _SIGNED: "CAST(a = CAST('0' AS BIGINT) AS BIGINT)",
            _UNSIGNED: "CAST(a = CAST('0' AS UBIGINT) AS UBIGINT)",
        },
    )
    for name, extreme in (("min", "least(arguments)"), ("max", "greatest(arguments)")):
        yield _bits(
            f"{name}(a: ordered, b: ordered, …)",
            is_reserved=True,
            is_choice=True,
            monotone=Monotone.ALL,
            readable=extreme,
        )
    yield _bits(
        "range(a: countable, b: countable, step?: countable)",
        is_reserved=True,
        is_fallible=True,
        is_expanding=True,
    )


def more_of_numbers() -> Iterable[FunctorSpec]:
    """Yield the functions of numbers."""
    exact_decimal = partial(
        _define, is_fallible=True, is_expanding=True, scale_at=2, literals={2: _MOST}
    )
    yield exact_decimal(
        "multiply(a: decimal, b: decimal, scale: number) -> decimal",
        "the exact product, rounded half away from zero to this many digits after the point",
        digits=Digits.PRODUCT,
    )
    yield exact_decimal(
        "divide(a: decimal, b: decimal, scale: number) -> decimal",
        "the exact quotient, rounded in the same way",
    )
    yield _define(
        "rem(a: numeric, b: numeric)",
        "the rest of a division, with the sign of the dividend",
        is_fallible=True,
        word=Word.CLOSED,
        exact=_REMAINDER,
    )
    yield _define(
        "fit(x: decimal, precision: number)",
        "the same; an overflow where it has more digits",
        operands=1,
        is_fallible=True,
        literals={1: _MOST[1:]},
        digits=Digits.FIRST,
    )
    yield _define(
        "round_to(x: numeric, digits: number)",
        "rounded half away from zero to a digit after the point, or, with negative digits, before"
        " it; the type stays. A float is rounded as the decimal that it is written as",
        operands=1,
        is_fallible=True,
        literals={1: range(-DECIMAL_MAX_DIGITS, DECIMAL_MAX_DIGITS + 1)},
        digits=Digits.ROUNDED,
    )
    for name, kinds, doc in (
        ("round_even", "numeric", "the same, but rounded half to even"),
        ("floor_to", "decimal", "the same, but rounded down"),
        ("ceil_to", "decimal", "the same, but rounded up"),
    ):
        yield _define(
            f"{name}(x: {kinds}, digits: number)",
            doc,
            operands=1,
            is_fallible=True,
            literals={1: range(-DECIMAL_MAX_DIGITS, DECIMAL_MAX_DIGITS + 1)},
            digits=Digits.ROUNDED,
        )
    for name, where in (("floor", "below"), ("ceil", "above")):
        doc = f"the next `number` {where}"
        yield _define(f"{name}(x: numeric) -> number", doc, is_fallible=True)
    yield _define(
        "abs(x: numeric)",
        "the value without its sign",
        is_fallible=True,
        word=Word.WRAPPED,
        digits=Digits.FIRST,
        readable="abs(x)",
        exact={"duckdb number": "TRY(ABS(x))", "duckdb unsigned": "x", "duckdb float": "ABS(x)"},
    )
    yield _define(
        "sign(x: numeric) -> number", "-1, 0 or 1; of a `float` a `float`", word=Word.CLOSED
    )
    yield _define(
        "sqrt(x: float) -> float",
        "the root, which numbers below 0 do not have",
        is_fallible=True,
        is_expanding=True,
        readable="sqrt(x)",
    )
    growing = partial(_define, is_expanding=True)
    yield growing(
        "power(x: float, y: float) -> float",
        "the power",
        sql_names="power pow",
        readable="power(x, y)",
    )
    for name, doc in (
        ("exp", "e to the power of x"),
        ("expm1", "the same, less 1"),
        ("cbrt", "the cube root"),
        ("sinh", "the hyperbolic sine"),
        ("cosh", "the hyperbolic cosine"),
        ("tanh", "the hyperbolic tangent"),
        ("asinh", "the inverse of `sinh`"),
        ("acosh", "the inverse of `cosh`"),
        ("atanh", "the inverse of `tanh`"),
        ("sin", "the sine of an angle in radians"),
        ("cos", "the cosine"),
        ("tan", "the tangent"),
        ("cot", "the cotangent"),
        ("sec", "the secant"),
        ("csc", "the cosecant"),
        ("asin", "the angle of a sine"),
        ("acos", "the angle of a cosine"),
        ("atan", "the angle of a tangent"),
    ):
        yield growing(f"{name}(x: float) -> float", doc, sql_names=name)
    for name, doc in (
        ("ln", "the natural logarithm, which only numbers above 0 have"),
        ("log2", "the logarithm to base 2"),
        ("log10", "the logarithm to base 10"),
        ("log1p", "the natural logarithm of 1 + x"),
    ):
        yield growing(f"{name}(x: float) -> float", doc, is_fallible=True)
    yield growing("hypot(x: float, y: float) -> float", "the root of x² + y²", sql_names="hypot")
    yield growing(
        "atan2(y: float, x: float) -> float", "the angle of the point (x, y)", sql_names="atan2"
    )
    yield _define(
        "to_integer(x: numeric, bits: number) -> number",
        "a `number` of 8, 16, 32 or 64 bits; a fraction is cut off",
        is_fallible=True,
        literals={1: (8, 16, 32, 64)},
    )
    for name, doc in (
        ("rint", "the nearest integer, half to even"),
        ("degrees", "radians in degrees"),
        ("radians", "degrees in radians"),
    ):
        yield _define(f"{name}(x: float) -> float", doc, sql_names=name)
    computed_number = partial(computed, section="numbers")
    yield computed_number(
        "bit_count(x: number|bool) -> number", "how many bits are 1", "CAST(BIT_COUNT(x) AS BIGINT)"
    )
    yield computed_number(
        "bin(x: number) -> symbol",
        "the bits",
        "CASE WHEN x >= 0 THEN TO_BASE(x, 2) ELSE CAST(CAST(x AS BIT) AS VARCHAR) END",
    )
    yield computed_number(
        "bit_get(x: number, at: number) -> number",
        "the bit at a place from 0, the lowest, to 63",
        "CASE WHEN at >= 0 AND at < 64 THEN (x >> at) & 1 END",
        is_fallible=True,
        sql_names="bit_get getbit",
    )
    yield computed_number(
        "factorial(n: number) -> number",
        "the product of the numbers to n, which is at most 20",
        "CASE WHEN n >= 0 AND n <= 20 THEN CAST(FACTORIAL(CAST(n AS INT)) AS BIGINT) END",
        is_fallible=True,
        sql_names="",
    )
    yield computed_number(
        "width_bucket(x: float, low: float, high: float, n: number) -> number",
        "which of n parts of the range it is in, 0 before it, n + 1 after it",
        "CASE WHEN n > 0 AND n < CAST('9223372036854775807' AS BIGINT) AND NOT ISNAN(x)"
        " AND low <> high AND ISFINITE(low) AND ISFINITE(high) THEN"
        " CASE WHEN CASE WHEN low < high THEN x < low ELSE x > low END THEN 0"
        " WHEN CASE WHEN low < high THEN x >= high ELSE x <= high END THEN n + 1"
        " WHEN low < high THEN TRY_CAST(TRUNC(n * (x - low) / (high - low)) AS BIGINT) + 1"
        " ELSE TRY_CAST(TRUNC(n * (low - x) / (low - high)) AS BIGINT) + 1 END END",
        is_fallible=True,
        sql_names="",
    )
    for name, doc in (
        ("murmur3", "the hash of 32 bits that Spark calls `hash`"),
        ("xxhash64", "the hash of 64 bits of the same name"),
    ):
        yield _define(
            f"{name}(x: {_HASHED}, seed: number, width: number) -> number",
            f"{doc}, on top of another one, which null leaves; the width is 4 or 8 bytes, or 0",
            literals={2: (0, 4, 8)},
            nullness=Nullness.NEVER,
        )
