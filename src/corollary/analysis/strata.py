"""Strata: the strongly connected components of the dependency graph, in evaluation order."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from corollary.core.graph import components
from corollary.core.program import NormalProgram
from corollary.core.rules import Aggregation, Rule


class Polarity(StrEnum):
    """How a relation depends on another: with it, against it, or (aggregates) both."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class Stratum:
    """Derived relations that depend on each other, with what defines them."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    aggregations: tuple[Aggregation, ...]
    is_recursive: bool


Dependencies = Mapping[str, Mapping[str, frozenset[Polarity]]]
"""For each derived relation, the relations it reads and how."""


def dependencies(program: NormalProgram) -> Dependencies:
    """Return the dependency graph of a program, every arc with its polarities."""
    arcs: dict[str, dict[str, set[Polarity]]] = {name: {} for name in program.relations}
    for rule in program.rules:
        for literal in rule.literals:
            polarity = Polarity.NEGATIVE if literal.negated else Polarity.POSITIVE
            arcs[rule.head.relation].setdefault(literal.relation, set()).add(polarity)
    for aggregation in program.aggregations:
        arcs[aggregation.relation].setdefault(aggregation.body, set()).add(Polarity.AGGREGATE)
    return {
        name: {below: frozenset(found) for below, found in reads.items()}
        for name, reads in arcs.items()
    }


def strata(program: NormalProgram) -> tuple[Stratum, ...]:
    """Return the strata of the derived relations, each after those it reads."""
    graph = dependencies(program)
    rules: dict[str, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).append(rule)
    aggregations: dict[str, list[Aggregation]] = {}
    for aggregation in program.aggregations:
        aggregations.setdefault(aggregation.relation, []).append(aggregation)
    found = []
    for names in components(graph):
        members = tuple(name for name in names if program.relations[name].is_derived)
        if members:
            is_recursive = len(members) > 1 or members[0] in graph[members[0]]
            found.append(
                Stratum(
                    members,
                    tuple(rule for name in members for rule in rules.get(name, ())),
                    tuple(each for name in members for each in aggregations.get(name, ())),
                    is_recursive,
                )
            )
    return tuple(found)
