"""Instances of active rules in a transaction that is open: events, and what triggers do.

Event predicates have tuples only while a transaction runs. They are evaluated once more, on the net
change; then instances of rules are found as those of views are: by a pipeline for each
rule, led by the wanted tuples. Events may depend on each other, so the instances of all that a
tuple needs are found first, and then chosen bottom-up, round by round.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from corollary.active.events import event_plan, required_events
from corollary.core.arrow import sort_rows, to_python
from corollary.core.logic import Literal, Rule, Value
from corollary.core.plans import event_relation
from corollary.core.program import MarkedRelation
from corollary.core.states import CHANGES, State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.state import DatabaseState
from corollary.maintain.draft import Draft
from corollary.maintain.update import Update
from corollary.provenance.absences.rule_parts import RuleParts
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import RuleQueries, match_head, row_of, with_named_wildcards

EventTuple = tuple[str, Row]
"""A tuple of an event predicate, or (`+p`, `-p`) a change of a base relation by a trigger."""

INSTANCES_MAX = 16
"""The maximum number of instances of one rule and tuple among which one is chosen."""


@dataclass(frozen=True, slots=True)
class EventInstance:
    """An active rule with values for its variables.

    Attributes:
        values: by the names of variables.
        events: the event tuples, and the changes that triggers can make, among its premises.
    """

    rule: Rule
    values: Mapping[str, Value]
    events: tuple[EventTuple, ...]


class EventInstances:
    """Finds instances of active rules.

    Args:
        state: the database.
        asked: the NEW state of the transaction.
        update: the transaction; its program is not optimised for monitoring.
        triggers: the base relation and sign of each trigger, by the names of their heads.
        allowance: what is left of the limits.
    """

    def __init__(
        self,
        state: DatabaseState,
        asked: QueryState,
        update: Update,
        triggers: Mapping[str, MarkedRelation],
        allowance: Allowance,
    ) -> None:
        self._state = state
        self._asked = asked
        self._update = update
        self._allowance = allowance
        self._active = update.new.active
        marks = {each: name for name, each in self._active.marked.items()}
        self._effects = {marks[each]: name for name, each in triggers.items() if each in marks}

    @contextmanager
    def evaluate_events(self, goals: Collection[str]) -> Iterator[None]:
        """Evaluate event predicates, what they need, and triggers.

        Their tuples are in the engine until the end.
        """
        engine, update = self._asked.engine, self._update
        declared = self._state.demand(update.new).goals
        events = required_events(self._active, (*goals, *self._effects.values()))
        made = {
            event_relation(name): replace(
                relation, name=event_relation(name), is_derived=False, is_declared=False
            )
            for name, relation in self._active.relations.items()
            if name in events and name not in declared
        }
        engine.declare(made)
        try:
            self._allowance.run(engine, event_plan(update, events), self._asked.limits)
            yield
        finally:
            engine.drop(made)

    def tuples(self, event: str) -> list[Row]:
        """Return the tuples of an event predicate, in order."""
        return list(to_python(sort_rows(self._asked.engine.read(event_relation(event)))))

    def chosen(self, goals: Sequence[EventTuple]) -> dict[EventTuple, EventInstance]:
        """Return for event tuples, and for those that they need, an instance of a rule each.

        Changes that no trigger makes have none.
        """
        found: dict[EventTuple, list[EventInstance]] = {}
        level = list(dict.fromkeys(goals))
        while level:
            by_name: dict[str, list[Row]] = {}
            for name, row in level:
                found[name, row] = []
                by_name.setdefault(name, []).append(row)
            for name, rows in by_name.items():
                head = self._effects.get(name, name)
                if head in self._active.relations:
                    for at, instance in self._instances(head, rows):
                        found[name, rows[at]].append(instance)
            self._allowance.expanded += len(level)
            if self._allowance.tuples <= 0 or self._allowance.is_over:
                break
            needed = (e for every in found.values() for one in every for e in one.events)
            level = [each for each in dict.fromkeys(needed) if each not in found]
        return self._lowest(found)

    def _lowest(
        self, found: Mapping[EventTuple, Sequence[EventInstance]]
    ) -> dict[EventTuple, EventInstance]:
        """Return the first instance of each tuple whose events are explained, round by round."""
        chosen: dict[EventTuple, EventInstance] = {}
        # A change need not come from a trigger: the user may have made it.
        known = {each for each in found if each[0] in self._effects and not found[each]}
        while True:
            new = {
                each: next(one for one in instances if known.issuperset(one.events))
                for each, instances in found.items()
                if each not in known and any(known.issuperset(one.events) for one in instances)
            }
            if not new:
                break
            chosen |= new
            known |= new.keys()
        return chosen

    def _instances(self, head: str, rows: Sequence[Row]) -> Iterator[tuple[int, EventInstance]]:
        """Yield the first instances of the rules of an event predicate, for some of its tuples."""
        parts = [
            RuleParts(with_named_wildcards(rule, self._types))
            for rule in self._active.rules
            if rule.head.relation == head
        ]
        components = [each.whole(range(len(each.parts))) for each in parts]
        queries = [
            rule.query(self._asked, each) for rule, each in zip(parts, components, strict=True)
        ]
        draft = Draft(self._update)
        draft.readable.update(self._update.new.relations)
        types = self._active.relations[head].types
        with closing(RuleQueries(self._asked, head, types, queries, draft)) as found:
            tables = found.run(dict(enumerate(rows)), self._allowance)
        for at, table in tables.items():
            rule, names = parts[at].rule, [each.name for each in components[at].variables]
            counts: Counter[int] = Counter()
            for number, *values in to_python(sort_rows(table)):
                assert isinstance(number, int)
                counts[number] += 1
                if counts[number] <= INSTANCES_MAX:
                    bound = dict(zip(names, values, strict=True))
                    bound |= match_head(rule.head, rows[number])
                    yield number, EventInstance(rule, bound, tuple(self._events(rule, bound)))

    def _types(self, name: str) -> tuple[Type, ...]:
        """Return the types of what a literal of an active rule names."""
        relation, _ = self._active.marked.get(name, (name, State.NEW))
        found = self._active.relations.get(relation) or self._asked.program.relations[relation]
        return found.types

    def _events(self, rule: Rule, values: Mapping[str, Value]) -> Iterator[EventTuple]:
        """Yield the premises that are event tuples, or changes that a trigger could make."""
        for literal in rule.literals:
            row = row_of(literal, values)
            if row is not None and not literal.negated and self._is_event(literal):
                yield literal.relation, row

    def _is_event(self, literal: Literal) -> bool:
        name = literal.relation
        if name in {each.relation for each in self._active.aggregations}:
            return False
        if name in self._active.relations:
            return True
        _, state = self._active.marked.get(name, ("", None))
        return state in CHANGES and name in self._effects
