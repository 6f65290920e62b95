"""Relations between runs: what must come out the same in another order, form or wording."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.errors import EvaluationError
from support.comparison import comparable
from support.generators.programs import Case, programs, updates
from support.generators.scenarios import unhurried
from support.maintained_database import (
    ALGORITHMS,
    LIMITS,
    Step,
    algorithm_for,
    apply,
    derived_relations,
    held,
    opened,
    rules_of,
)
from support.payload_check import check_payload
from support.program_variants import rephrased
from support.selection import examples

SETTINGS = unhurried(examples(3, 20))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, list[Step], str]:
    """Draw a program, updates, and an algorithm."""
    case = draw(programs(windowed=None))  # of which each rule has one form only
    steps = draw(updates(case))
    return case, steps, ALGORITHMS[draw(st.integers(0, 9_999)) % len(ALGORITHMS)]


def filled(case: Case, algorithm: str) -> Database:
    """A database with the facts of a case; a case that fails there says nothing here."""
    db = opened(case.text, algorithm)
    try:
        apply(db, (case.facts, {}))
    except EvaluationError:
        assume(False)
    return db


def stored(db: Database) -> dict[str, Any]:
    """What the declared relations of a database hold."""
    relations = db._state.loaded.normal.relations
    return {
        name: rows
        for name, rows in held(db)["relations"].items()
        if name in relations and relations[name].is_declared
    }


def single(step: Step) -> Iterator[Step]:
    """Yield the operations of a step one by one."""
    inserts, deletes = step
    for name, rows in inserts.items():
        for row in sorted(rows, key=repr):
            yield {name: [row]}, {}
    for name, rows in deletes.items():
        for row in sorted(rows, key=repr):
            yield {}, {name: [row]}


@pytest.mark.smoke
@SETTINGS
@given(cases(), st.integers(0, 1_000))
def test_a_change_may_be_split_and_permuted(drawn: tuple[Case, list[Step], str], seed: int) -> None:
    case, steps, algorithm = drawn
    whole, split = filled(case, algorithm), filled(case, algorithm)
    for step in steps:
        parts = list(single(step))
        random.Random(seed).shuffle(parts)
        try:
            apply(whole, step)
            for part in parts:
                apply(split, part)
        except EvaluationError:
            assume(False)
        assert stored(whole) == stored(split)
        check_payload(split)


@SETTINGS
@given(cases())
def test_a_change_and_its_inverse_give_back_what_was(drawn: tuple[Case, list[Step], str]) -> None:
    case, steps, algorithm = drawn
    db = filled(case, algorithm)
    for step in steps:
        before = held(db)
        try:
            tx = apply(db, step)
        except EvaluationError:
            assume(False)
        net = {name: tx.changes[name] for name in case.base}
        inverse = (
            {name: to_python(each.removed) for name, each in net.items()},
            {name: to_python(each.added) for name, each in net.items()},
        )
        back = apply(db, inverse)
        now = held(db)
        valid = before["payload"] & now["payload"]
        for name, rows in before["relations"].items():
            relation, _, role = name.partition("•")
            if not role or (role == "count" and relation in valid):
                assert now["relations"][name] == rows
        check_payload(db)
        for name in derived_relations(case.text):
            there, again = tx.changes[name], back.changes[name]
            assert comparable(to_python(there.added)) == comparable(to_python(again.removed))
            assert comparable(to_python(there.removed)) == comparable(to_python(again.added))


@pytest.mark.smoke
@SETTINGS
@given(cases(), st.integers(0, 1_000))
def test_a_rule_that_comes_and_goes_changes_nothing(
    drawn: tuple[Case, list[Step], str], pick: int
) -> None:
    case, steps, algorithm = drawn
    rules = list(rules_of(case.text))
    rule = rules[pick % len(rules)]
    lines = case.text.splitlines()
    lines.remove(rule)
    chosen = algorithm_for(case.text, algorithm)
    without = Case("\n".join(lines) + "\n", case.facts, case.features, case.base)
    db = filled(without, algorithm)
    for step in steps:
        before = stored(db)
        try:
            apply(db, ({}, {}), chosen, add=[rule])
        except EvaluationError:
            assume(False)
        apply(db, ({}, {}), chosen, remove=[rule])
        now = stored(db)
        assert {name: now[name] for name in before} == before
        check_payload(db)
        try:
            apply(db, step)
        except EvaluationError:
            assume(False)


@pytest.mark.smoke
@SETTINGS
@given(cases(), st.integers(0, 1_000))
def test_other_words_change_nothing(drawn: tuple[Case, list[Step], str], seed: int) -> None:
    case, steps, algorithm = drawn
    one = opened(case.text, algorithm, limits=LIMITS)
    other = opened(rephrased(case.text, seed), algorithm, limits=LIMITS)
    for step in ((case.facts, {}), *steps):
        try:
            first = apply(one, step)
        except EvaluationError:
            assume(False)
        second = apply(other, step)
        for name in derived_relations(case.text):
            there, again = first.changes[name], second.changes[name]
            assert comparable(to_python(there.added)) == comparable(to_python(again.added)), name
            assert comparable(to_python(there.removed)) == comparable(to_python(again.removed))
        check_payload(other)


def test_rephrasing_keeps_the_meaning_and_changes_the_words() -> None:
    text = ".decl p(x: number)\np(x) :- q(x, y), n = count : { q(x, _) }, (r(y) ; y = 1).\n"
    assert rephrased(text, 1) != text
    assert "v1_x" in rephrased(text, 1)
    assert "count" in rephrased(text, 1)
    assert "v1_count" not in rephrased(text, 1)
