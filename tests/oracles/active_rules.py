"""The judge of active rules: events, triggers, alerts and constraints from whole states.

`react(text, base, operations)` tells what a transaction does, on top of `evaluation` and as
naively: both states are evaluated in full, and event predicates by the same evaluator on relations
that hold the changes and the old state.

| in a rule | read from the relation | that holds |
|---|---|---|
| `p`, `p@new` | `p` | the new state |
| `p@old` | `p@old` | the old state |
| `+p`, `-p` in a body | `+p`, `-p` | the difference |
| `+p`, `-p` as a head | `insert p`, `delete p` | what triggers ask for |

    S0 the state before, S1 after the operations; while S(k-1) != S(k):
        events of S(k-1) -> S(k); S(k+1) = S(k) - all `delete p` + all `insert p`
    then once the events of S0 -> S(last): constraints, alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from oracles.evaluation import (
    Conjunction,
    Oracle,
    OracleLimit,
    OracleRejected,
    Type,
    canonical,
    dnf,
    evaluate,
    event_predicates,
    relations_in,
    to_string,
    typed_rows,
)
from oracles.parser import (
    Agg,
    And,
    Atom,
    Cmp,
    Decl,
    Expr,
    Fn,
    Formula,
    Lit,
    Not,
    Or,
    Program,
    Rule,
    Truth,
    TypeName,
    Var,
    parse,
)

__all__ = ["Alert", "Outcome", "active_rules", "evaluated", "react"]

Row: TypeAlias = tuple[Any, ...]
State: TypeAlias = Mapping[str, set[Row]]
Operation: TypeAlias = tuple[str, str, Row]
"""`+` or `-`, a base relation, a tuple."""

LIMIT = 100_000
ROUNDS = 1_000
SOURCES = {"": "{}", "new": "{}", "old": "{}@old", "+": "+{}", "-": "-{}"}
TARGETS = {"": "{}", "+": "insert {}", "-": "delete {}"}


@dataclass(frozen=True, slots=True)
class Alert:
    """What `.alert` sends, or what `.abort` refuses, for one tuple."""

    event: str
    row: Row
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction does.

    Attributes:
        base: what is asserted in base relations afterwards, but for the facts of the text.
        changes: the tuples that came to each relation and those that went, event predicates left
            out; nothing if it was aborted.
        events: the tuples of each event predicate.
        alerts: in order of event, tuple and message.
        violations: alike; with one of them nothing is changed and no alert sent.
        cascade: for each round of triggers that changed something, what they asked for.
    """

    base: State
    changes: Mapping[str, tuple[set[Row], set[Row]]]
    events: State
    alerts: tuple[Alert, ...]
    violations: tuple[Alert, ...]
    cascade: tuple[frozenset[Operation], ...]

    @property
    def is_aborted(self) -> bool:
        """Whether a constraint was violated."""
        return bool(self.violations)


def react(
    text: str,
    base: State,
    operations: Iterable[Operation],
    *,
    before: str | None = None,
    rounds: int = ROUNDS,
) -> Outcome:
    """Tell what a transaction does.

    Args:
        text: the program.
        base: what is asserted in base relations before, but for the facts of the text.
        operations: in order; the last one on a tuple wins.
        before: the program before, if rules come or go in this transaction.
        rounds: of triggers, at most.

    Raises:
        OracleError: A rule instance fails at run time.
        OracleLimit: Triggers do not come to an end.

    >>> program = '.decl p(x: number) e(x) :- +p(x). .alert e "new: {x}"'
    >>> react(program, {}, [("+", "p", (1,))]).alerts[0].message
    'new: 1'
    """
    active = active_rules(text)
    old = evaluated(before or text, base)
    asserted = _after(base, operations)
    previous, current = old, evaluated(text, asserted)
    cascade: list[frozenset[Operation]] = []
    met = []
    while not _is_same(previous, current):
        if len(cascade) > rounds or (previous, current) in met:
            raise OracleLimit(f"triggers go on after {len(cascade)} rounds")
        met.append((previous, current))
        asked = active.asked(active.happen(previous, current))
        asserted = _after(asserted, asked)
        previous, current = current, evaluated(text, asserted)
        if not _is_same(previous, current):
            cascade.append(frozenset(asked))
    if _is_same(old, current):
        return Outcome(asserted, {}, {}, (), (), tuple(cascade))
    happened = active.happen(old, current)
    events = {name: happened[name] for name in active.events}
    violations = active.reactions("abort", happened)
    if violations:
        return Outcome(base, {}, events, (), violations, tuple(cascade))
    changes = {
        name: (current[name] - old.get(name, set()), old.get(name, set()) - current[name])
        for name in active.ordinary
    }
    alerts = active.reactions("alert", happened)
    return Outcome(asserted, changes, events, alerts, (), tuple(cascade))


def _is_same(one: State, other: State) -> bool:
    """Whether two states agree; a relation that one of them does not know is empty there."""
    return all(one.get(name, set()) == other.get(name, set()) for name in {*one, *other})


def _after(base: State, operations: Iterable[Operation]) -> dict[str, set[Row]]:
    found = {name: set(rows) for name, rows in base.items()}
    for sign, relation, row in operations:
        rows = found.setdefault(relation, set())
        (rows.add if sign == "+" else rows.discard)(tuple(map(canonical, row)))
    return found


def evaluated(text: str, base: State) -> dict[str, set[Row]]:
    """Return every relation of a program, event predicates left empty; computed once."""
    frozen = tuple((name, frozenset(rows)) for name, rows in sorted(base.items()) if rows)
    return _evaluated_once(text, frozen)


@lru_cache(maxsize=256)
def _evaluated_once(text: str, base: tuple[tuple[str, frozenset[Row]], ...]) -> dict[str, set[Row]]:
    return evaluate(text, dict(base), LIMIT, ROUNDS)


@lru_cache(maxsize=64)
def active_rules(text: str) -> Active:
    """Return the active rules of a program."""
    return Active(parse(text))


class Active:
    """The active rules of a program.

    Attributes:
        events: the event predicates.
        ordinary: the other relations.
        program: the active rules as ordinary ones, see the table above.
    """

    def __init__(self, program: Program) -> None:
        self.source = program
        self.events = event_predicates(program.rules)
        self.ordinary = [name for name in program.decls if name not in self.events]
        rules = [
            Rule(
                tuple(_renamed(head, TARGETS) for head in rule.heads),
                _read(rule.body),
                rule.is_null_safe,
            )
            for rule in program.rules
            if any(head.mark or head.relation in self.events for head in rule.heads)
        ]
        decls = {name: replace(decl, is_eqrel=False) for name, decl in program.decls.items()}
        for name in self.ordinary:
            for form in {*SOURCES.values(), *TARGETS.values()}:
                decls[form.format(name)] = replace(decls[name], name=form.format(name))
        self.program = replace(program, decls=decls, rules=rules, reactions=[], bags={})
        self._declare_events()

    @property
    def columns(self) -> Mapping[str, tuple[Type, ...]]:
        """The types of the columns of all relations and event predicates."""
        return Oracle(self.program, LIMIT, ROUNDS).columns

    # --- columns of event predicates without a declaration

    def _declare_events(self) -> None:
        """Give columns to event predicates, from rules whose bodies have types already."""
        declared = set(self.program.decls)
        while True:
            before = dict(self.program.decls)
            for rule in self.program.rules:
                for head in rule.heads:
                    if head.relation not in declared:
                        self._declare(head, rule)
            if before == self.program.decls:
                return

    def _declare(self, head: Atom, rule: Rule) -> None:
        oracle = Oracle(replace(self.program, rules=[]), LIMIT, ROUNDS)
        known = self.program.decls.get(head.relation)
        for branch in dnf(rule.body):
            typed = [each for each in branch if relations_in(each) <= set(self.program.decls)]
            try:
                conjunction = Conjunction(oracle, typed, {}, (), rule.is_null_safe)
                types = [conjunction.expression(each)[0] for each in head.args]
            except (OracleRejected, KeyError):
                continue  # some variable has its type from an event predicate yet to come
            columns = known.columns if known else tuple(map(_type_name, types))
            columns = tuple(
                replace(column, nullable=column.nullable or conjunction.is_nullable(argument))
                for column, argument in zip(columns, head.args, strict=True)
            )
            known = Decl(head.relation, columns, False, self._labels(head.relation))
            self.program.decls[head.relation] = known

    def _labels(self, event: str) -> tuple[str, ...]:
        """Name the columns of an event predicate by the variables of its first head."""
        heads = [h for rule in self.program.rules for h in rule.heads if h.relation == event]
        labels: list[str] = []
        for number, term in enumerate(heads[0].args, 1):
            is_named = isinstance(term, Var) and not term.is_wild and term.name not in labels
            labels.append(term.name if is_named and isinstance(term, Var) else f"c{number}")
        return tuple(labels)

    # --- what happens

    def happen(self, old: State, new: State) -> dict[str, set[Row]]:
        """Return the event predicates and what triggers ask for, when one state follows another."""
        oracle = Oracle(self.program, LIMIT, ROUNDS)
        for name in self.ordinary:
            was, now = old.get(name, set()), new[name]
            forms = {"{}": now, "{}@old": was, "+{}": now - was, "-{}": was - now}
            for form, rows in forms.items():
                oracle.relations[form.format(name)] = set(rows)
        oracle.run()
        return oracle.relations

    def asked(self, happened: State) -> list[Operation]:
        """Return what triggers ask for: deletes, then inserts."""
        return [
            (sign, name, row)
            for sign in "-+"
            for name in self.ordinary
            for row in happened[TARGETS[sign].format(name)]
        ]

    def reactions(self, kind: str, happened: State) -> tuple[Alert, ...]:
        """Return the messages for all tuples of event predicates, or new ones of relations."""
        found = [
            Alert(each.relation, row, self._message(each.relation, each.message, row))
            for each in self.source.reactions
            if each.kind == kind
            for row in happened["+" * (each.relation not in self.events) + each.relation]
        ]
        return tuple(sorted(found, key=lambda a: (a.event, typed_rows([a.row]), a.message)))

    def _message(self, relation: str, template: str, row: Row) -> str:
        values = dict(zip(self.program.decls[relation].names, row, strict=True))

        def filled(found: re.Match[str]) -> str:
            if found.group(1) is None:
                return found.group()[0]
            value = values[found.group(1)]
            return "null" if value is None else to_string(value)

        return re.sub(r"\{\{|\}\}|\{([^{}]*)\}", filled, template)


def _type_name(type_: Type) -> TypeName:
    return TypeName(type_.name, (18, type_.scale) if type_.name == "decimal" else ())


def _renamed(atom: Atom, forms: Mapping[str, str]) -> Atom:
    return Atom(forms[atom.mark].format(atom.relation), tuple(map(_read_term, atom.args)))


def _read(formula: Formula) -> Formula:
    """Return a body whose atoms name the relations of the table above."""
    match formula:
        case Atom():
            return _renamed(formula, SOURCES)
        case Cmp(op, left, right):
            return Cmp(op, _read_term(left), _read_term(right))
        case Not(inner):
            return Not(_read(inner))
        case And(parts):
            return And(tuple(map(_read, parts)))
        case Or(parts):
            return Or(tuple(map(_read, parts)))
        case Truth():
            return formula


def _read_term(term: Expr) -> Expr:
    match term:
        case Fn(name, args):
            return Fn(name, tuple(map(_read_term, args)))
        case Agg(op, target, body):
            return Agg(op, None if target is None else _read_term(target), _read(body))
        case Var() | Lit():
            return term
