"""Random programs with active rules: same alerts, aborts and triggered updates as the oracle.

`make fuzz ARGS="--active 10000 …"` makes as many transactions as one likes.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, seed

from support.generators.active_scenarios import (
    SHARES,
    ActiveScenario,
    active_scenarios,
    judge_active,
    shares,
)
from support.generators.scenarios import is_lively, unhurried
from support.selection import examples, sampled

ALL_EXAMPLES = 8
EXAMPLES = examples(2, ALL_EXAMPLES)
PARTS = range(12)
"""Each part has programs of its own."""


def judged(part: int, number: int) -> Counter[str]:
    """Return what so many random programs have covered."""
    counts: Counter[str] = Counter()

    @seed(part)
    @unhurried(number)
    @given(active_scenarios(max_steps=8))
    def run(scenario: ActiveScenario) -> None:
        counts.update(judge_active(scenario))

    run()
    return counts


@pytest.mark.smoke
@pytest.mark.parametrize("part", sampled(PARTS, len(PARTS)))
def test_active_rules_do_what_the_oracle_says(part: int) -> None:
    counts = judged(part, EXAMPLES)
    assert counts["changed"] > EXAMPLES or EXAMPLES < ALL_EXAMPLES  # two may change nothing


@pytest.mark.long
def test_random_programs_are_lively() -> None:
    counts = judged(0, 96)
    print(shares(counts))
    assert counts["steps"] >= 96
    assert is_lively(counts["changed"], counts["steps"])
    for name in SHARES[1:4]:
        assert counts[name] >= 0.01 * counts["steps"], f"too few are {name}: {counts}"
