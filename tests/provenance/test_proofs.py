"""Proofs of random programs in random states, against every instance of every rule."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from support.generators.scenarios import Scenario, unhurried
from support.provenance.asking import judge_answers, scenarios_to_ask


def test_proofs_are_valid_lowest_and_canonical() -> None:
    counts: Counter[str] = Counter()

    @unhurried(25)
    @given(scenarios_to_ask())
    def run(scenario: Scenario) -> None:
        counts.update(judge_answers(scenario))

    run()
    assert counts["questions"] > 200, counts
    assert counts["high"], counts
    assert {"absent", "aggregate", "computed", "chains"} <= counts.keys(), counts
