"""The functors of logic, choice, numbers, text and casts equal the oracle's, row by row."""

import math
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from corollary.core.functors.catalog import FUNCTORS, result_type
from corollary.core.logic import Constant, Expression, Functor, Variable
from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    FLOAT32,
    MONTHS,
    NUMBER,
    PRIMITIVES,
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNSIGNED,
    Kind,
    Type,
    decimal,
)
from corollary.core.values import decimal_value
from corollary.engines.local.evaluation.expressions import evaluate
from corollary.engines.local.evaluation.kernels import FEW_ROWS
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from oracles import scalars

MISSING = "no value"
DECIMALS = (decimal(12, 2), decimal(38, 0), decimal(38, 6), decimal(38, 38))
KINDS: dict[Kind, tuple[Type, ...]] = {
    **{type_.kind: (type_,) for type_ in (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP)},
    **{
        type_.logical_kind: (type_,)
        for type_ in (BINARY, FLOAT32, TIMESTAMP_NTZ, DURATION, MONTHS, TIME_OF_DAY)
    },
    Kind.DECIMAL: DECIMALS,
}
TEXTS = (
    *("", "a", "abc", "ABC def", "  pad ", "naïve", "ÄÖ ß", "😀x", "a%c", "a_c", "x\ny", "aXbXc"),
    *("1", " -7 ", "+007", "1.5", "1e3", "-.5", "1.", "0x1f", "9223372036854775808", "1e400"),
    *("nan", "-Infinity", "12.345", "99999999999999999999999999999999999999", "1e-50", "1e99999"),
    *("true", " YES", "n", "0", "2026", "2026-11", "2026-1-5", "2026-02-30", "2026-11-16 8:05"),
    *("2026-11-16T08:05:00.1234567+01:30", "2026-11-16 24:00", "20261116", "+2026-11-16 x"),
    *("2026-11-16 08:05:00 UTC", "9999-12-31 23:00-02:00", "a.b.c", ".", "abcabc", "a\\"),
)
NUMBERS = (0, 1, -1, 2, 3, -3, 5, 7, -45, 45, 55, 127, 128, 255, 256, -129, 32768, 2**31, 2**53 + 1)
LARGE = (2**63 - 1, -(2**63), 10**18, 915 * 10**16)
FLOATS = (
    *(0.0, 1.0, -1.0, 0.5, -2.5, 2.675, 1.005, 1e7, 1e-3, 123456.789, 1e16, 5e-324, 1e308),
    *(-(2.0**63), 2.0**63, 0.1 + 0.2, 9.995, math.inf, -math.inf, math.nan, 12345678.5, 1e22),
)
UNITS = (
    0,
    1,
    5,
    15,
    125,
    249,
    250,
    333,
    1000,
    10**9 + 5,
    10**17,
    10**18,
    2**63,
    10**30,
    10**38 - 1,
)
SAMPLES: dict[Kind, tuple[Any, ...]] = {
    Kind.SYMBOL: TEXTS,
    Kind.NUMBER: (*NUMBERS, *LARGE),
    Kind.UNSIGNED: (0, 1, 5, 15, 2**32, 2**63, 2**64 - 1, 10**19 + 5),
    Kind.FLOAT: FLOATS,
    Kind.BOOL: (True, False),
    Kind.DATE: (date(1, 1, 1), date(2026, 11, 16), date(9999, 12, 31)),
    Kind.TIMESTAMP: (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2026, 11, 16, 8, 5, 0, 123000, tzinfo=UTC),
        datetime(2026, 11, 16, 8, 5, tzinfo=UTC),
    ),
}
SAMPLES[Kind.FLOAT32] = 0.0, -2.5, 2.0**24, math.inf, math.nan
SAMPLES[Kind.BINARY] = b"", b"a", b"ab", b"\x00\xff", b"\xff"
SAMPLES[Kind.TIMESTAMP_NTZ] = tuple(each.replace(tzinfo=None) for each in SAMPLES[Kind.TIMESTAMP])
SAMPLES[Kind.DURATION] = tuple(
    timedelta(microseconds=each) for each in (0, 1, -1, 86_400_000_000, -90_061_500_000)
)
SAMPLES[Kind.TIME_OF_DAY] = time(), time(8, 5), time(23, 59, 59, 999_999)
SAMPLES[Kind.MONTHS] = 0, 1, -1, 14, -25, 2**31 - 1
PATTERNS = ("", "a", "[a-z]+", "(a)(b)?", "X|c$", "(?i)ABC", ".", "x*")
SMALL = (-9, -3, -1, 0, 1, 2, 3, 5, 9, 40, 2**63 - 1, -(2**63))
"""Numbers beside a text: places and lengths."""


def samples(type_: Type) -> tuple[Any, ...]:
    if type_.kind is not Kind.DECIMAL:
        return SAMPLES[type_.logical_kind]
    fitting = [each for each in UNITS if each < 10**type_.precision]
    return tuple(decimal_value(sign * each, type_.scale) for each in fitting for sign in (1, -1))


def signatures(name: str) -> list[tuple[Type, ...]]:
    """Return types that a functor can be applied to."""
    signature = FUNCTORS[name]
    counts = [len(signature.parameters)]
    if signature.is_variadic:
        counts.append(counts[0] + (2 if signature.is_paired else 1))
    found = []
    for count in counts:
        taken = [signature.kinds(at, count) & set(PRIMITIVES) for at in range(count)]
        for first in sorted(taken[0] if count == 1 else PRIMITIVES, key=str):
            kinds = [first if first in each else min(each) for each in taken]
            if first in taken[0] or signature.is_paired:
                found += [tuple(each) for each in product(*(KINDS[kind] for kind in kinds))]
    rng = random.Random(f"types of {name}")
    return rng.sample(found, min(len(found), 12))


def literal_choices(name: str, at: int) -> tuple[Any, ...]:
    if at in FUNCTORS[name].literals:
        allowed = FUNCTORS[name].literals[at]
        return tuple(
            each
            for each in allowed
            if isinstance(each, str) or -4 <= each <= 8 or each in (32, 64, 18, 38)
        )
    if at in FUNCTORS[name].patterns:
        return PATTERNS
    return (0,) if (name, at) == ("regexp_extract", 2) else ()


def computed(
    name: str, types: tuple[Type, ...], rows: list[tuple[Any, ...]], constant: dict[int, Any]
) -> list[Any]:
    """Return what the local engine computes for rows, some arguments of which are constant."""
    codes = Dictionary()
    frame: dict[str, Any] = {}
    arguments: list[Expression] = []
    digits = 0
    for at, type_ in enumerate(types):
        column = [row[at] for row in rows]
        if at in constant:
            arguments.append(Constant(constant[at], type_))
            digits = constant[at] if isinstance(constant[at], int) else digits
            continue
        nullable = type_.with_null(True)
        frame[f"x{at}"] = codes.encode_python(column, nullable)
        arguments.append(Variable(f"x{at}", nullable))
    kinds = tuple(each.type for each in arguments)
    functor = Functor(name, tuple(arguments), result_type(name, kinds, digits))  # type: ignore[arg-type]
    batch = evaluate(functor, frame, len(rows), codes)
    missing = batch.fault_mask
    nulls = batch.nulls
    result = []
    for row in range(len(rows)):
        if missing is not None and missing[row]:
            result.append(MISSING)
        elif nulls is not None and nulls[row]:
            result.append(None)
        else:
            result.append(native.to_python(batch.values[row], batch.type))
    return result


def expected(name: str, row: tuple[Any, ...], result: Type) -> Any:
    if name in scalars.OWN:
        found = scalars.own(name, lambda value: value is MISSING, list(row))
        if found is None or not isinstance(found, Decimal):
            return found
        return rescaled(found, result.scale)
    if None in row:
        return None
    try:
        if name in scalars.TYPED:
            return scalars.TYPED[name](str(result.kind), result.scale, *row)
        if name == "abs":
            return scalars.absolute(str(result.kind), *row)
        return scalars.STRICT[name](*row)
    except scalars.Missing:
        return MISSING


def rescaled(value: Decimal, scale: int) -> Any:
    digits = Fraction(value) * 10**scale
    assert digits.denominator == 1
    return MISSING if abs(digits) >= 10**38 else decimal_value(int(digits), scale)


def argument(dice: random.Random, type_: Type, *, has_text: bool, null_share: float) -> Any:
    if dice.random() < null_share:
        return None
    return dice.choice(SMALL if has_text and type_ is NUMBER else samples(type_))


def shown(value: Any) -> str:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


@pytest.mark.parametrize("count", [0, 1, FEW_ROWS // 2, FEW_ROWS * 5])
@pytest.mark.parametrize("name", sorted(scalars.NAMES))
def test_functors_equal_those_of_the_oracle(name: str, count: int) -> None:
    """No rows, one whose arguments may all be null, and few and many rows are computed alike."""
    dice = random.Random(f"{name} {count}")
    for types in signatures(name):
        if name == "show" and types[0].logical is Kind.MONTHS:  # a mere number to the oracle
            continue
        literals = {at: literal_choices(name, at) for at in range(len(types))}
        constant = {at: dice.choice(found) for at, found in literals.items() if found}
        share = 0.1 if count > 1 else 0.7
        has_text = any(type_.kind is Kind.SYMBOL for type_ in types)

        rows = [
            tuple(
                constant[at]
                if at in constant
                else argument(dice, type_, has_text=has_text, null_share=share)
                for at, type_ in enumerate(types)
            )
            for _ in range(count)
        ]
        digits = next((each for each in constant.values() if isinstance(each, int)), 0)
        result = result_type(name, types, digits)
        found = computed(name, types, rows, constant)
        for row, one in zip(rows, found, strict=True):
            other = expected(name, row, result)
            assert shown(one) == shown(other), (name, [str(type_) for type_ in types], row)
