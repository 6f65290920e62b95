"""Which trigger made a change of a base relation, and which change of the user set it off.

The rounds of triggers are kept until the transaction ends (`trigger_rounds`): what each has done,
and the changes that it has seen. So the search goes back from round to round. It compares the
arguments of literals with tuples, and does not evaluate bodies: where the event of a trigger is a
change of a view, the changes of base relations that the view is derived from are named.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from corollary.analysis.relevance import BOTH_SIGNS, relevant_relations
from corollary.core.arrow import to_python
from corollary.core.logic import Constant, Literal, Rule, Variable
from corollary.core.states import CHANGES, State
from corollary.core.values import format_row
from corollary.database.reactions.trigger_rounds import TriggerRounds

Row = tuple[Any, ...]
BaseChange = tuple[str, State, Row]

MESSAGE_CHANGES = 3
"""The maximum number of changes of the user that a message names for one tuple."""


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
