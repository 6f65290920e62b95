"""Proofs of random programs in random states, against every instance of every rule."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given

from oracles.provenance import Derivations
from support.generators.scenarios import Scenario, unhurried
from support.maintained_database import apply, opened
from support.provenance.asking import ask, judge_answers, scenarios_to_ask
from support.provenance.judge import ProofJudge
from support.selection import examples


@pytest.mark.smoke
def test_proofs_are_valid_lowest_and_canonical() -> None:
    counts: Counter[str] = Counter()

    @unhurried(examples(3, 25))
    @given(scenarios_to_ask())
    def run(scenario: Scenario) -> None:
        counts.update(judge_answers(scenario))

    run()
    assert counts["questions"] > examples(10, 200), counts
    kinds = examples(set(), {"absent", "aggregate", "chains", "computed", "high"})
    assert kinds <= (+counts).keys(), counts


@pytest.mark.parametrize("virtual", [(), ("same",)], ids=["stored", "virtual"])
def test_a_tuple_with_nan_is_one_tuple(virtual: tuple[str, ...]) -> None:
    text = (
        ".decl e(x: float, y: float)\n.decl same(x: float, y: float) eqrel\n"
        "same(x, y) :- e(x, y).\n"
    )
    base = {"e": {(math.nan, 1.0), (0.0, 1.0), (1.0, math.nan)}}
    db = opened(text, "auto", virtual)
    apply(db, (base, {}))
    judge = ProofJudge(Derivations(text, base))
    for row in ((math.nan, 0.0), (math.nan, math.nan), (0.0, math.nan)):
        judge.judge(ask(db, ("same", row)), ("same", row))
    assert judge.counts["chains"] == 3
