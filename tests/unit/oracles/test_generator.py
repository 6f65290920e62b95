"""The generator of random programs: what it makes is valid, varied and not vacuous."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from oracles.evaluation import OracleError, evaluate
from support.generators.programs import FEATURES, Case, programs, updates
from support.selection import examples

SAMPLES = examples(100, 300)

UPDATED = examples(15, 120)


@functools.cache
def samples() -> tuple[Case, ...]:
    """Cases drawn with a fixed seed."""
    found: list[Case] = []

    @seed(20261115)
    @settings(
        max_examples=SAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return tuple(found)


@pytest.mark.long
def test_every_feature_is_frequent() -> None:
    """A fifth of the programs use each feature; single aggregates an eighth."""
    counts = Counter(feature for case in samples() for feature in case.features)
    assert set(counts) <= set(FEATURES)
    for feature in FEATURES:
        share = counts[feature] / len(samples())
        least = 1 / 8 if feature.startswith("aggregate_") else 1 / 5
        assert share >= least, f"{feature}: {share:.2f}"


@pytest.mark.long
def test_programs_have_the_promised_size() -> None:
    for case in samples():
        derived = case.text.count(".decl d")
        assert 2 <= len(case.base) <= 4
        assert 2 <= derived <= 6, case.text
        assert set(case.facts) == set(case.base)


@pytest.mark.slow
def test_every_program_is_accepted_and_evaluated() -> None:
    """No rejection, no limit, (next to) no run-time error; and results are seldom empty."""
    failed = empty = full = 0
    for case in samples():
        try:
            result = evaluate(case.text, case.facts)
        except OracleError:
            failed += 1
            continue
        for name, rows in result.items():
            if name.startswith("d"):
                empty += not rows
                full += bool(rows)
    assert failed <= SAMPLES // 50
    assert full >= 2 * empty


@pytest.mark.long
def test_updates_change_derived_relations() -> None:
    """At least 60 % of the steps change some derived relation; no step names a tuple twice."""
    steps = changed = 0

    @seed(20261115)
    @settings(max_examples=UPDATED, database=None, deadline=None, phases=[Phase.generate])
    @given(st.data())
    def follow(data: st.DataObject) -> None:
        nonlocal steps, changed
        case = data.draw(programs())
        state = {name: set(rows) for name, rows in case.facts.items()}
        try:
            before = evaluate(case.text, state)
            for inserts, deletes in data.draw(updates(case)):
                for name in inserts.keys() | deletes.keys():
                    assert not inserts[name] & deletes[name]
                    state[name] = state[name] - deletes[name] | inserts[name]
                after = evaluate(case.text, state)
                steps += 1
                changed += any(before[n] != after[n] for n in after if n.startswith("d"))
                before = after
        except OracleError:
            return

    follow()
    assert steps >= UPDATED
    assert changed / steps >= 0.6, f"{changed} of {steps}"
