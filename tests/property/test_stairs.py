"""Subsumption in recursion: random transactions against naive iteration, and mutants that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from corollary.core.logic import Condition, Literal, Rule, head_arguments
from corollary.core.pipeline import Reference
from corollary.core.plans import working_relation
from corollary.core.states import State
from corollary.maintain.algorithms.stairs import StairSteps
from corollary.maintain.draft import Body, working_goal
from corollary.maintain.payload import RANK_VARIABLE
from corollary.maintain.sip import Goal
from corollary.maintain.stair_bodies import RuleRanks, StairBodies
from support.generators.stairs_families import FAMILIES, run_family

SEEDS = 1


@pytest.mark.parametrize("family", FAMILIES)
def test_stairs_are_those_of_naive_iteration(family: str) -> None:
    for seed in range(SEEDS):
        assert run_family(family, seed)["transactions"]


def test_recomputation_sets_stairs_anew() -> None:
    for family in ("two orders", "negative weights", "shortest paths"):
        run_family(family, 1, transactions=4, algorithm="recompute")


# --------------------------------------------------------------------------------------- mutants


def tie_supports(self: StairBodies, ranks: RuleRanks, stair: Any) -> Iterator[Condition]:
    """A tie as support: an equal value of an equal tie."""
    (column,) = self.orders[ranks.rule.head.relation].values
    for at in ranks.ranks:
        one, other = self._premise(ranks, at), stair[column.position]
        yield Condition(">=" if column.is_greater_better else "<=", one, other)


def rederive_tuples(self: StairBodies, rule: Rule) -> Goal:
    """Derive anew the tuples that went, not all of their keys."""
    suspended = working_relation(rule.head.relation, "suspended")
    return working_goal(suspended, (*head_arguments(rule), RANK_VARIABLE))


def support_by_equality(_: StairBodies, rule: Rule) -> Any:
    """A head supports only the stair that it equals."""
    return head_arguments(rule)


def dependents(**changes: Any) -> Callable[[StairSteps, str], Iterator[Body]]:
    """Stage (3) with other premises, or in another state."""

    def mutant(self: StairSteps, name: str) -> Iterator[Body]:
        for rule in self.stratum.rules_by_head.get(name, ()):
            ranks = self.ranks(rule)
            for position in ranks.ranks:
                gone = working_relation(rule.literals[position].relation, "suspended")
                slots = (*ranks.slots[position], ranks.ranks[position])
                lead = Goal(Literal(gone, slots), Reference(gone, State.ADDED))
                options: dict[str, Any] = {"lower": State.NEW, **changes}
                stored = [self.stored_stair(rule)]
                yield self.supports(rule, lead, position, goals=stored, **options)

    return mutant


def drop_covered(_: StairSteps, rank: object) -> tuple[Condition, ...]:
    """A stair goes for a better one of larger rank."""
    return ()


def top_premises(self: StairBodies, rule: Rule, *arguments: Any, **options: Any) -> Body:
    """The best values only: a worse stair supports nothing."""
    body = supports(self, rule, *arguments, **options)
    slots = self.ranks(rule).slots
    names = {at: rule.literals[at].relation for at in slots}
    tops = [Goal(Literal(names[at], slots[at]), Reference(names[at], State.OLD)) for at in slots]
    return replace(body, goals=(*body.goals, *tops))


supports = StairBodies.supports

MUTANTS: dict[str, tuple[type, str, Any, str]] = {
    "best values only": (StairBodies, "supports", top_premises, "two orders"),
    "a better one of larger rank": (StairSteps, "outdone_conditions", drop_covered, "two orders"),
    "a tie as support": (StairBodies, "_precedes", tie_supports, "least labels"),
    "rederiving tuples": (StairBodies, "lost_key", rederive_tuples, "shortest paths"),
    "support by equality": (StairBodies, "stair", support_by_equality, "two orders"),
    "OLD in (3)": (StairSteps, "_dependents", dependents(lower=State.OLD), "least labels"),
    "living premises in (3)": (
        StairSteps,
        "_dependents",
        dependents(is_living=True),
        "shortest paths, non-linear",
    ),
}
MUTANT_SEEDS = 150


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_fail(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, function, family = MUTANTS[mutant]
    monkeypatch.setattr(owner, method, function)
    with pytest.raises(AssertionError):
        run_seeds(family, MUTANT_SEEDS)


def run_seeds(family: str, seeds: int) -> None:
    """Run a family until something is wrong."""
    for seed in range(seeds):
        run_family(family, seed)
