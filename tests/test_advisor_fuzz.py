"""Advice for random programs: the quick part of the fuzz; `make fuzz` goes on with 2,000."""

from collections import Counter

import pytest

from advisor_judgement import judge
from advisor_programs import program

PROGRAMS = 80
BATCH = 20


@pytest.mark.parametrize("first", range(0, PROGRAMS, BATCH))
def test_random_programs(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        judge(program(seed), seed, counts)
    assert counts["applicable"] > BATCH // 2  # of four ways each
    assert counts["as good as possible"] > counts["searched exhaustively"] // 2
