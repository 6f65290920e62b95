"""Strata: the strongly connected components of the dependency graph, in evaluation order."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property

from corollary.analysis.keys import relation_keys
from corollary.core.graph import strongly_connected_components
from corollary.core.logic import AnyAggregation, Rule, rules_by_head
from corollary.core.once import once_per_program
from corollary.core.program import NormalProgram, SubsumptionOrder
from corollary.data_class import dataclass


class Polarity(StrEnum):
    """Whether a relation grows with one it reads, shrinks with it, or (aggregates) may do both."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    AGGREGATE = "aggregate"


@dataclass(frozen=True)
class Stratum:
    """Derived relations that depend on each other, with what defines them."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    aggregations: tuple[AnyAggregation, ...]
    is_recursive: bool
    has_choice: bool = False
    """Whether a relation has a choice domain."""
    subsumption: Mapping[str, SubsumptionOrder] = field(default_factory=dict, hash=False)
    """The orders of those relations of which only the best tuples count."""
    dominated: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The relations of dominated tuples, where subsumption is evaluated in rounds."""
    keys: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    """The keys of the relations that rules read, where they have one."""

    @property
    def is_grouped(self) -> bool:
        """Whether counts or sums are recursive: evaluated group by group."""
        return self.is_recursive and bool(self.aggregations)

    @cached_property
    def members(self) -> frozenset[str]:
        """The relations, for look-ups."""
        return frozenset(self.relations)

    @cached_property
    def rules_by_head(self) -> Mapping[str, list[Rule]]:
        """The rules of each relation."""
        return rules_by_head(self.rules)


@once_per_program
def dependency_polarities(
    program: NormalProgram,
) -> Mapping[str, Mapping[str, frozenset[Polarity]]]:
    """Return for each relation the relations it reads, with the polarities of each arc."""
    arcs: dict[str, dict[str, set[Polarity]]] = {name: {} for name in program.relations}
    for rule in program.rules:
        for literal in rule.literals:
            polarity = Polarity.NEGATIVE if literal.negated else Polarity.POSITIVE
            arcs[rule.head.relation].setdefault(literal.relation, set()).add(polarity)
    for aggregation in program.aggregations:
        arcs[aggregation.relation].setdefault(aggregation.body, set()).add(Polarity.AGGREGATE)
    for name, relation in program.relations.items():
        for _, pairs in () if relation.grouping is None else relation.grouping.reads:
            arcs[name].setdefault(pairs, set()).add(Polarity.AGGREGATE)
        if relation.dominated is not None:
            arcs[name].setdefault(relation.dominated, set()).add(Polarity.AGGREGATE)
    return {
        name: {below: frozenset(found) for below, found in reads.items()}
        for name, reads in arcs.items()
    }


@once_per_program
def strata(program: NormalProgram) -> tuple[Stratum, ...]:
    """Return the strata of the derived relations, each after those it reads."""
    graph = dependency_polarities(program)
    rules = rules_by_head(program.rules)
    aggregations: dict[str, list[AnyAggregation]] = {}
    for aggregation in program.aggregations:
        aggregations.setdefault(aggregation.relation, []).append(aggregation)
    keys = relation_keys(program)
    members = [
        tuple(name for name in names if program.relations[name].is_derived)
        for names in strongly_connected_components(graph)
    ]
    return tuple(
        Stratum(
            names,
            tuple(rule for name in names for rule in rules.get(name, ())),
            tuple(each for name in names for each in aggregations.get(name, ())),
            is_recursive=len(names) > 1 or names[0] in graph[names[0]],
            has_choice=any(program.relations[name].domains for name in names),
            subsumption={
                name: program.subsumption[name] for name in names if name in program.subsumption
            },
            dominated={
                name: dominated
                for name in names
                if (dominated := program.relations[name].dominated) is not None
            },
            keys={below: keys[below] for name in names for below in graph[name] if below in keys},
        )
        for names in members
        if names
    )
