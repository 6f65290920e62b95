"""The update of a transaction: its changes of data and rules, before and after."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property

from corollary.analysis import relevance
from corollary.analysis.strata import Stratum, strata
from corollary.core.graph import strongly_connected_components
from corollary.core.logic import NO_RULE, AnyAggregation, Rule, rules_by_head
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.core.program import NormalProgram, relations_read
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.rewrite.align import canonical_rule

EMPTY_PROGRAM = NormalProgram({}, (), (), {})
"""The program before the first one."""


def rule_key(rule: Rule) -> tuple[object, ...]:
    """Return a key that ignores the names of variables and the origin of a rule."""
    return rule.head.relation, *canonical_rule(rule, {})


@dataclass(frozen=True)
class Update:
    """The programs of OLD and NEW, and which base relations change in which direction.

    Attributes:
        changed: the signs of the changes of base relations.
        watched: virtual relations whose changes are needed, with the signs.
        valid_payload: relations whose ranks, counts or totals are valid.
        refilled: new relations whose OLD is what their rules give on the old data.
        disabled_optimisations: optimisations that are switched off.
        old_for_queries: the program of OLD as new active rules query it, if it differs from `old`.
    """

    old: NormalProgram
    new: NormalProgram
    changed: relevance.Signs
    statistics: Statistics
    watched: relevance.Signs = field(default_factory=dict)
    valid_payload: frozenset[str] = frozenset()
    disabled_optimisations: frozenset[MonitoringOptimisation] = frozenset()
    old_for_queries: NormalProgram | None = None
    refilled: frozenset[str] = frozenset()

    @property
    def queried_old(self) -> NormalProgram:
        """The program in which OLD is queried."""
        return self.old if self.old_for_queries is None else self.old_for_queries

    @cached_property
    def added_rules(self) -> tuple[Rule, ...]:
        """The rules that only NEW has."""
        return _difference(self.new.rules, self.old.rules)

    @cached_property
    def removed_rules(self) -> tuple[Rule, ...]:
        """The rules that only OLD has, of relations that NEW has too."""
        removed = _difference(self.old.rules, self.new.rules)
        return tuple(rule for rule in removed if rule.head.relation in self.new.relations)

    @cached_property
    def unchanged_rules(self) -> tuple[Rule, ...]:
        """The rules that both OLD and NEW have."""
        known = {rule_key(rule) for rule in self.old.rules}
        return tuple(rule for rule in self.new.rules if rule_key(rule) in known)

    @cached_property
    def unchanged_by_head(self) -> Mapping[str, list[Rule]]:
        """The same, of each relation."""
        return rules_by_head(self.unchanged_rules)

    @cached_property
    def rule_numbers(self) -> Mapping[Rule, int]:
        """The number of each rule of NEW, that of the first one for equal rules."""
        numbers: dict[Rule, int] = {}
        for number, rule in enumerate(self.new.rules):
            numbers.setdefault(rule, number)
        return numbers

    @cached_property
    def numbers_in_relation(self) -> Mapping[Rule, int]:
        """The number of each rule among those of its relation, in NEW and then in OLD, from 1."""
        numbers: dict[Rule, int] = {}
        counts: Counter[str] = Counter()
        for rule in (*self.new.rules, *self.old.rules):
            if rule not in numbers:
                counts[rule.head.relation] += 1
                numbers[rule] = counts[rule.head.relation]
        return numbers

    @cached_property
    def base_relations_below(self) -> Mapping[str, frozenset[str]]:
        """The base relations that each relation of NEW depends on, directly or not."""
        found: dict[str, frozenset[str]] = {}
        for names in strongly_connected_components(self.dependencies):
            below = {each for name in names for each in self.dependencies.get(name, ())}
            bases = frozenset(each for each in (*names, *below) if each not in self.dependencies)
            every = bases.union(*(found.get(each, frozenset()) for each in below))
            found |= dict.fromkeys(names, every)
        return found

    @cached_property
    def dependencies(self) -> Mapping[str, Collection[str]]:
        """The relations that the rules and aggregations of each relation of NEW read."""
        return relations_read(self.new.rules, self.new.aggregations)

    @cached_property
    def _new_by_head(self) -> Mapping[str, list[Rule]]:
        return rules_by_head(self.new.rules)

    @cached_property
    def _old_by_head(self) -> Mapping[str, list[Rule]]:
        return rules_by_head(self.queried_old.rules)

    def rules_of(self, relation: str, state: State) -> list[Rule]:
        """Return the rules of a relation in a state."""
        rules = self._old_by_head if state is State.OLD else self._new_by_head
        return rules.get(relation, [])

    def read_below(self, stratum: Stratum) -> tuple[str, ...]:
        """Return the relations that a stratum reads, instead of inlined bodies what these read."""
        rules = list(stratum.rules)
        found: list[str] = []
        for each in stratum.aggregations:
            body = self.new.relations.get(each.body)
            if body is not None and body.is_inlined:
                rules += self._new_by_head.get(each.body, ())
            else:
                found.append(each.body)
        read = [literal.relation for rule in rules for literal in rule.literals] + found
        return tuple(dict.fromkeys(name for name in read if name not in stratum.members))

    @cached_property
    def redefined(self) -> frozenset[str]:
        """The relations that gain or lose rules, or are new aggregates."""
        changed = (*self.added_rules, *self.removed_rules)
        heads = frozenset(rule.head.relation for rule in changed)
        return heads | self.changed_aggregates | self.reordered

    @cached_property
    def reordered(self) -> frozenset[str]:
        """The relations of OLD and NEW whose tuples are ordered or chosen in another way."""
        old, new = self.old.subsumption, self.new.subsumption
        return frozenset(
            name
            for name in self.old.relations.keys() & self.new.relations.keys()
            if old.get(name) != new.get(name)
            or self.old.relations[name].dominated != self.new.relations[name].dominated
            or self.old.relations[name].domains != self.new.relations[name].domains
        )

    @cached_property
    def added_aggregations(self) -> tuple[AnyAggregation, ...]:
        """The aggregations that only NEW has."""
        known = {replace(each, origin=NO_RULE) for each in self.old.aggregations}
        return tuple(
            each for each in self.new.aggregations if replace(each, origin=NO_RULE) not in known
        )

    @cached_property
    def changed_aggregates(self) -> frozenset[str]:
        """The relations that are new aggregates, or none any more."""
        left = {each.relation for each in self.new.aggregations}
        gone = {each.relation for each in self.old.aggregations} - left
        added = {each.relation for each in self.added_aggregations}
        return frozenset(added | (gone & self.new.relations.keys()))

    @cached_property
    def recursive_before(self) -> frozenset[str]:
        """The relations that depended on themselves in OLD."""
        found = (each.relations for each in strata(self.old) if each.is_recursive)
        return frozenset(name for names in found for name in names)

    @cached_property
    def candidates(self) -> Mapping[str, frozenset[State]]:
        """Every relation that may change, with the signs."""
        changed = {name: signs for name, signs in self.changed.items() if signs}
        for rule in self.added_rules:
            name = rule.head.relation
            changed[name] = changed.get(name, relevance.NO_SIGNS) | {State.ADDED}
        for rule in self.removed_rules:
            name = rule.head.relation
            changed[name] = changed.get(name, relevance.NO_SIGNS) | {State.REMOVED}
        redefined = (*self.refilled, *self.reordered, *self.changed_aggregates)
        changed |= dict.fromkeys(redefined, relevance.BOTH_SIGNS)
        return relevance.candidate_relations(self.new, changed)

    @cached_property
    def relevant(self) -> Mapping[str, frozenset[State]]:
        """Every relation whose changes are needed, with the signs."""
        stored: dict[str, frozenset[State]] = {
            name: relevance.BOTH_SIGNS
            for name, relation in self.new.relations.items()
            if relation.is_derived and not relation.is_virtual
        }
        if MonitoringOptimisation.RELEVANCE in self.disabled_optimisations:
            return dict.fromkeys(self.new.relations, relevance.BOTH_SIGNS)
        found = relevance.relevant_relations(self.new, {**self.watched, **stored})
        if MonitoringOptimisation.POLARITY in self.disabled_optimisations:
            return {name: relevance.BOTH_SIGNS for name, signs in found.items() if signs}
        return found

    def signs_of(self, relation: str) -> frozenset[State]:
        """Return the signs of the changes that may happen to a relation and are needed."""
        found = self.candidates.get(relation, relevance.NO_SIGNS)
        return (
            found & self.relevant.get(relation, relevance.NO_SIGNS) if found else relevance.NO_SIGNS
        )

    def is_virtual(self, relation: str) -> bool:
        """Whether a relation is derived and not stored."""
        found = self.new.relations.get(relation) or self.old.relations.get(relation)
        return found is not None and found.is_derived and found.is_virtual


def _difference(rules: Iterable[Rule], others: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that are not among others; keys are made of those only that may differ."""
    same = {id(rule) for rule in others}
    rest = [rule for rule in rules if id(rule) not in same]
    if not rest:
        return ()
    heads = {rule.head.relation for rule in rest}
    known = {rule_key(rule) for rule in others if rule.head.relation in heads}
    return tuple(rule for rule in rest if rule_key(rule) not in known)
