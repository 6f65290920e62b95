"""Random programs with active rules: same alerts, aborts and triggered updates as the oracle.

`make fuzz ARGS="--active 10000 …"` makes as many transactions as one likes.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from support.generators.active_scenarios import (
    SHARES,
    ActiveScenario,
    active_scenarios,
    judge_active,
    shares,
)
from support.generators.scenarios import LIVELY, unhurried

EXAMPLES = 50
PARTS = (1, 2)
"""Two halves, with other programs each, so that two processes share them."""


@pytest.mark.parametrize("part", PARTS)
def test_active_rules_do_what_the_oracle_says(part: int) -> None:
    counts: Counter[str] = Counter()

    @unhurried(EXAMPLES)
    @given(active_scenarios(max_steps=7 + part))
    def run(scenario: ActiveScenario) -> None:
        counts.update(judge_active(scenario))

    run()
    print(shares(counts))
    assert counts["steps"] >= 300 / len(PARTS)
    assert counts["changed"] >= LIVELY * counts["steps"]
    for name in SHARES[1:4]:
        assert counts[name] >= 0.01 * counts["steps"], f"too few are {name}: {counts}"
