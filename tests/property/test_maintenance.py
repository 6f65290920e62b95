"""Random programs and updates under every algorithm: maintained = recomputed, after every step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.errors import EvaluationError
from support.generators.programs import programs, updates
from support.generators.scenarios import Scenario, is_lively, judge, scenarios, unhurried
from support.maintained_database import MIXED, apply, derived_relations, opened
from support.records.record_programs import judge_records
from support.selection import examples

EXAMPLES = examples(3, 30)
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "auto, recompute": (("auto", "recompute"), {}),
    "ranked, counting, dred": (("ranked", "counting", "dred"), {}),
    "pf, epf, mixed": (("pf", "epf", MIXED), {}),
    "virtual": (("auto", "epf", "pf", "ranked", "dred", MIXED), {"with_virtual": True}),
    "windows": (("auto", "epf", "recompute", MIXED), {"windowed": 3}),
    "rules": (("auto", "ranked", "epf", "counting", "dred", MIXED), {"with_rules": True}),
    "rules, virtual": (("auto", "epf", "pf", MIXED), {"with_rules": True, "with_virtual": True}),
}
"""Groups of about the same size: algorithms, and what else varies."""


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_maintained_is_recomputed(kind: str) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()

    @unhurried(EXAMPLES)
    @given(scenarios(algorithms, **options))
    def run(scenario: Scenario) -> None:
        counts.update(judge(scenario))

    run()
    assert counts["steps"] >= 2 * EXAMPLES
    assert is_lively(counts["changed"], counts["steps"])


@pytest.mark.slow
@unhurried(EXAMPLES)
@given(st.data())
def test_epf_filters_once_what_pf_may_filter_again(data: st.DataObject) -> None:
    case = data.draw(programs())
    steps = data.draw(updates(case))
    virtual = derived_relations(case.text) if data.draw(st.booleans()) else ()
    databases = [opened(case.text, algorithm, virtual) for algorithm in ("pf", "epf")]
    for step in ((case.facts, {}), *steps):
        try:
            pf, epf = (apply(db, step) for db in databases)
        except EvaluationError:
            return
        totals = {
            name: [sum(each.counts.get(name, 0) for each in tx.stats.values()) for tx in (pf, epf)]
            for name in ("filtered", "refiltered", "actual")
        }
        assert totals["refiltered"][1] == 0
        assert totals["filtered"][0] >= totals["filtered"][1]
        assert totals["actual"][0] == totals["actual"][1]
        for name in derived_relations(case.text):
            assert pf.changes[name].counts == epf.changes[name].counts


@pytest.mark.smoke
def test_records_under_every_algorithm() -> None:
    for number in range(examples(8, 64)):
        judge_records(number, 3)
