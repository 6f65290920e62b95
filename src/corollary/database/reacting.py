"""What a transaction's changes set off: constraints are judged, alerts are found.

`.alert` and `.abort` on an event predicate react to its tuples, on any other relation to those that
are new in it. A reaction that is itself new looks at what comes with it, too: tuples that the data
of OLD has under the rules of NEW were there before it was declared.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from corollary.core.alerts import Alert, SinkKind, alerts_of, render_message
from corollary.core.arrow import to_python
from corollary.core.plan import event_of, working
from corollary.core.program import NormalProgram, Reaction, Relation
from corollary.core.rules import Literal
from corollary.core.states import State
from corollary.core.terms import Variable
from corollary.core.values import row_text
from corollary.database.causes import causes
from corollary.database.journal import Attempt
from corollary.database.once import answer_relation
from corollary.database.progress import Progress
from corollary.errors import ConstraintError, Diagnostic, InputError
from corollary.maintain.solve import answer

if TYPE_CHECKING:
    from corollary.database.kernel import Kernel

Row = tuple[Any, ...]

EXISTING = ("report", "refuse", "accept")
"""What may be done about tuples that violate a constraint when it is declared."""

MOST_SHOWN = 20
"""So many violations a message lists."""


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
class Verdict:
    """What is to be told of a transaction.

    Attributes:
        existing: the tuples that violate a new constraint and were there before.
    """

    alerts: list[Alert] = field(default_factory=list)
    existing: list[Violation] = field(default_factory=list)


def demand_choice(existing: str) -> None:
    """Refuse a word that says nothing about existing violations.

    Raises:
        InputError: there is no such choice.
    """
    if existing not in EXISTING:
        raise InputError.of(
            "C1050",
            f"`{existing}` says nothing about tuples that violate a new constraint.",
            None,
            f"the choices are {', '.join(EXISTING)}",
        )


def judged(database: "Kernel", attempt: Attempt, existing: str) -> Verdict:
    """Return what is to be told of a transaction whose views are maintained.

    Raises:
        ConstraintError: a constraint is violated by what it changes; or by what was there, if the
            constraint is new and that is to be refused.
    """
    normal = attempt.after.normal
    reactions = normal.active.reactions
    verdict = Verdict()
    heard = database.heard(normal)
    if not reactions and not heard:
        return verdict
    known = set(database.loaded.normal.active.reactions)
    findings: list[Diagnostic] = []
    happened: dict[str, list[Row]] = {}
    for reaction in reactions:
        name = reaction.relation
        is_event = name in normal.active.relations
        rows = happened.setdefault(name, _happened(database, normal, name))
        if reaction not in known and not is_event:
            rows, there = _beside_existing(database, normal, name, rows)
            if reaction.name == "abort":
                found = [_violation(reaction, row, normal) for row in there]
                verdict.existing += found
                if existing == "refuse" and found:
                    findings += _refused(reaction, found, normal)
        if reaction.name == "abort":
            if rows:
                findings += _violated(database, attempt, reaction, rows)
        elif rows:
            relation = _relation(normal, name)
            verdict.alerts += alerts_of(name, relation.columns, relation.types, rows, [reaction])
    if findings:
        raise ConstraintError(findings)
    for name in sorted(heard):
        rows = happened.get(name) or _happened(database, normal, name)
        relation = _relation(normal, name)
        told = [each for each in reactions if each.relation == name]
        verdict.alerts += _heard(relation, rows, told)
    return verdict


def _heard(relation: Relation, rows: list[Row], reactions: list[Reaction]) -> Iterable[Alert]:
    """Return what callbacks are told."""
    every = alerts_of(
        relation.name, relation.columns, relation.types, rows, reactions, is_heard=True
    )
    return [each for each in every if each.sink.kind is SinkKind.CALLBACK]


def _relation(normal: NormalProgram, name: str) -> Relation:
    return normal.active.relations.get(name) or normal.relations[name]


def _happened(database: "Kernel", normal: NormalProgram, name: str) -> list[Row]:
    """Return the tuples of an event predicate, or those that are new in another relation."""
    engine = database.engine
    if name in normal.active.relations:
        table = engine.read(event_of(name)) if engine.size(event_of(name)) else None
    else:
        relation = normal.relations[name]
        is_virtual = relation.is_derived and relation.is_virtual
        place = working(name, State.ADDED) if is_virtual else name
        state = State.NEW if is_virtual else State.ADDED
        table = engine.read(place, state) if engine.size(place, state) else None
    return [] if table is None else sorted(to_python(table), key=_order)


def _order(row: Row) -> list[tuple[bool, str, Any]]:
    return [(value is not None, type(value).__name__, repr(value)) for value in row]


def _beside_existing(
    database: "Kernel", normal: NormalProgram, name: str, rows: list[Row]
) -> tuple[list[Row], list[Row]]:
    """Return which tuples of a relation are new, and which were there by the rules of NEW."""
    if not database.commits:
        return rows, []
    was, now = (_held(database, normal, name, state) for state in (State.OLD, State.NEW))
    known = set(map(_exact, was))
    new = [row for row in now if _exact(row) not in known]
    there = [row for row in now if _exact(row) in known]
    return sorted(new, key=_order), sorted(there, key=_order)


def _exact(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple((type(value).__name__, repr(value)) for value in row)


def _held(database: "Kernel", normal: NormalProgram, name: str, state: State) -> list[Row]:
    """Return what a relation holds under the rules of NEW, with the data of a state."""
    relation = normal.relations[name]
    slots = tuple(Variable(f"v{at}", type_) for at, type_ in enumerate(relation.types))
    goal = Literal(name, slots)
    answers = answer_relation(goal)
    engine = database.engine
    statistics = database.planning.statistics
    plan = answer(
        normal, goal, statistics, lambda each: not normal.relations[each].is_derived, state
    )
    engine.declare({answers.name: answers})
    try:
        engine.run(plan, Progress(database.console), database.limits)
        return list(to_python(engine.read(answers.name)))
    finally:
        engine.drop([answers.name])


def _violation(reaction: Reaction, row: Row, normal: NormalProgram) -> Violation:
    relation = _relation(normal, reaction.relation)
    message = render_message(reaction.message, relation.columns, row, relation.types)
    return Violation(reaction.relation, row, message)


def _violated(
    database: "Kernel", attempt: Attempt, reaction: Reaction, rows: list[Row]
) -> list[Diagnostic]:
    """Return what to say of tuples that violate a constraint, and of the changes behind them."""
    normal = attempt.after.normal
    because = causes(database, attempt, reaction.relation, rows[:MOST_SHOWN])
    listed = []
    for row in rows[:MOST_SHOWN]:
        changes = because.get(row, ())
        caused = f"caused by {', '.join(changes)}; " if changes else ""
        listed.append(_said(reaction, row, normal, f"{caused}nothing was changed"))
    if len(rows) > MOST_SHOWN:
        more = f"`{reaction.relation}` has {len(rows) - MOST_SHOWN:,} more such tuples."
        listed.append(Diagnostic("C1051", more, reaction.span))
    return listed


def _refused(reaction: Reaction, found: list[Violation], normal: NormalProgram) -> list[Diagnostic]:
    note = "it was there before the constraint: mend the data first, or say `--existing report`"
    return [_said(reaction, each.row, normal, note, "C1052") for each in found[:MOST_SHOWN]]


def _said(
    reaction: Reaction, row: Row, normal: NormalProgram, note: str, code: str = "C1051"
) -> Diagnostic:
    relation = _relation(normal, reaction.relation)
    message = render_message(reaction.message, relation.columns, row, relation.types)
    rules = [
        rule.origin.span
        for rule in (*normal.active.rules, *normal.rules)
        if rule.head.relation == reaction.relation and rule.origin.span is not None
    ]
    return Diagnostic(
        code,
        f"The constraint `{reaction.relation}` forbids {row_text(row, relation.types)}: {message}",
        reaction.span,
        note,
        tuple((span, "by this rule") for span in dict.fromkeys(rules)),
    )
