"""Strata that are maintained elsewhere: share by share, or in another engine."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changing import ChangeCase
from lasting import keep
from maintaining import MIXED
from scenarios import Scenario, judge, scenarios, unhurried
from sharing import InProcess, share_out
from test_changes import CASES, VARIANTS, name_of
from test_changes import test_maintenance as judge_case

EXAMPLES = 20
PLACEMENTS = ("tasks", "sql")
KINDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "stored": (("auto", "ranked", "dred", "recompute", "pf", "epf", MIXED), {}),
    "rules": (("auto", "ranked", "epf", "dred", MIXED), {"with_rules": True}),
    "rules, virtual": (("auto", "epf", "pf", MIXED), {"with_rules": True, "with_virtual": True}),
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_maintained_is_recomputed(
    kind: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch, placement)
    before = InProcess.jobs

    @unhurried(EXAMPLES)
    @given(scenarios(algorithms, **options))
    def run(scenario: Scenario) -> None:
        counts.update(judge(scenario))

    run()
    assert counts["steps"] >= EXAMPLES
    assert counts["changed"] >= EXAMPLES
    assert InProcess.jobs > before


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_lasts(
    kind: str, placement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, options = KINDS[kind]
    counts: Counter[str] = Counter()
    share_out(monkeypatch, placement)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nobody pulls the plug here
    before = InProcess.jobs

    @unhurried(EXAMPLES // 2)
    @given(scenarios(algorithms, **options), st.integers(0, 999))
    def run(scenario: Scenario, seed: int) -> None:
        counts.update(keep(scenario, str(tmp_path / "w"), seed))

    run()
    assert counts["steps"] >= EXAMPLES // 2
    assert InProcess.jobs > before


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cases(
    case: ChangeCase, variant: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, placement)
    judge_case(case, "as written", variant)
