"""Attempts at tuples that are not there, against all substitutions over all known values."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from support.generators.programs import Case, programs
from support.generators.scenarios import unhurried
from support.provenance.absences import judge_absences


@pytest.mark.slow
def test_attempts_are_the_nearest_ones() -> None:
    counts: Counter[str] = Counter()

    @unhurried(20)
    @given(programs(simple=True))
    def run(case: Case) -> None:
        counts.update(judge_absences(case))

    run()
    assert counts["rules"] > 50, counts
