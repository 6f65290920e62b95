"""Sizes from samples: exact for all values, near for some, and the same each time."""

from __future__ import annotations

import random

import pytest

import corollary
from corollary.advisor.check.sampled_sizes import SampledSize, sample_sizes
from corollary.advisor.check.scratch_database import read_base_tables
from corollary.advisor.consultation import Consultation, consult

PROGRAM = """
.decl services(airline: number, airport: number)
.decl connection(a: number, b: number)
.decl base(airline: number, airport: number)
.decl view(airline: number, base: number) virtual
view(a, b) :- services(a, p1), services(a, p2), connection(p1, p2), base(a, b).
"""
RULED = ".input services\nservices(a, p) :- base(a, p)."


def consulted(text: str) -> Consultation:
    dice = random.Random(7)
    database = corollary.open(None, engine="local")
    database.load(text=text)
    with database.transaction() as transaction:
        transaction.insert(
            "services", {(dice.randrange(900), dice.randrange(40)) for _ in range(4000)}
        )
        transaction.insert(
            "connection", {(dice.randrange(40), dice.randrange(40)) for _ in range(60)}
        )
        transaction.insert("base", {(each, dice.randrange(40)) for each in range(900)})
    return consult(database, ["view"])


def sampled(found: Consultation, share: float) -> list[SampledSize]:
    tables = read_base_tables(found.database)
    return sample_sizes(found.advice, found.before, found.after, tables, share)


def test_a_sample_is_near_and_all_values_are_exact() -> None:
    found = consulted(PROGRAM)
    rows = found.measure().rows["mv_view_1"]
    (whole,) = sampled(found, 1.0)
    assert (whole.rows, whole.variable) == (rows, "a")
    (part,) = sampled(found, 0.2)
    assert [part] == sampled(found, 0.2)
    assert part.sampled_values < whole.sampled_values / 3
    assert part.rows == pytest.approx(rows, rel=0.25)


def test_a_relation_with_rules_gives_no_values() -> None:
    found = consulted(PROGRAM + RULED)
    assert found.advice.views
    assert sampled(found, 1.0) == []
