"""Counts and sums through recursion: maintained = recomputed, and mutants of it that are not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import corollary
from corollary.core import plans
from corollary.errors import EvaluationError, InputError
from corollary.maintain.algorithms import groups
from support.generators.groups import BILL, PROGRAMS, judge_groups
from support.maintained_database import Judged


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_random_transactions(number: int) -> None:
    assert judge_groups(number, 8)["steps"]


Method = Callable[..., Any]


def without_readers(method: Method) -> Method:
    """Open the groups of changed instances, and not the readers of what differs."""

    def mutant(self: Any, lowest: str) -> list[plans.Step]:
        return [
            replace(step, pipelines=step.pipelines[:1])
            if isinstance(step, plans.Derive) and step.target.endswith("•open")
            else step
            for step in method(self, lowest)
        ]

    return mutant


def without_rise(_: Method) -> Method:
    """Leave levels as they were."""
    return lambda self: []


def without_removals(method: Method) -> Method:
    """Open groups for additions only."""

    def mutant(self: Any, name: str, changed: Any, state: Any) -> Any:
        body = method(self, name, changed, state)
        return body if state == "new" else replace(body, goals=(*body.goals, *_never(body)))

    return mutant


def _never(body: Any) -> tuple[Any, ...]:
    source = body.lead.source
    return (replace(body.lead, source=replace(source, state="added")),)


MUTANTS = [
    ("_round", without_readers),
    ("_rise", without_rise),
    ("_changed", without_removals),
    ("_fall", without_rise),
]


@pytest.mark.parametrize(
    ("method", "mutate"), MUTANTS, ids=lambda each: getattr(each, "__name__", "")
)
def test_mutants_are_caught(
    method: str, mutate: Callable[[Method], Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = groups._Maintenance
    monkeypatch.setattr(chosen, method, mutate(getattr(chosen, method)))
    with pytest.raises((AssertionError, EvaluationError)):
        judge_chain()


def judge_chain() -> None:
    """Let a chain of parts grow at its end, change at its end, and lose its middle."""
    judged = Judged(BILL, "ranked")
    judged.step(({"part": {(0,), (1,), (2,), (3,)}, "uses": {(0, 1, 2), (2, 3, 2)}}, {}))
    judged.step(({"uses": {(1, 2, 3)}, "bought": {(4, 7)}}, {}))
    judged.step(({"uses": {(3, 4, 1)}}, {}))
    judged.step(({"uses": {(3, 4, 2)}}, {"uses": {(3, 4, 1)}}))
    judged.step(({}, {"uses": {(1, 2, 3)}}))


def test_a_chain_of_parts() -> None:
    judge_chain()


def test_other_algorithms_are_refused() -> None:
    db = corollary.open(None, algorithm="dred")
    with pytest.raises(InputError, match=r"C0820.*`need`"):
        db.load(text=BILL)


def test_only_groups_that_change_and_their_readers_are_aggregated() -> None:
    db = corollary.open(None)
    db.load(text=BILL)
    with db.transaction() as tx:
        tx.insert("part", [(number,) for number in range(100)])
        tx.insert("bought", [(100, 1)])
        tx.insert("uses", [(number, number + 1, 1) for number in range(100)])
        tx.insert("uses", [(number, 100, 2) for number in range(0, 100, 7)])
    with db.transaction(algorithm="ranked") as tx:
        tx.delete("uses", [(7, 100, 2)])
        tx.insert("uses", [(7, 100, 3)])
    assert tx.stats["need"].algorithm == "groups"
    assert tx.stats["need"].counts["approximated"] == 8  # 7 and the groups above it, 0 to 6
