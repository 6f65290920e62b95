"""Every functor and comparison of the local engine equals plain Python, row by row."""

import hashlib
import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import neg
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corollary.core.functors.catalog import FUNCTORS, HIGHER_ORDER, result_type
from corollary.core.functors.conversions import CHECKED_SUM, PARTITION_OF
from corollary.core.functors.holistic import ARGUMENTS
from corollary.core.functors.spec import Nullness
from corollary.core.logic import Condition, Constant, Functor, Variable
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Kind,
    Type,
    decimal,
)
from corollary.core.values import decimal_value
from corollary.engines.local.evaluation.expressions import (
    RangeValues,
    evaluate,
    evaluate_condition,
)
from corollary.engines.local.evaluation.functions import COMBINATIONS, STRICT_FUNCTIONS
from corollary.engines.local.evaluation.kernels import FEW_ROWS
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from support.comparison import oracle_result, package_result
from support.selection import examples
from support.sql.expressions import REWRITTEN

FAULT = "no value"
Row = tuple[Any, ...]
Typed = tuple[tuple[Type, ...], list[Row]]

LIMITS = {Kind.NUMBER: (-(2**63), 2**63 - 1), Kind.UNSIGNED: (0, 2**64 - 1)}
EDGES = [2**k + d for k in (8, 31, 32, 53, 62, 63, 64) for d in (-1, 0, 1)]
INTEGERS = st.one_of(
    st.integers(0, 70), st.sampled_from(EDGES), st.integers(0, 2**64 - 1), st.integers(0, 2**33)
)
DECIMALS = tuple(decimal(38, scale) for scale in (0, 1, 2, 9, 18, 38))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e308, 5e-324, -(2.0**63))
PLAIN = (NUMBER, UNSIGNED, FLOAT, SYMBOL, BOOL, DATE, TIMESTAMP)


def clipped(value: int, kind: Kind) -> int:
    low, high = LIMITS[kind]
    return value if low <= value <= high else value % 2**63


def values_of(type_: Type) -> st.SearchStrategy[Any]:
    kind = type_.kind
    signed = st.builds(lambda value, sign: sign * value, INTEGERS, st.sampled_from((1, -1)))
    if kind is Kind.DECIMAL:
        edges = (10**18 - 1, 1 - 10**18, 10**38 - 1, 1 - 10**38, -(2**63), 5, 15, -25)
        digits = st.one_of(signed, st.sampled_from(edges))
        return digits.map(lambda each: decimal_value(each, type_.scale))
    return {
        Kind.NUMBER: signed.map(lambda value: clipped(value, kind)),
        Kind.UNSIGNED: INTEGERS.map(lambda value: clipped(value, kind)),
        Kind.FLOAT: st.one_of(st.sampled_from(FLOATS), st.floats()),
        Kind.SYMBOL: st.one_of(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
            st.sampled_from(("", "a", "ab", "\uffff", "\U00010000", "12", "-7")),
        ),
        Kind.BOOL: st.booleans(),
        Kind.DATE: st.dates(),
        Kind.TIMESTAMP: st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0)),
    }[kind]


def rows_of(types: tuple[Type, ...]) -> st.SearchStrategy[list[Row]]:
    """One to six rows, an operand in eight null."""
    column = (st.one_of(*[values_of(each)] * 7, st.none()) for each in types)
    return st.lists(st.tuples(*column), min_size=1, max_size=6)


def frame_of(types: tuple[Type, ...], rows: list[Row], codes: Dictionary) -> dict[str, Any]:
    return {
        f"v{at}": codes.encode_python((row[at] for row in rows), type_)
        for at, type_ in enumerate(types)
    }


def computed(name: str, types: tuple[Type, ...], rows: list[Row], scale: int = 0) -> list[Any]:
    """Return what the engine makes of a functor over rows: values, None, FAULT."""
    codes = Dictionary()
    frame = frame_of(types, rows, codes)
    given_ = tuple(Variable(f"v{at}", each.with_null(True)) for at, each in enumerate(types))
    type_ = result_type(name, tuple(each.with_null(True) for each in types), scale)
    extra = (Constant(scale, NUMBER),) if name == "to_decimal" else ()
    batch = evaluate(Functor(name, (*given_, *extra), type_), frame, len(rows), codes)
    result = []
    for at, value in enumerate(batch.values.tolist()):
        is_fault = batch.fault_mask is not None and batch.fault_mask[at]
        is_null = batch.nulls is not None and batch.nulls[at]
        result.append(FAULT if is_fault else None if is_null else native.to_python(value, type_))
    return result


def shown(value: Any) -> str:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    return repr(value)


def agrees(name: str, types: tuple[Type, ...], rows: list[Row], function: Any, **more: Any) -> None:
    wanted = [None if None in row else function(*row) for row in rows]
    # Few rows are computed one by one, many at once.
    for copies in (1, 1 + FEW_ROWS // len(rows)):
        found = computed(name, types, rows * copies, **more)
        assert list(map(shown, found)) == list(map(shown, wanted * copies)), (name, types, rows)


# --- the reference ----------------------------------------------------------------------------


def bounded(value: int, kind: Kind) -> Any:
    low, high = LIMITS[kind]
    return value if low <= value <= high else FAULT


def rounded(value: Fraction, scale: int) -> Any:
    digits = math.floor(abs(value) * 10**scale + Fraction(1, 2)) * (1 if value >= 0 else -1)
    return decimal_value(digits, scale) if abs(digits) < 10**38 else FAULT


def integer(name: str, kind: Kind, x: int, y: int) -> Any:
    if (name in "/%" and y == 0) or (name == "^" and x == 0 and y < 0):
        return FAULT
    if name == "^" and (abs(x) < 2 or y < 0):
        return x ** (abs(y) % 2 + 2 * (y != 0)) if abs(x) < 2 else 0
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
    result = {
        "+": x + y,
        "-": x - y,
        "*": x * y,
        "/": quotient,
        "%": x - y * quotient,
        "^": x ** min(y, 64) if y >= 0 else 0,
    }[name]
    return bounded(result, kind)


def floating(name: str, x: float, y: float) -> Any:
    if (name == "/" and y == 0) or (name == "^" and x == 0 and y < 0):
        return FAULT
    try:
        if name == "^":
            result = math.pow(x, y)
        else:
            result = {"+": x + y, "-": x - y, "*": x * y, "/": x / (y or 1.0)}[name]
    except (OverflowError, ValueError):
        return FAULT
    return FAULT if math.isinf(result) and math.isfinite(x) and math.isfinite(y) else result


def exact(name: str, x: Decimal, y: Decimal, scale: int) -> Any:
    one, two = Fraction(x), Fraction(y)
    if name == "/":
        return rounded(one / two, scale) if two else FAULT
    return rounded({"+": one + two, "-": one - two, "*": one * two}[name], scale)


def bits(name: str, kind: Kind, x: int, y: int = 0) -> int:
    p, q = x != 0, y != 0
    pattern, shift = x % 2**64, y % 64
    result = {
        "band": x & y, "bor": x | y, "bxor": x ^ y, "bnot": ~x,
        "bshl": x << shift, "bshr": x >> shift, "bshru": pattern >> shift,
        "land": p and q, "lor": p or q, "lxor": p != q, "lnot": not p,
    }[name] % 2**64  # fmt: skip
    return result - 2**64 if kind is Kind.NUMBER and result >= 2**63 else result


def key(value: Any) -> Any:
    """The order of values: NaN equals NaN and is greatest."""
    return (math.isnan(value), 0 if math.isnan(value) else value) if type(value) is float else value


def to_integer(value: Any, kind: Kind) -> Any:
    if isinstance(value, str):
        found = re.fullmatch(r"([+-]?)([0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)", value)
        if not found:
            return FAULT
        base = {"x": 16, "b": 2}.get(found[2][1:2].lower(), 10)
        return bounded(int(found[1] + found[2], base), kind)
    if isinstance(value, float) and not math.isfinite(value):
        return FAULT
    return bounded(int(value), kind)


def to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, float):
        return shown(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


# --- arithmetic -------------------------------------------------------------------------------


@st.composite
def typed_rows(draw: st.DrawFn, *choices: tuple[Type, ...]) -> Typed:
    types = draw(st.sampled_from(choices))
    return types, draw(rows_of(types))


INTEGRAL = ((NUMBER, NUMBER), (UNSIGNED, UNSIGNED))


@settings(max_examples=examples(25, 150))
@given(st.sampled_from("+-*/%^"), typed_rows(*INTEGRAL))
@example("/", ((NUMBER, NUMBER), [(-(2**63), -1), (-(2**63), 1), (-7, 2), (7, -2)]))
@example("%", ((NUMBER, NUMBER), [(-(2**63), -1), (-7, 2), (7, -2), (1, 0)]))
@example("^", ((NUMBER, NUMBER), [(0, -1), (0, 0), (-2, 63), (2, 63), (-1, -3), (3, -2)]))
@example("*", ((NUMBER, NUMBER), [(-(2**62), 2), (2**62, 2), (3037000500, 3037000500)]))
def test_integers(name: str, case: Typed) -> None:
    types, rows = case
    agrees(name, types, rows, lambda x, y: integer(name, types[0].kind, x, y))


@settings(max_examples=examples(25, 100))
@given(st.sampled_from("+-*/"), rows_of((FLOAT, FLOAT)))
def test_floats(name: str, rows: list[Row]) -> None:
    agrees(name, (FLOAT, FLOAT), rows, lambda x, y: floating(name, x, y))


@settings(max_examples=examples(25, 100))
@given(rows_of((FLOAT, FLOAT)))
def test_powers_of_floats(rows: list[Row]) -> None:
    found = computed("^", (FLOAT, FLOAT), rows)
    for row, value in zip(rows, found, strict=True):
        wanted = None if None in row else floating("^", *row)
        near = isinstance(value, float) and isinstance(wanted, float)
        assert shown(value) == shown(wanted) or (near and math.isclose(value, wanted)), row


@settings(max_examples=examples(25, 100))
@given(st.sampled_from("+-*/"), typed_rows(*((one, two) for one in DECIMALS for two in DECIMALS)))
def test_decimals(name: str, case: Typed) -> None:
    types, rows = case
    scale = max(each.scale for each in types)
    agrees(name, types, rows, lambda x, y: exact(name, x, y, scale))


@given(typed_rows((NUMBER,), (UNSIGNED,), (FLOAT,), *((each,) for each in DECIMALS)))
@example(((NUMBER,), [(-(2**63),), (0,), (5,)]))
def test_negation(case: Typed) -> None:
    types, rows = case
    kind = types[0].kind
    opposite = Decimal.copy_negate if kind is Kind.DECIMAL else neg
    agrees(
        "neg",
        types,
        rows,
        lambda x: bounded(-x, kind) if kind in LIMITS else opposite(x) if x else x,
    )


@settings(max_examples=examples(25, 100))
@given(
    st.sampled_from(("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")),
    typed_rows(*INTEGRAL),
)
def test_bits(name: str, case: Typed) -> None:
    types, rows = case
    agrees(name, types, rows, lambda x, y: bits(name, types[0].kind, x, y))


@given(st.sampled_from(("bnot", "lnot")), typed_rows((NUMBER,), (UNSIGNED,)))
def test_bits_of_one(name: str, case: Typed) -> None:
    types, rows = case
    agrees(name, types, rows, lambda x: bits(name, types[0].kind, x))


def test_shifts_are_by_the_amount_modulo_64() -> None:
    rows = [(-8, amount) for amount in (0, 1, 63, 64, 65, -1)]
    assert computed("bshr", (NUMBER, NUMBER), rows) == [-8, -4, -1, -8, -4, -1]
    assert computed("bshru", (NUMBER, NUMBER), rows)[1] == 2**63 - 4
    assert computed("bshl", (UNSIGNED, UNSIGNED), [(1, 63), (2, 63)]) == [2**63, 0]


SAME = st.one_of(
    typed_rows(*((each, each) for each in PLAIN), *((each,) * 4 for each in PLAIN)),
    typed_rows((DECIMALS[0], DECIMALS[2]), (DECIMALS[2], DECIMALS[4], DECIMALS[0])),
)


@settings(max_examples=examples(25, 100))
@given(st.sampled_from(("min", "max")), SAME)
@example("max", ((DECIMALS[0], DECIMALS[2]), [(Decimal(10**17), Decimal("1.00"))]))
def test_extremes(name: str, case: Typed) -> None:
    types, rows = case
    choose = min if name == "min" else max

    def reference(*values: Any) -> Any:
        best = choose(values, key=key)
        is_decimal = types[0].kind is Kind.DECIMAL
        return rounded(Fraction(best), max(each.scale for each in types)) if is_decimal else best

    agrees(name, types, rows, reference)


# --- text and conversions -----------------------------------------------------------------------


@given(rows_of((SYMBOL, SYMBOL, SYMBOL)))
def test_concatenation(rows: list[Row]) -> None:
    agrees("cat", (SYMBOL,) * 3, rows, lambda *parts: "".join(parts))


@given(rows_of((SYMBOL, NUMBER, NUMBER)))
@example([("abc", 1, 2**63 - 1), ("abc", 3, 1), ("abc", 4, 1), ("abc", -1, 2), ("abc", 0, -1)])
def test_parts_of_text(rows: list[Row]) -> None:
    def reference(text: str, index: int, length: int) -> str:
        return text[index:][:length] if 0 <= index <= len(text) and length >= 0 else ""

    agrees("substr", (SYMBOL, NUMBER, NUMBER), rows, reference)


@given(rows_of((SYMBOL,)))
def test_measures_of_text(rows: list[Row]) -> None:
    agrees("strlen", (SYMBOL,), rows, len)
    digest = hashlib.sha256
    agrees("ord", (SYMBOL,), rows, lambda s: int(digest(s.encode()).hexdigest()[:15], 16))


NUMERALS = (
    "0", "-0", "+7", "007", "0x1f", "-0X1F", "0b101", "0b2", "0x", "", " 1", "1 ", "1_0", "1.0",
    "١", "--1", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551615", "18446744073709551616", "-1", "9" * 100, "abc", "-9223372036854775809",
)  # fmt: skip


@settings(max_examples=examples(25, 100))
@given(
    st.sampled_from(("to_number", "to_unsigned")),
    typed_rows((NUMBER,), (UNSIGNED,), (FLOAT,), (BOOL,), (SYMBOL,), *((d,) for d in DECIMALS)),
)
@example("to_number", ((FLOAT,), [(-(2.0**63),), (2.0**63,), (-0.9,), (math.nan,)]))
@example("to_unsigned", ((FLOAT,), [(-0.9,), (-1.0,), (2.0**64,), (2.0**63,)]))
@example("to_number", ((SYMBOL,), [(text,) for text in NUMERALS]))
@example("to_unsigned", ((SYMBOL,), [(text,) for text in NUMERALS]))
def test_conversions_to_integers(name: str, case: Typed) -> None:
    types, rows = case
    kind = Kind(name.removeprefix("to_"))
    agrees(name, types, rows, lambda value: to_integer(value, kind))


FRACTIONS = (
    ("1.5", 1.5), ("-2", -2.0), ("1e3", 1000.0), ("1E-2", 0.01), ("inf", math.inf),
    ("-inf", -math.inf), ("nan", math.nan), ("1e400", FAULT), ("", FAULT), (" 1", FAULT),
    ("1_0", FAULT), ("abc", FAULT), ("0x10", FAULT), ("١", FAULT), ("-0", 0.0),
)  # fmt: skip


@given(typed_rows((NUMBER,), (UNSIGNED,), (FLOAT,), (BOOL,), *((each,) for each in DECIMALS)))
def test_conversions_to_floats(case: Typed) -> None:
    types, rows = case
    agrees("to_float", types, rows, lambda v: v if isinstance(v, float) else float(Fraction(v)))


def test_text_as_floats() -> None:
    wanted = dict(FRACTIONS)
    agrees("to_float", (SYMBOL,), [(text,) for text in wanted], wanted.__getitem__)


def decimal_reference(value: Any, scale: int) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value):
        return FAULT
    if isinstance(value, float) and not math.isfinite(value):
        return FAULT
    return rounded(Fraction(value), scale)


@settings(max_examples=examples(20, 60))
@given(
    typed_rows((NUMBER,), (UNSIGNED,), (FLOAT,), *((each,) for each in DECIMALS)),
    st.integers(0, 18),
)
@example(((DECIMALS[2],), [(Decimal("0.05"),), (Decimal("-0.05"),), (Decimal("0.04"),)]), 1)
@example(((FLOAT,), [(0.125,), (-0.125,), (1e17,)]), 2)
def test_conversions_to_decimals(case: Typed, scale: int) -> None:
    types, rows = case
    agrees("to_decimal", types, rows, lambda v: decimal_reference(v, scale), scale=scale)


def test_text_as_decimals() -> None:
    good = ("12.345", "-12.345", "+7", "007", "0.00499", "999999999999999.999", "9" * 100)
    bad = ("", "abc", " 1", "1 ", "1_0", "NaN", "Infinity", "١", "--1", "1e3", "1e99999999")
    rows = [(text,) for text in (*good, *bad)]
    agrees("to_decimal", (SYMBOL,), rows, lambda text: decimal_reference(text, 2), scale=2)


@given(typed_rows(*((each,) for each in (*PLAIN, *DECIMALS))))
def test_conversions_to_text(case: Typed) -> None:
    types, rows = case
    agrees("to_string", types, rows, to_text)


@given(rows_of((TIMESTAMP,)), rows_of((DATE,)))
def test_dates_and_times(times: list[Row], dates: list[Row]) -> None:
    agrees("to_date", (TIMESTAMP,), times, lambda moment: moment.date())
    agrees("to_timestamp", (DATE,), dates, lambda day: datetime.combine(day, time(), UTC))


def test_text_as_dates_and_times() -> None:
    days = {"2026-11-15": date(2026, 11, 15), "2026-02-30": FAULT, "2026-1-5": FAULT, "": FAULT}
    agrees("to_date", (SYMBOL,), [(text,) for text in days], days.__getitem__)
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    moments = {
        "2026-11-15T12:00:00Z": noon,
        "2026-11-15T12:00:00.5Z": noon + timedelta(microseconds=500_000),
        "2026-11-15T14:00:00+02:00": noon,
        "2026-11-15T25:00:00Z": FAULT,
        "0001-01-01T00:00:00+02:00": FAULT,
        "noon": FAULT,
    }
    agrees("to_timestamp", (SYMBOL,), [(text,) for text in moments], moments.__getitem__)


# --- comparisons --------------------------------------------------------------------------------

PAIRS = (*((each, each) for each in PLAIN), *((one, two) for one in DECIMALS for two in DECIMALS))


def judged(operator: str, types: tuple[Type, ...], rows: list[Row]) -> tuple[list[bool], list[str]]:
    codes = Dictionary()
    sides = [Variable(f"v{at}", each.with_null(True)) for at, each in enumerate(types)]
    verdict = evaluate_condition(
        Condition(operator, *sides), frame_of(types, rows, codes), len(rows), codes
    )
    return verdict.true.tolist(), [reason for _, reason in verdict.faults]


@settings(max_examples=examples(25, 150))
@given(st.sampled_from(("=", "!=", "<", "<=", ">", ">=", "is")), typed_rows(*PAIRS), st.booleans())
def test_comparisons(operator: str, case: Typed, twice: bool) -> None:
    types, rows = case
    if twice and types[0] == types[1]:
        rows = [(one, one) for one, _ in rows]

    def reference(one: Any, two: Any) -> bool:
        if one is None or two is None:
            return operator == "is" and one is two
        x, y = key(one), key(two)
        return {"=": x == y, "is": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y,
                ">=": x >= y}[operator]  # fmt: skip

    assert judged(operator, types, rows) == ([reference(*row) for row in rows], [])


def test_patterns_and_parts() -> None:
    types = (SYMBOL, SYMBOL)
    rows = [("a.*", "abc"), ("b", "abc"), ("(", "abc"), (None, "a"), ("a", None), ("", "")]
    assert judged("match", types, rows) == (
        [True, False, False, False, False, True],
        ["invalid pattern"],
    )
    assert judged("!match", types, rows)[0] == [False, True, False, False, False, False]
    pattern = Functor(
        "null_if", (Variable("v0", SYMBOL), Variable("v0", SYMBOL)), SYMBOL.with_null(True)
    )
    condition = Condition("match", pattern, Variable("v1", SYMBOL))
    codes = Dictionary()
    verdict = evaluate_condition(condition, frame_of(types, [("(", "a")], codes), 1, codes)
    assert (verdict.true.tolist(), verdict.faults) == ([False], ())
    assert judged("contains", types, rows)[0] == [False, True, False, False, False, True]
    assert judged("!contains", types, rows)[0] == [True, False, True, False, False, False]


@pytest.mark.parametrize("operator", ["=", "<", "!=", "match", "contains", "!contains"])
@pytest.mark.parametrize("type_", [SYMBOL, NUMBER, FLOAT], ids=str)
def test_comparisons_with_the_constant_null_are_false(operator: str, type_: Type) -> None:
    if type_ is not SYMBOL and operator in {"match", "contains", "!contains"}:
        return
    codes = Dictionary()
    value = "a" if type_ is SYMBOL else 1
    frame = frame_of((type_,), [(value,)], codes)
    sides = (Constant(None, type_.with_null(True)), Variable("v0", type_))
    for left, right in (sides, sides[::-1]):
        assert evaluate_condition(
            Condition(operator, left, right), frame, 1, codes
        ).true.tolist() == [False]


# --- missing values -----------------------------------------------------------------------------


def test_a_missing_value_beats_null() -> None:
    codes = Dictionary()
    frame = frame_of((NUMBER, NUMBER), [(None, 0), (None, 1), (1, 0), (1, 1)], codes)
    x, y = Variable("v0", NUMBER.with_null(True)), Variable("v1", NUMBER)
    quotient = Functor("/", (Constant(1, NUMBER), y), NUMBER)
    batch = evaluate(Functor("+", (x, quotient), NUMBER.with_null(True)), frame, 4, codes)
    assert batch.fault_mask is not None
    assert batch.fault_mask.tolist() == [True, False, True, False]
    assert [reason for _, reason in batch.faults] == ["division by zero"]
    assert batch.values[3] == 2
    verdict = evaluate_condition(Condition("=", x, quotient), frame, 4, codes)
    assert verdict.true.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("name", "types", "row", "reason"),
    [
        ("+", (NUMBER, NUMBER), (2**63 - 1, 1), "overflow"),
        ("*", (FLOAT, FLOAT), (1e300, 1e300), "overflow"),
        ("/", (FLOAT, FLOAT), (1.0, 0.0), "division by zero"),
        ("^", (FLOAT, FLOAT), (-8.0, 0.5), "undefined power"),
        ("^", (FLOAT, FLOAT), (0.0, -1.0), "division by zero"),
        ("to_number", (SYMBOL,), ("x",), "failed conversion"),
        ("*", (DECIMALS[2], DECIMALS[2]), (Decimal(10**20), Decimal(10**20)), "overflow"),
    ],
)
def test_the_reason_is_told(name: str, types: tuple[Type, ...], row: Row, reason: str) -> None:
    codes = Dictionary()
    variables = tuple(Variable(f"v{at}", each) for at, each in enumerate(types))
    functor = Functor(name, variables, result_type(name, types))
    batch = evaluate(functor, frame_of(types, [row], codes), 1, codes)
    assert [why for _, why in batch.faults] == [reason]


@given(rows_of((NUMBER, NUMBER, NUMBER)).map(lambda rows: [
    tuple(None if v is None else v % 40 - 20 for v in row) for row in rows]))  # fmt: skip
def test_ranges(rows: list[Row]) -> None:
    codes = Dictionary()
    frame = frame_of((NUMBER,) * 3, rows, codes)
    start, end, step = (Variable(f"v{at}", NUMBER.with_null(True)) for at in range(3))
    for arguments in ((start, end), (start, end, step)):
        numbers = RangeValues(Functor("range", arguments, NUMBER), frame, len(rows), codes)
        found = [
            pair
            for made, values in numbers.batches()
            for pair in zip(made.tolist(), codes.decode(values, NUMBER).tolist(), strict=True)
        ]
        wanted = []
        for at, row in enumerate(rows):
            a, b, c = row if len(arguments) == 3 else (*row[:2], 0)
            if None in row[: len(arguments)]:
                continue
            if len(arguments) == 3 and c == 0:
                wanted += [(at, a)] * (a != b)
                continue
            wanted += [(at, n) for n in range(a, b, c or (1 if a <= b else -1))]
        assert (found, numbers.faulty_rows.tolist()) == (wanted, [])


def test_sums_of_floats_are_exact() -> None:
    text = ".decl p(k: number, x: float)\n.decl r(x: float)\nr(n) :- n = sum x : { p(_, x) }.\n"
    for values in (
        [1.7e308, 1.7e308, -1.7e308],
        [1e308, 1e308],
        [1e16, 1.0, -1e16],
        [math.inf, -math.inf, 1.0],
        [5e-324, 1.7e308, 1.7e308, -1.7e308, -1.7e308],
        [-0.0],
    ):
        facts = {"p": list(enumerate(values))}
        assert package_result(text, facts) == oracle_result(text, facts), values


def test_every_functor_is_here() -> None:
    may_be_null = (Nullness.STRICT, Nullness.ALWAYS)
    strict = {name for name in FUNCTORS if FUNCTORS[name].nullness in may_be_null}
    own = {"range", PARTITION_OF, CHECKED_SUM, ARGUMENTS, *REWRITTEN, *HIGHER_ORDER}
    assert STRICT_FUNCTIONS.keys() <= strict
    assert STRICT_FUNCTIONS.keys().isdisjoint(COMBINATIONS)
    assert STRICT_FUNCTIONS.keys() | COMBINATIONS.keys() == FUNCTORS.keys() - own
