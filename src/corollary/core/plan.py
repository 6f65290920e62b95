"""Plans: procedures made of steps on named relations. Engines run them, `explain` prints them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from corollary.core.pipeline import Pipeline, Reference
from corollary.core.rules import Aggregation
from corollary.core.types import Type

WORKING = "•"
"""Stands in the names of working relations, and in no other name."""


def working(relation: str, role: str) -> str:
    """Return the name of a working relation that plays a role for a relation.

    >>> working("link", "next")
    'link•next'
    """
    return f"{relation}{WORKING}{role}"


MAIN = working("", "main")
"""The procedure that a plan begins with."""


def procedure_of(relations: tuple[str, ...], verb: str = "") -> str:
    """Return the name of the procedure for the relations of a stratum."""
    return working(verb, WORKING.join(relations)) if verb else WORKING.join(relations)


@dataclass(frozen=True, slots=True)
class Derive:
    """`target` becomes the union of the pipelines' heads, less what is in `without`."""

    target: str
    pipelines: tuple[Pipeline, ...]
    without: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Extend:
    """`target` grows by `source`, which it did not hold; that is its ADDED until the next time."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`target` becomes the groups and values of an aggregation of `body`."""

    target: str
    aggregation: Aggregation
    body: Reference
    without: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """The NEW state of `relation` is the working relation `source`."""

    relation: str
    source: str


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeat the steps until every one of `until_empty` is empty after a round."""

    steps: tuple["Step", ...]
    until_empty: tuple[Reference, ...]
    limits: tuple[tuple[str, int], ...] = ()
    """Working relations and the number of tuples at which the loop may stop (`.limitsize`)."""


@dataclass(frozen=True, slots=True)
class Call:
    """Run a procedure."""

    procedure: str


Step = Derive | Extend | Aggregate | Store | Loop | Call


@dataclass(frozen=True, slots=True)
class Plan:
    """Procedures by name, and the column types of every relation they name.

    Attributes:
        main: the procedure to run.
        orders: for each relation, the column orders in which pipelines probe it.
    """

    procedures: Mapping[str, tuple[Step, ...]]
    types: Mapping[str, tuple[Type, ...]]
    orders: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    main: str = MAIN


def steps_of(plan: Plan) -> Iterator[Step]:
    """Yield every step of every procedure, those inside loops included."""
    work = [step for steps in reversed(list(plan.procedures.values())) for step in reversed(steps)]
    while work:
        step = work.pop()
        yield step
        match step:
            case Loop(steps=steps):
                work.extend(reversed(steps))
            case Derive() | Extend() | Aggregate() | Store() | Call():
                pass
            case _:
                assert_never(step)


def pipelines_of(plan: Plan) -> Iterator[Pipeline]:
    """Yield every pipeline of a plan."""
    for step in steps_of(plan):
        if isinstance(step, Derive):
            yield from step.pipelines
