"""Values become codes and come back: for every type, on every way in and out."""

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from corollary.engines.local.storage.code_range import INTERNED_CODE, ZERO_CODE
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.domains import RECENT_VALUES_MAX
from support.selection import examples

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
EXTREMES: dict[Kind, tuple[Any, ...]] = {
    Kind.SYMBOL: ("", " ", "\0", "a\0", "é", "e\u0301", "\U0001f600", "\uffff", "null", "x" * 999),
    Kind.NUMBER: (
        *(0, 1, -1, 2**61 - 1, 2**61, 2**61 + 1, -(2**61), -(2**61) - 1),
        *(2**62, -(2**62), 2**63 - 1, -(2**63)),
    ),
    Kind.UNSIGNED: (
        *(0, 1, 2**61 - 1, 2**61, 2**61 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 2**61),
        *(2**64 - 2**61, 2**64 - 2**61 - 1, 2**64 - 1),
    ),
    Kind.FLOAT: (0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, OTHER_NAN, 5e-324, -1.8e307, 0.1),
    Kind.BOOL: (False, True),
    Kind.DATE: (date.min, date(1969, 12, 31), date(1970, 1, 1), date(2026, 11, 15), date.max),
    Kind.TIMESTAMP: (
        datetime.min.replace(tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 11, 15, 8, 0, 0, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ),
}
TYPES = (SYMBOL, NUMBER, UNSIGNED, FLOAT, BOOL, DATE, TIMESTAMP)
DECIMALS = tuple(
    decimal(p, s)
    for p, s in ((18, 0), (18, 2), (38, 0), (38, 2), (38, 38), (20, 0), (6, 2), (1, 0), (1, 1))
)
ARROW: dict[Kind, pa.DataType] = {
    Kind.SYMBOL: pa.string(),
    Kind.NUMBER: pa.int64(),
    Kind.UNSIGNED: pa.uint64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
RANDOM: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.SYMBOL: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    Kind.NUMBER: st.integers(-(2**63), 2**63 - 1),
    Kind.UNSIGNED: st.integers(0, 2**64 - 1),
    Kind.FLOAT: st.floats(),
    Kind.BOOL: st.booleans(),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0)),
}


def values_of(type_: Type) -> st.SearchStrategy[Any]:
    if type_.kind is Kind.DECIMAL:
        top = 10**type_.precision - 1
        edges = (0, 1, -1, top, -top, 2**61, -(2**61) - 1, 2**63 - 1, 2**63, -(2**63), 2**64)
        near = st.sampled_from([each for each in edges if -top <= each <= top])
        digits = st.one_of(near, st.integers(-top, top))
        return digits.map(lambda each: decimal_value(each, type_.scale))
    return st.one_of(st.sampled_from(EXTREMES[type_.kind]), RANDOM[type_.kind])


def arrow_of(values: list[Any], type_: Type, chunks: int = 2) -> pa.ChunkedArray:
    kind = ARROW.get(type_.kind) or pa.decimal128(type_.precision, type_.scale)
    cut = len(values) // chunks
    return pa.chunked_array([pa.array(values[:cut], kind), pa.array(values[cut:], kind)], kind)


def shown(value: Any) -> str:
    """A value such that equal ones look equal: one NaN, no -0.0, but 1 and true differ."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return repr(value)


@st.composite
def columns(draw: st.DrawFn) -> tuple[Type, list[Any]]:
    """Draws a type, and values and nulls of it."""
    type_ = draw(st.sampled_from((*TYPES, *DECIMALS)))
    return type_, draw(st.lists(st.one_of(values_of(type_), values_of(type_), st.none())))


@given(columns())
@settings(max_examples=examples(25, 200))
def test_values_come_back(column: tuple[Type, list[Any]]) -> None:
    type_, values = column
    codes = Dictionary()
    coded = codes.encode_python(values, type_)
    assert coded.dtype == np.int64
    assert [int(code) == 0 for code in coded] == [value is None for value in values]
    arrow = codes.decode_arrow(coded, type_)
    assert list(map(shown, arrow.to_pylist())) == list(map(shown, values))
    plain = codes.decode(coded, type_).tolist()
    for value, found in zip(values, plain, strict=True):
        assert value is None or shown(native.to_python(found, type_)) == shown(value)
    assert codes.nbytes >= 0


@given(columns(), st.booleans())
@settings(max_examples=examples(25, 200))
def test_all_ways_in_agree(column: tuple[Type, list[Any]], arrow_first: bool) -> None:
    type_, values = column
    codes = Dictionary()
    nulls = np.array([value is None for value in values], np.bool_)
    blank = next((value for value in values if value is not None), None)
    whole = [blank if value is None else value for value in values] if blank is not None else []

    def by_arrow() -> list[int]:
        return codes.encode_arrow(arrow_of(values, type_), type_).tolist()

    def by_python() -> list[int]:
        return codes.encode_python(values, type_).tolist()

    first, second = (by_arrow, by_python) if arrow_first else (by_python, by_arrow)
    wanted = first()
    assert second() == wanted
    assert [codes.encode_value(value, type_) for value in values] == wanted
    if whole:
        assert codes.encode(native.from_python(whole, type_), nulls, type_).tolist() == wanted
        some = codes.encode(native.from_python(whole, type_), None, type_)
        assert some[~nulls].tolist() == [code for code in wanted if code]


@given(columns(), st.data())
def test_codes_are_stable_and_tell_values_apart(
    column: tuple[Type, list[Any]], data: st.DataObject
) -> None:
    type_, values = column
    codes = Dictionary()
    before = codes.encode_python(values, type_).tolist()
    codes.encode_python(data.draw(st.lists(values_of(type_))), type_)
    codes.encode_arrow(arrow_of(data.draw(st.lists(values_of(type_))), type_), type_)
    after = codes.encode_python(values, type_).tolist()
    assert after == before
    seen = dict(zip(map(shown, values), before, strict=True))
    assert len(set(seen.values())) == len(seen)
    assert [seen[shown(value)] for value in values] == before


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_extremes(type_: Type) -> None:
    codes = Dictionary()
    values = [None, *EXTREMES[type_.kind], None]
    coded = codes.encode_python(values, type_)
    assert codes.encode_arrow(arrow_of(values, type_), type_).tolist() == coded.tolist()
    found = codes.decode_arrow(coded, type_)
    assert found.type == ARROW[type_.kind]
    assert list(map(shown, found.to_pylist())) == list(map(shown, values))


def test_equal_floats_have_one_code() -> None:
    codes = Dictionary()
    assert len(set(codes.encode_python([0.0, -0.0, 0], FLOAT).tolist())) == 1
    assert len(set(codes.encode_python([math.nan, OTHER_NAN, -math.nan], FLOAT).tolist())) == 1
    zeros = pa.chunked_array([pa.array([-0.0, 0.0, OTHER_NAN, math.nan])])
    assert codes.encode_arrow(zeros, FLOAT).tolist() == [1, 1, 2, 2]


def test_types_that_join_share_a_domain() -> None:
    codes = Dictionary()
    assert codes.domain(NUMBER) is codes.domain(NUMBER.with_null(True))
    assert codes.domain(decimal(18, 2)) is codes.domain(decimal(6, 2).with_null(True))
    assert codes.domain(decimal(18, 2)) is not codes.domain(decimal(18, 3))
    assert codes.domain(NUMBER) is not codes.domain(UNSIGNED)


def test_integers_are_their_own_codes() -> None:
    codes = Dictionary()
    assert codes.encode_python([6, 0, None, -1], NUMBER).tolist() == [
        ZERO_CODE + 6,
        ZERO_CODE,
        0,
        ZERO_CODE - 1,
    ]
    edges = [-(2**61), 2**61 - 1, 2**61, -(2**61) - 1]
    for values in (edges, edges * 20):  # one by one, and as arrays
        coded = codes.encode_python(values, NUMBER).tolist()[:4]
        assert coded == [1, 2**62, INTERNED_CODE, INTERNED_CODE + 1]
    assert codes.encode_python([2**61 - 1, 2**63], UNSIGNED).tolist() == [2**62, INTERNED_CODE]
    assert codes.encode_python(["a", "b", "a"], SYMBOL).tolist() == [1, 2, 1]
    assert codes.encode_python([date(1970, 1, 2)], DATE).tolist() == [ZERO_CODE + 1]
    assert codes.encode_python([Decimal("1.25")], decimal(9, 2)).tolist() == [ZERO_CODE + 125]


@given(columns())
def test_codes_are_in_the_order_of_values_unless_one_is_interned(
    column: tuple[Type, list[Any]],
) -> None:
    type_, values = column
    codes = Dictionary()
    values = [value for value in values if value is not None]
    coded = codes.encode_python(values, type_).tolist()
    is_inline = type_.kind not in (Kind.SYMBOL, Kind.FLOAT)
    assert codes.domain(type_).is_ordered == (
        is_inline and all(code < INTERNED_CODE for code in coded)
    )
    if codes.domain(type_).is_ordered:
        assert [value for _, value in sorted(zip(coded, values, strict=True))] == sorted(values)


def test_nothing_is_coded_as_nothing() -> None:
    codes = Dictionary()
    for type_ in (*TYPES, *DECIMALS):
        assert codes.encode_python([], type_).tolist() == []
        assert codes.encode_arrow(arrow_of([], type_), type_).tolist() == []
        assert codes.encode_python([None], type_).tolist() == [0]
        assert codes.encode_arrow(arrow_of([None, None], type_), type_).tolist() == [0, 0]
        assert codes.decode_arrow(np.array([0], np.int64), type_).to_pylist() == [None]


def test_many_values_one_by_one_and_all_at_once() -> None:
    """Interning goes through a dictionary first, and in bulk where there are many."""
    rng = np.random.default_rng(7)
    codes = Dictionary()
    seen: dict[int, int] = {}
    for size in (
        1,
        5,
        40,
        3 * RECENT_VALUES_MAX,
        1,
        100,
        RECENT_VALUES_MAX,
        20,
        RECENT_VALUES_MAX + 100,
        3,
    ):
        values = rng.integers(2**62, 2**63, size).tolist()
        values += rng.choice(list(seen), min(size, len(seen))).tolist() if seen else []
        values += values[: size // 2]
        coded = codes.encode_python(values, NUMBER).tolist()
        for value, code in zip(values, coded, strict=True):
            assert seen.setdefault(value, code) == code
    assert len(set(seen.values())) == len(seen)
    everything = np.array(list(seen.values()), np.int64)
    assert codes.decode(everything, NUMBER).tolist() == list(seen)
    assert codes.encode_python(list(seen), NUMBER).tolist() == everything.tolist()


@pytest.mark.parametrize("type_", [NUMBER, UNSIGNED], ids=str)
def test_a_few_integers_have_the_codes_that_many_have(type_: Type) -> None:
    values = list(EXTREMES[type_.kind])
    codes = Dictionary()
    many = codes.encode_python(values * 50, type_)[: len(values)].tolist()
    assert [codes.encode_integer(each, type_) for each in values] == many
    assert codes.encode_rows([(each,) for each in values], [type_]) == [(each,) for each in many]
    assert [codes.decode_integer(each, type_) for each in many] == values
