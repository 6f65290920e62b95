"""What has caused a change: the changes that violate a constraint, the triggers that made them.

From a violating tuple the search goes down the rules, until only changes of base relations are
left; a view that is aggregated, or whose changes are not computed, is named itself.

The rounds of triggers are kept until the transaction ends (`trigger_rounds`): what each has done,
and the changes that it has seen. So the search for the change of the user that set a trigger off
goes back from round to round. It compares the arguments of literals with tuples, and does not
evaluate bodies: where the event of a trigger is a change of a view, the changes of base relations
that the view is derived from are named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from corollary.active.causes import plan_causes
from corollary.analysis.relevance import BOTH_SIGNS, relevant_relations
from corollary.core.arrow import to_python
from corollary.core.logic import Constant, Literal, Rule, Variable
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import CHANGES, State
from corollary.core.values import format_row
from corollary.database.program.parts import working_copy
from corollary.database.reactions.trigger_rounds import TriggerRounds
from corollary.database.state import DatabaseState
from corollary.maintain.update import Update

Row = tuple[Any, ...]
BaseChange = tuple[str, State, Row]

MESSAGE_CHANGES = 3
"""The maximum number of changes that a message names for one tuple."""


class TriggerCauses:
    """Finds the triggers that caused changes, in the rounds of one transaction."""

    def __init__(self, rounds: TriggerRounds) -> None:
        self._program = rounds.pending.after.normal
        self._chain = rounds.chain
        self._steps = rounds.steps

    def describe(self, relation: str, sign: State, row: Row) -> str:
        """Return a clause on the trigger that has made a change; empty if the user has made it."""
        at = self._round_of(relation, sign, row, len(self._chain))
        if at is None:
            return ""
        rules = self._triggers(relation, sign, row)
        texts = " or ".join(f"`{text}`" for text in dict.fromkeys(r.origin.text for r, _ in rules))
        found = dict.fromkeys(map(self._print, self._user_changes((relation, sign, row), at)))
        named = list(found)[:MESSAGE_CHANGES]
        because = f" because of {', '.join(named)}" if named else ""
        return f", which the trigger {texts} makes{because}"

    def _print(self, change: BaseChange) -> str:
        relation, sign, row = change
        types = self._program.relations[relation].types
        users = self._names_of_bases()
        text = format_row(row, types).replace("`", "")
        return f"`{'+' if sign is State.ADDED else '-'}{users.get(relation, relation)}{text}`"

    def _names_of_bases(self) -> dict[str, str]:
        """Return the relations of the user that other ones hold the tuples of, by these."""
        program = self._program
        return {base: name for name, base in program.bases.items() if name not in program.bags}

    def _round_of(self, relation: str, sign: State, row: Row, before: int) -> int | None:
        """Return the last round before another one in which triggers made a change."""
        for at in reversed(range(before)):
            for each in self._chain[at].operations:
                is_same = (each.relation, each.sign) == (relation, sign)
                if is_same and row in to_python(each.rows):
                    return at
        return None

    def _triggers(
        self, relation: str, sign: State, row: Row
    ) -> list[tuple[Rule, Mapping[str, Any]]]:
        """Return the rules that can have made a change, with the values of their variables."""
        triggers = self._program.active.triggers
        names = {name for name, each in triggers.items() if each == (relation, sign)}
        return [
            (rule, values)
            for rule in self._program.active.rules
            if rule.head.relation in names and (values := _match(rule.head, row, {})) is not None
        ]

    def _user_changes(self, change: BaseChange, at: int) -> Iterator[BaseChange]:
        """Yield the changes of the user that led to one of a trigger in a round."""
        for rule, values in self._triggers(*change):
            for relation, sign, row in self._events(rule, values, at):
                written = self._names_of_bases().get(relation, relation)
                earlier = self._round_of(written, sign, row, at)
                if earlier is None:
                    yield relation, sign, row
                else:
                    yield from self._user_changes((written, sign, row), earlier)

    def _events(self, rule: Rule, values: Mapping[str, Any], at: int) -> Iterator[BaseChange]:
        """Yield the changes of base relations that a rule has seen as events in a round."""
        active = self._program.active
        for literal in rule.literals:
            relation, sign = active.marked.get(literal.relation, ("", State.NEW))
            if sign in CHANGES:
                yield from self._base_changes(relation, sign, literal, values, at)
            elif literal.relation in active.relations and not literal.negated:
                for other in active.rules:
                    if other.head.relation != literal.relation:
                        continue
                    row = tuple(_value(slot, values) for slot in literal.slots)
                    inner = _match(other.head, row, {})
                    if inner is not None:
                        yield from self._events(other, inner, at)

    def _base_changes(
        self, relation: str, sign: State, literal: Literal, values: Mapping[str, Any], at: int
    ) -> Iterator[BaseChange]:
        if not self._program.relations[relation].is_derived:
            for row in self._rows(relation, sign, at):
                if _match(literal, row, values) is not None:
                    yield relation, sign, row
            return
        for name in relevant_relations(self._program, {relation: BOTH_SIGNS}):
            if not self._program.relations[name].is_derived:
                for each in CHANGES:
                    yield from ((name, each, row) for row in self._rows(name, each, at))

    def _rows(self, relation: str, sign: State, at: int) -> list[Row]:
        """Return what a round has seen added to a relation, or removed."""
        step = self._steps[at].get(relation)
        return [] if step is None else list(to_python(step[0 if sign is State.ADDED else 1]))


UNKNOWN = object()
"""The value of a variable that nothing has bound."""


def _value(slot: object, values: Mapping[str, Any]) -> Any:
    if isinstance(slot, Constant):
        return slot.value
    return values.get(slot.name, UNKNOWN) if isinstance(slot, Variable) else UNKNOWN


def _match(literal: Literal, row: Row, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the values of variables when a literal is a tuple, None if it cannot be that."""
    found = dict(values)
    for slot, value in zip(literal.slots, row, strict=True):
        known = _value(slot, found)
        if known is not UNKNOWN and value is not UNKNOWN and known != value:
            return None
        if isinstance(slot, Variable) and value is not UNKNOWN:
            found[slot.name] = value
    return found


RelationChange = tuple[str, State]


MAX_STEPS = 30
"""The maximum number of tuples visited to find them."""


class ViolationCauses:
    """Finds the changes that cause violations, once all views are maintained."""

    def __init__(
        self, state: DatabaseState, update: Update, triggers: TriggerCauses | None = None
    ) -> None:
        self._state = state
        self._triggers = triggers
        self._update = update
        self._program: NormalProgram = update.new
        demand = state.demand(self._program)
        self._known = {
            (name, sign)
            for name, each in self._program.relations.items()
            for sign in CHANGES
            if each.is_stored or sign in demand.signs.get(name, ())
        }
        self._known |= {(name, State.ADDED) for name in demand.goals}

    def find(self, relation: str, row: Row) -> list[str]:
        """Return the changes that cause a tuple of a constraint, as messages show them."""
        seen: set[tuple[RelationChange, Row]] = set()
        found: dict[str, None] = {}
        work: list[tuple[RelationChange, Row]] = [((relation, State.ADDED), row)]
        while work and len(found) < MESSAGE_CHANGES and len(seen) < MAX_STEPS:
            change, tuple_ = work.pop(0)
            if (change, tuple_) in seen:
                continue
            seen.add((change, tuple_))
            below = self._direct_causes(change, tuple_)
            work += below
            name = self._user_name(change[0])
            if not below and name is not None and change[0] not in self._program.active.relations:
                types = self._program.relations[change[0]].types
                sign = "+" if change[1] is State.ADDED else "-"
                text = f"`{sign}{name}{format_row(tuple_, types).replace('`', '')}`"
                cause = self._triggers.describe(name, change[1], tuple_) if self._triggers else ""
                found[f"{text}{cause}"] = None
        return list(found)

    def _user_name(self, name: str) -> str | None:
        """Return the user's name of a relation; None if rewriting has made it."""
        relation = self._program.relations.get(name)
        if relation is not None and relation.is_declared:
            return name
        return next((user for user, base in self._program.bases.items() if base == name), None)

    def _direct_causes(self, change: RelationChange, row: Row) -> list[tuple[RelationChange, Row]]:
        """Return the direct causes of a tuple, a few of each relation."""
        name, _ = change
        relation = self._relation(name)
        if not relation.is_derived:
            return []
        engine, limits = self._state.engine, self._state.limits
        given = working_copy(relation, "given")
        plan, found = plan_causes(self._update, change, given.name, self._known)
        if not found:
            return []
        places = {
            each.target: replace(self._relation(each.relation), name=each.target, is_derived=False)
            for each in found
        }
        declared = {given.name: given} | places
        engine.declare(declared)
        try:
            engine.insert(given.name, [row])
            engine.run(plan, CountingRecorder(), limits)
            return [
                ((each.relation, each.sign), tuple_)
                for each in found
                for tuple_ in list(to_python(engine.read(each.target)))[:MESSAGE_CHANGES]
            ]
        finally:
            engine.drop(declared)

    def _relation(self, name: str) -> Relation:
        return self._program.active.relations.get(name) or self._program.relations[name]
