"""Functors of dates and timestamps: on arrays they equal Python's `datetime`, row by row."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corollary.core.functors.catalog import FUNCTORS, read_time_format, result_type
from corollary.core.logic import Constant, Functor, Term, Variable
from corollary.core.types import DATE, NUMBER, SYMBOL, TIMESTAMP, Kind, Type
from corollary.engines.local.evaluation import times
from corollary.engines.local.evaluation.expressions import evaluate
from corollary.engines.local.values import native
from corollary.engines.local.values.codes import Dictionary
from oracles import calendar
from support.selection import examples

FAULT = "no value"
FEW = settings(max_examples=examples(10, 100), deadline=None)
DAYS = st.one_of(
    st.dates(),
    st.dates(date(1968, 1, 1), date(1972, 12, 31)),
    st.sampled_from((date.min, date.max, date(2024, 2, 29), date(2025, 1, 31), date(2020, 12, 31))),
)
MOMENTS = st.one_of(
    st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0)),
    st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3), timezones=st.just(UTC)),  # noqa: DTZ001
    st.sampled_from((datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))),
)
COUNTS = st.one_of(
    st.integers(-40, 40),
    st.integers(-4_000_000, 4_000_000),
    st.integers(-(10**12), 10**12),
    st.sampled_from((2**63 - 1, -(2**63))),
)
STRATEGIES = {Kind.DATE: DAYS, Kind.TIMESTAMP: MOMENTS, Kind.NUMBER: COUNTS}
FORMATS = (
    "%Y-%m-%d", "%F %T", "%d. %B %Y", "%b%d%Y", "%Y %j", "%H:%M:%S.%f on %d/%m/%Y", "100%% %Y",
    "%Y年%m月%d日", "(%Y)[%m]{%d}\\^$.|?*+", "%Y\n%m", "",  "%%F", "%A %a %u %G-W%V",
)  # fmt: skip


def computed(name: str, types: tuple[Type, ...], rows: list[Any], form: str | None) -> list[Any]:
    codes = Dictionary()
    frame = {
        f"v{at}": codes.encode_python((row[at] for row in rows), each)
        for at, each in enumerate(types)
    }
    operands: list[Term] = [Variable(f"v{at}", each) for at, each in enumerate(types)]
    if form is not None:
        operands.append(Constant(form, SYMBOL))
    type_ = result_type(name, tuple(types))
    batch = evaluate(Functor(name, tuple(operands), type_), frame, len(rows), codes)
    faults, nulls = batch.fault_mask, batch.nulls
    return [
        FAULT
        if faults is not None and faults[at]
        else None
        if nulls is not None and nulls[at]
        else native.to_python(value, type_)
        for at, value in enumerate(batch.values.tolist())
    ]


def expected(name: str, row: tuple[Any, ...], form: str | None) -> Any:
    if None in row:
        return None
    try:
        return calendar.FUNCTORS[name](*row, *(() if form is None else (form,)))
    except (ValueError, OverflowError):
        return FAULT


def agrees(name: str, types: tuple[Type, ...], rows: list[Any], form: str | None = None) -> None:
    assert computed(name, types, rows, form) == [expected(name, row, form) for row in rows], name


CASES = [
    (name, tuple(Type(kind) for kind in kinds))
    for name, signature in FUNCTORS.items()
    if signature.section == "times" and name not in ("format_time", "parse_date", "parse_time")
    for first in sorted(signature.parameters[0])
    for kinds in [(first, *(next(iter(each)) for each in signature.parameters[1:]))]
]


@pytest.mark.parametrize(("name", "types"), CASES)
@given(st.data())
@FEW
def test_functors(name: str, types: tuple[Type, ...], data: st.DataObject) -> None:
    column = (st.one_of(STRATEGIES[each.kind], st.none()) for each in types)
    agrees(name, types, data.draw(st.lists(st.tuples(*column), min_size=1, max_size=8)))


@pytest.mark.parametrize("form", FORMATS)
@FEW
@given(st.lists(st.one_of(DAYS, st.none()), min_size=1), st.lists(MOMENTS, min_size=1))
def test_formats(form: str, days: list[Any], moments: list[Any]) -> None:
    agrees("format_time", (DATE,), [(day,) for day in days], form)
    agrees("format_time", (TIMESTAMP,), [(moment,) for moment in moments], form)


@pytest.mark.parametrize("form", [each for each in FORMATS if "%Y" in each or each == "%F %T"])
@FEW
@given(st.lists(MOMENTS, min_size=1))
def test_what_was_formatted_is_read_again(form: str, moments: list[Any]) -> None:
    texts = [(calendar.format_time(moment, form),) for moment in moments]
    agrees("parse_time", (SYMBOL,), texts, form)
    if set("HMSfT").isdisjoint(form):
        agrees("parse_date", (SYMBOL,), texts, form)


@pytest.mark.parametrize(
    ("name", "form", "texts"),
    [
        ("parse_date", "%d.%m.%Y", ["1.2.2026", "31.4.2026", "0.1.2026", "1.1.0000", "x", ""]),
        ("parse_date", "%d.%m.%Y", ["1.2.2026 ", " 1.2.2026", "1.2.26", "1.13.2026", "1.2.20261"]),
        ("parse_date", "%d %b %Y", ["1 jan 2026", "1 JAN 2026", "1 January 2026", "1 xyz 2026"]),
        ("parse_date", "%d %B %Y", ["1 may 2026", "1 Feb 2026", "29 February 2023"]),
        ("parse_date", "%Y-%j", ["2026-1", "2026-365", "2026-366", "2024-366", "2026-0"]),
        ("parse_date", "%Y", ["2026", "0001", "9999", "١٢٣٤"]),
        ("parse_time", "%F %H:%M", ["2026-11-16 24:00", "2026-11-16 23:59", "2026-11-16 7:5"]),
        ("parse_time", "%F %T.%f", ["2026-11-16 1:2:3.5", "2026-11-16 1:2:60.0"]),
        ("parse_time", "%Y%m%d", ["20261116", "2026116", "2026111"]),
        ("parse_time", "%Y\n", ["2026\n", "2026", "2026\n\n"]),
    ],
)
def test_reading(name: str, form: str, texts: list[str | None]) -> None:
    agrees(name, (SYMBOL,), [(text,) for text in (*texts, None)], form)


@pytest.mark.parametrize("form", ["%Q", "%", "%Y %", "%Z", "%-d"])
def test_formats_that_are_none(form: str) -> None:
    for name in ("format_time", "parse_date", "parse_time"):
        with pytest.raises(ValueError, match="is not known"):
            read_time_format(name, form)


def test_every_name_has_a_function() -> None:
    known = {name for name, spec in FUNCTORS.items() if spec.section == "times"}
    assert known == set(times.TIME_FUNCTIONS) == set(calendar.FUNCTORS)


@example(date(2024, 2, 29), 12)
@given(DAYS, st.integers(-600, 600))
def test_months_there_and_back_keep_the_month(day: date, count: int) -> None:
    (there,) = computed("add_months", (DATE, NUMBER), [(day, count)], None)
    if there != FAULT:
        (back,) = computed("add_months", (DATE, NUMBER), [(there, -count)], None)
        assert timedelta(0) <= day - back <= timedelta(3)
