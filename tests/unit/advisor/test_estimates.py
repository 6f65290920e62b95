"""Estimates against what is found: projections, references, conditions; the tables of TPC-H."""

from __future__ import annotations

import itertools
import statistics
from types import SimpleNamespace

import pytest

import corollary
from bench.advice.estimates import WITHIN, compare, load
from corollary.advisor import measured_sizes
from corollary.advisor.apply import reformulate
from corollary.advisor.check import measurement
from corollary.advisor.check.measurement import (
    Calibration,
    Measurements,
    QueryTimes,
    withdraw_small_gains,
)
from corollary.advisor.consultation import consult
from corollary.core.statistics import remaining_values
from corollary.database.database import Database, state_of
from support.spark.in_process_partitions import RowsElsewhere

PROGRAM = """
.decl item(k: number, shelf: number, colour: number) key(k)
.decl pair(a: number, b: number)
.decl copy(k: number, shelf: number) virtual
copy(k, s) :- item(k, s, _).
.decl seen(a: number) virtual
seen(a) :- pair(a, b), pair(b, c), pair(c, a).
.decl twice(a: number, b: number) virtual
twice(a, b) :- seen(a), pair(a, b).
"""


def database() -> Database:
    found = corollary.open(None, engine="local")
    found.load(text=PROGRAM)
    with found.transaction() as transaction:
        transaction.insert("item", [(at, at % 50, at % 7) for at in range(3000)])
        pairs = {(at * 7 % 61, at * 13 % 59) for at in range(2500)}
        transaction.insert("pair", sorted(pairs))
    return found


def test_a_projection_on_a_key_keeps_its_rows_and_is_not_copied() -> None:
    advice = consult(database(), ["copy"]).advice
    assert not advice.is_applicable
    assert advice.queries["copy"].work == (pytest.approx(3001), pytest.approx(3001))


def test_values_that_remain_in_a_part_of_the_rows() -> None:
    assert remaining_values(1000, 1000, 0.25) == pytest.approx(250)  # a key: as many as rows
    assert remaining_values(10, 10_000, 0.25) == pytest.approx(10)
    assert remaining_values(100, 1000, 1.0) == 100


@pytest.mark.slow
def test_estimates_on_tpch_are_within_a_factor_of_two() -> None:
    with load(0.002) as tables:
        errors = list(compare(tables))
    late = [each for each in errors if each.factor > WITHIN]
    assert len(late) <= 1, late  # the smallest of them has a dozen rows at this scale
    assert statistics.median(each.factor for each in errors) < 1.1


def measured(relation: str, before: float, after: float) -> Measurements:
    times = QueryTimes(relation, relation, before, after, (before, after), 5, 0.001)
    return Measurements((times,), 0.1, {}, is_processor_time=True)


def test_what_gains_too_little_as_measured_is_withdrawn() -> None:
    found = consult(database(), ["seen"])
    assert found.advice.is_applicable
    assert withdraw_small_gains(found.advice, measured("seen", 0.013, 0.010)).is_applicable
    less = withdraw_small_gains(found.advice, measured("seen", 0.011, 0.010))
    assert not less.is_applicable
    assert not less.views
    checked = state_of(found.database).loaded.checked
    assert reformulate(checked, found.before, less) == found.before
    assert less.queries["seen"].reason == "the measured gain is 1.10 x, less than 1.2"


def test_a_relation_below_stays_rewritten_for_a_query_that_gains() -> None:
    found = consult(database(), ["twice"])
    assert found.advice.predicates["seen"].is_applicable
    slow = withdraw_small_gains(found.advice, measured("twice", 0.010, 0.010))
    quick = withdraw_small_gains(found.advice, measured("twice", 0.050, 0.010))
    assert not slow.predicates["seen"].is_applicable
    assert quick.predicates["seen"].is_applicable


def test_expected_times_include_the_floor_of_a_call() -> None:
    calibration = Calibration(1e-6, "a test", 0.005)
    assert calibration.query_seconds(0.0) == 0.005
    assert calibration.query_seconds(1000.0) == pytest.approx(0.006)
    found = consult(database(), ["seen"])
    assert found.measure().queries[0].floor_seconds > 0


def test_the_processor_time_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = itertools.count(step=0.25)
    clock = SimpleNamespace(process_time=lambda: next(processor), perf_counter=None)
    found = consult(database(), ["seen"])
    monkeypatch.setattr(measurement, "time", clock)
    measured = found.measure()
    (times,) = measured.queries
    assert (measured.is_processor_time, measured.build_seconds) == (True, 0.25)
    assert (times.before_seconds, times.after_seconds, times.floor_seconds) == (0.25, 0.25, 0.25)


def test_sizes_of_large_relations_come_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found = corollary.open(None, engine="local")
    found.load(text=".decl r(k: number, few: number, many: number, name: symbol)")
    rows = [(at, at % 7, at * 31 % 6007, f"n{at % 300}") for at in range(20_000)]
    with found.transaction() as transaction:
        transaction.insert("r", rows)
    exact = measured_sizes.measure_sizes(found)
    monkeypatch.setattr(measured_sizes, "SAMPLED_MIN_ROWS", 1000)
    monkeypatch.setattr(measured_sizes, "SAMPLE_ROWS", 4000)
    sampled = measured_sizes.measure_sizes(found)
    assert (exact.sampled, sampled.sampled) == ({}, {"r": 0.2})
    assert sampled.rows == exact.rows
    for one, other in zip(sampled.distinct["r"], exact.distinct["r"], strict=True):
        assert other / 1.5 <= one <= other * 1.5
    assert exact.count is not None
    assert sampled.count is not None
    pairs = [each.count("r", frozenset((1, 3))) for each in (exact, sampled)]
    assert pairs[1] == pytest.approx(pairs[0], rel=0.2)
    assert sampled.row_bytes["r"] == pytest.approx(exact.row_bytes["r"], rel=0.3)


def test_a_sample_is_taken_where_the_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in partitions elsewhere are not fetched: each partition gives its part."""
    found = database()
    engine = state_of(found).engine
    away = {name: RowsElsewhere(engine.read(name)) for name in ("item", "pair")}
    monkeypatch.setattr(measured_sizes, "SAMPLE_ROWS", 600)
    monkeypatch.setattr(engine, "handle", lambda name: away[name])
    sizes = measured_sizes.measure_sizes(found)
    assert sizes.sampled["item"] == pytest.approx(0.2)
    assert sizes.rows["item"] == 3000
    assert sizes.distinct["item"][0] == pytest.approx(3000, rel=0.1)  # the key
    assert sizes.distinct["item"][1] == pytest.approx(50, rel=0.2)
