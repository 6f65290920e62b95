"""Reactions to what a transaction changes: constraints that abort it, alerts that report it.

`.alert` and `.abort` on an event predicate react to its tuples, on any other relation to those that
are new in it. A reaction that is itself new is also evaluated on what was there before it: the
tuples that the data of OLD gives under the rules of NEW.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from corollary.active.events import observed_change
from corollary.core.alerts import Alert, SinkKind, alerts_of, render_message
from corollary.core.arrow import to_python
from corollary.core.plans import event_relation, working_relation
from corollary.core.program import NormalProgram, Reaction, Relation
from corollary.core.states import State
from corollary.core.values import comparable_row, format_row
from corollary.data_class import dataclass
from corollary.database.arguments import chosen
from corollary.database.counters import ProgressRecorder
from corollary.database.reactions.causes import TriggerCauses, ViolationCauses
from corollary.database.reactions.trigger_rounds import TriggerRounds
from corollary.database.relation_contents import evaluated_relation
from corollary.database.state import DatabaseState
from corollary.errors import WHY_HINT, Diagnostic
from corollary.maintain.update import Update

Row = tuple[Any, ...]

MESSAGE_VIOLATIONS = 20
"""The maximum number of violations in a message."""


class ExistingViolations(StrEnum):
    """What is done about tuples that violate a constraint when it is declared."""

    REPORT = "report"
    REFUSE = "refuse"
    ACCEPT = "accept"

    @classmethod
    def of(cls, choice: str) -> "ExistingViolations":
        """Return the choice of that name; if there is none, it is an error."""
        return chosen(cls, choice, "C1050", "a choice for tuples that violate a new constraint")


@dataclass(frozen=True, slots=True)
class Violation:
    """A tuple that a constraint forbids.

    Attributes:
        message: of the constraint, filled in.
    """

    constraint: str
    row: Row
    message: str


@dataclass(slots=True)
class ReactionResult:
    """The alerts of a transaction, and the violations that it leaves.

    Attributes:
        existing: the tuples that violate a new constraint and were there before.
        violations: the tuples that violate a constraint because of the transaction, the first ones.
        findings: why the transaction must not be committed.
    """

    alerts: list[Alert] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    existing: list[Violation] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)


def evaluate_reactions(
    state: DatabaseState,
    update: Update,
    existing: ExistingViolations,
    rounds: TriggerRounds | None = None,
) -> ReactionResult:
    """Return the alerts and violations of a transaction whose views are maintained.

    A constraint is violated by what it changes; or by what was there, if the constraint is new and
    that is to be refused.

    Args:
        state: the database.
        update: what the transaction changes.
        existing: what is done about tuples that violate a new constraint.
        rounds: what triggers have done, if they have done anything.
    """
    normal = update.new
    occurred = _Occurrences(state, normal)
    result = ReactionResult()
    findings = result.findings
    fresh: set[Reaction] = set()
    reactions: Iterable[Reaction] = occurred.reactions(state.reactions)
    if update.old is not update.new:
        fresh = set(normal.active.reactions) - set(state.loaded.normal.active.reactions)
        reactions = normal.active.reactions
    for reaction in reactions:
        name = reaction.relation
        rows = occurred[name]
        # Other columns make another view, whose tuples of before are no news either.
        is_other = name not in update.old.relations or name in update.refilled
        if (reaction in fresh or is_other) and name not in normal.active.relations:
            rows, there = _split_existing(state, normal, name, rows)
            if reaction.name == "abort":
                found = [_violation(reaction, row, normal) for row in there]
                result.existing += found
                if existing is ExistingViolations.REFUSE and found:
                    findings += _existing_findings(reaction, found, normal)
        if not rows:
            continue
        if reaction.name == "abort":
            shown = rows[:MESSAGE_VIOLATIONS]
            result.violations += [_violation(reaction, row, normal) for row in shown]
            findings += _violation_findings(state, update, reaction, rows, rounds)
        else:
            relation = _relation(normal, name)
            result.alerts += alerts_of(name, relation.columns, relation.types, rows, [reaction])
    for name in sorted(state.callback_events(normal)):
        own = [each for each in normal.active.reactions if each.relation == name]
        relation = replace(_relation(normal, name), name=name)
        result.alerts += _callback_alerts(relation, occurred[name], own)
    return result


def _callback_alerts(
    relation: Relation, rows: list[Row], reactions: list[Reaction]
) -> Iterable[Alert]:
    """Return the alerts that go to callbacks."""
    columns, types = relation.columns, relation.types
    every = alerts_of(relation.name, columns, types, rows, reactions, has_callbacks=True)
    return [each for each in every if each.sink.kind is SinkKind.CALLBACK]


def _relation(normal: NormalProgram, name: str) -> Relation:
    return normal.active.relations.get(name) or normal.relations[observed_change(name)[0]]


class _Occurrences(dict[str, list[Row]]):
    """The tuples of event predicates, and those that are new in other relations."""

    def __init__(self, state: DatabaseState, normal: NormalProgram) -> None:
        super().__init__()
        self._engine = state.engine
        self._normal = normal
        self._merged: dict[str, dict[str, list[Row]]] = {}

    def reactions(self, reacting: Mapping[str, Mapping[str, list[Reaction]]]) -> list[Reaction]:
        """Return the reactions to what has occurred, out of those by relation and event."""
        found: list[Reaction] = []
        for place, by_event in reacting.items():
            is_merged = place not in by_event
            events = self._by_predicate(place) if is_merged else by_event
            found += [each for event in events for each in by_event.get(event, ()) if self[event]]
        return found

    def __missing__(self, name: str) -> list[Row]:
        rows = self[name] = sorted(self._read(name), key=_sort_key)
        return rows

    def _read(self, name: str) -> list[Row]:
        active = self._normal.active
        if name in active.merged:
            return self._by_predicate(active.merged[name]).get(name, [])
        if name in active.relations:
            return self._rows(event_relation(name), State.NEW)
        name, sign = observed_change(name)
        if self._normal.relations[name].is_stored:
            return self._rows(name, sign)
        return self._rows(working_relation(name, sign), State.NEW)

    def _by_predicate(self, merged: str) -> dict[str, list[Row]]:
        """Return the tuples of event predicates that were evaluated together, by predicate."""
        if merged not in self._merged:
            found: dict[str, list[Row]] = {}
            for event, *row in self._rows(event_relation(merged), State.NEW):
                found.setdefault(event, []).append(tuple(row))
            self._merged[merged] = found
        return self._merged[merged]

    def _rows(self, place: str, state: State) -> list[Row]:
        engine = self._engine
        return list(to_python(engine.read(place, state))) if engine.size(place, state) else []


def _sort_key(row: Row) -> list[tuple[bool, str, Any]]:
    return [(value is not None, type(value).__name__, repr(value)) for value in row]


def _split_existing(
    state: DatabaseState, normal: NormalProgram, name: str, rows: list[Row]
) -> tuple[list[Row], list[Row]]:
    """Return which tuples of a relation are new, and which were there by the rules of NEW."""
    if not state.commits:
        return rows, []
    was, now = (_contents(state, normal, name, data) for data in (State.OLD, State.NEW))
    known = set(map(comparable_row, was))
    new = [row for row in now if comparable_row(row) not in known]
    there = [row for row in now if comparable_row(row) in known]
    return sorted(new, key=_sort_key), sorted(there, key=_sort_key)


def _contents(state: DatabaseState, normal: NormalProgram, name: str, data: State) -> list[Row]:
    """Return what a relation holds under the rules of NEW, with the data of a state."""
    with evaluated_relation(
        state.engine,
        normal,
        name,
        data=data,
        statistics=state.planner.statistics,
        recorder=ProgressRecorder(state.console),
        limits=state.limits,
    ) as answers:
        return list(to_python(state.engine.read(answers)))


def _violation(reaction: Reaction, row: Row, normal: NormalProgram) -> Violation:
    relation = _relation(normal, reaction.relation)
    message = render_message(reaction.message, relation.columns, row, relation.types)
    return Violation(reaction.relation, row, message)


def _violation_findings(
    state: DatabaseState,
    update: Update,
    reaction: Reaction,
    rows: list[Row],
    rounds: TriggerRounds | None,
) -> list[Diagnostic]:
    """Return the findings for tuples that violate a constraint, with what has caused them."""
    normal = update.new
    causes = ViolationCauses(state, update, TriggerCauses(rounds) if rounds else None)
    is_sql = reaction.span is not None and reaction.span.is_sql
    listed = []
    for row in rows[:MESSAGE_VIOLATIONS]:
        changes = causes.find(reaction.relation, row)
        if is_sql:  # an assertion is its own cause
            changes = [each for each in changes if not each.startswith(f"`+{reaction.relation}(")]
        caused = f"caused by {', '.join(changes)}; " if changes else ""
        note = f"{caused}nothing was changed{WHY_HINT}proves it"
        listed.append(_finding(reaction, row, normal, note))
    if len(rows) > MESSAGE_VIOLATIONS:
        number = len(rows) - MESSAGE_VIOLATIONS
        more = (
            f"There are {number:,} more such rows."
            if is_sql
            else f"`{reaction.relation}` has {number:,} more such tuples."
        )
        listed.append(Diagnostic("C1051", more, reaction.span))
    return listed


def _existing_findings(
    reaction: Reaction, found: list[Violation], normal: NormalProgram
) -> list[Diagnostic]:
    note = "it was there before the constraint: correct the data first, or say `--existing report`"
    return [
        _finding(reaction, each.row, normal, note, "C1052") for each in found[:MESSAGE_VIOLATIONS]
    ]


def _finding(
    reaction: Reaction, row: Row, normal: NormalProgram, note: str, code: str = "C1051"
) -> Diagnostic:
    relation = _relation(normal, reaction.relation)
    message = render_message(reaction.message, relation.columns, row, relation.types)
    rules = dict.fromkeys(
        rule.origin.span
        for rule in (*normal.active.rules, *normal.rules)
        if rule.head.relation == reaction.relation and rule.origin.span is not None
    )
    # A constraint that a statement of SQL has made is where its rule is: in the statement.
    place = reaction.span if relation.is_declared else next(iter(rules), reaction.span)
    if place is not None and place.is_sql:
        return Diagnostic(code, message, place, note)
    return Diagnostic(
        code,
        f"The constraint `{reaction.relation}` forbids {format_row(row, relation.types)}: "
        f"{message}",
        place,
        note,
        tuple((span, "by this rule") for span in rules if span != place),
    )
