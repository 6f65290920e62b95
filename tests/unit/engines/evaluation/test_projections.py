"""Joins whose rows are made distinct in between: the same answers, from far fewer rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from corollary.core.engine import Limits
from corollary.engines.budget import Budget
from corollary.engines.local.evaluation import frames
from support.cases.change_runs import CASES, name_of, run_case
from support.cases.changes import ChangeCase
from support.cases.narrow_loops import commit
from support.maintained_database import opened
from support.selection import sampled

SAME_GENERATION = """
.decl parent(child: number, parent: number)
.decl same(x: number, y: number)
same(x, x) :- parent(x, _).
same(x, x) :- parent(_, x).
same(x, y) :- parent(x, p), same(p, q), parent(y, q).
"""


@contextmanager
def sorting(is_eager: bool) -> Iterator[None]:
    """Let rows be made distinct by sorting wherever it is possible, or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "BITMAP_MAX_BITS", 0)
        patch.setattr(frames, "SORTED_MIN_ROWS", 1 if is_eager else 1 << 60)
        patch.setattr(frames, "SAMPLE_DUPLICATES", 1 if is_eager else 4)
        patch.setattr("corollary.engines.local.evaluation.stages.DEDUPLICATE_MIN_ROWS", 1)
        yield


def same_generation(width: int, layers: int) -> tuple[int, int]:
    """Return how many tuples layers of parents make, and how many rows were handled."""
    handled: list[int] = []
    count = Budget.count_rows

    def counting(self: Any, pipeline: Any, rows: int) -> None:
        handled.append(rows)
        count(self, pipeline, rows)

    rows = [
        (1000 * (layer + 1) + one, 1000 * layer + other)
        for layer in range(layers)
        for one in range(width)
        for other in range(width)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "count_rows", counting)
        db = opened(SAME_GENERATION, "auto", limits=Limits())
        commit(db, {"parent": rows})
    return len(db.relation("same")), sum(handled)


def test_rows_that_differ_in_what_is_not_needed_are_joined_once() -> None:
    with sorting(True):
        few, handled = same_generation(16, 3)
    with sorting(False):
        same, many = same_generation(16, 3)
    assert same == few == 16 + 3 * 16 * 16  # of the first layer, everybody with themselves
    assert many > 4 * handled


def test_many_rows_are_made_distinct_by_themselves() -> None:
    assert same_generation(40, 2)[1] < 40**4


@pytest.mark.parametrize("case", sampled(CASES, 12), ids=name_of)
def test_cases_of_changes(case: ChangeCase) -> None:
    with sorting(True):
        run_case(case, "as written", "auto")
