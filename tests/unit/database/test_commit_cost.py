"""A commit costs what it touches: nothing for views, keys and relations that it does not reach."""

import sys
from pathlib import Path
from types import FrameType

import pytest

import corollary
from corollary.database import planning

TOUCHED = """
.decl item(id: number, v: number) {0}
.decl large(id: number, v: number)
large(i, v) :- item(i, v), v > 50.
"""

UNTOUCHED = """
.decl base{0}(a: number, b: number) key(a)
.decl view{0}(a: number, n: number)
view{0}(a, n) :- base{0}(a, _), n = count : {{ base{0}(_, a) }}.
.output view{0}
"""


def commit_calls(place: Path | None, views: int, kind: str) -> int:
    """Return how many functions a commit of one row calls, beside views that it does not touch."""
    with corollary.open(place, engine="local") as db:
        db.load(text=TOUCHED.format(kind) + "".join(map(UNTOUCHED.format, range(views))))
        for number in range(3):  # the plan is made, and statistics are taken
            with db.transaction() as tx:
                tx.insert("item", [(number, 60)])
        calls = 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        with db.transaction() as tx:
            tx.insert("item", [(10, 60)])
            sys.setprofile(count)
            try:
                tx.commit()
            finally:
                sys.setprofile(None)
        assert tx.changes["large"].added.num_rows == 1
        assert not tx.changes["item"].removed.num_rows
        return calls


@pytest.mark.slow
@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "warehouse"])
@pytest.mark.parametrize("kind", ["key(id)", "bag"])
def test_views_that_a_change_does_not_reach_cost_nothing(
    tmp_path: Path, is_durable: bool, kind: str
) -> None:
    few, many = (
        commit_calls(tmp_path / str(views) if is_durable else None, views, kind)
        for views in (1, 101)
    )
    assert many <= 1.02 * few + 20, "each view adds calls to every commit"


def test_changes_of_other_sizes_have_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    planned = planning.maintain
    monkeypatch.setattr(
        planning, "maintain", lambda *given, **options: made.append(0) or planned(*given, **options)
    )
    with corollary.open() as db:
        db.load(text=TOUCHED.format("key(id)"))
        with db.transaction() as tx:
            tx.insert("item", [(number, number % 100) for number in range(5_000)])
        made.clear()
        for size in (1, 2, 5, 9, 17, 40, 70):
            first = 10_000 * size
            with db.transaction() as tx:
                tx.insert("item", [(number, 60) for number in range(first, first + size)])
            assert tx.changes["large"].added.num_rows == size
    assert len(made) <= 2  # after the load, and once what was recomputed is maintained
