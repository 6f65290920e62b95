"""Maintained = recomputed: databases under every algorithm, judged by the oracle after each step.

`Judged` holds a database and what the oracle says it should hold. Each step is one transaction: the
changes it reports and the state it leaves are compared with the oracle's, as sorted lists with
types; what is stored beside the relations (ranks, counts) is checked by brute force.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import corollary
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.errors import EvaluationError
from oracles import evaluation, groups, parser
from support.comparison import comparable
from support.payload_check import check_payload
from support.stairs_check import check_stairs

Row: TypeAlias = tuple[Any, ...]
State: TypeAlias = Mapping[str, Iterable[Row]]
Step: TypeAlias = tuple[State, State]
"""What is inserted and what is deleted."""

Algorithm: TypeAlias = str | Mapping[str, str]
"""For all relations, or for each."""

LIMITS = Limits(rounds=2_000)

ALGORITHMS = ("auto", "recompute", "dred", "pf", "epf", "counting", "ranked")
MIXED = "mixed"
"""Another algorithm in every transaction."""

CLOSURES = {
    "left-linear": "reach(x, z) :- reach(x, y), edge(y, z).",
    "right-linear": "reach(x, z) :- edge(x, y), reach(y, z).",
    "non-linear": "reach(x, z) :- reach(x, y), reach(y, z).",
}

SAME_GENERATION = """
.decl up(x: symbol, y: symbol)
.decl flat(x: symbol, y: symbol)
.decl down(x: symbol, y: symbol)
.decl sg(x: symbol, y: symbol)
sg(x, y) :- flat(x, y).
sg(x, y) :- up(x, z1), sg(z1, z2), flat(z2, z3), sg(z3, z4), down(z4, y).
"""


def closure(kind: str = "left-linear", type_: str = "symbol") -> str:
    """Return the program of a closure."""
    return f"""
.decl edge(x: {type_}, y: {type_})
.decl reach(x: {type_}, y: {type_})
reach(x, y) :- edge(x, y).
{CLOSURES[kind]}
"""


def flips(seed: int, nodes: int, count: int, relation: str = "edge") -> Iterator[Step]:
    """Yield steps on a sparse graph: each puts in one edge or two, or takes them out."""
    generator = random.Random(seed)
    present: set[Row] = set()
    for _ in range(count):
        size = generator.choice((1, 1, 2))
        is_full = generator.random() * 2 * nodes < len(present)
        if is_full:
            edges = set(generator.sample(sorted(present), min(size, len(present))))
        else:
            edges = {(generator.randrange(nodes), generator.randrange(nodes)) for _ in range(size)}
            edges |= set(generator.sample(sorted(present), size == 2 and len(present) > 1))
        yield {relation: edges - present}, {relation: edges & present}
        present ^= edges


def pairs(text: str) -> list[Row]:
    """Return edges between nodes of one letter: `ab bc` is a→b, b→c."""
    return [tuple(each) for each in text.split()]


# ----------------------------------------------------------------------------------------- programs


def with_virtual(text: str, names: Iterable[str]) -> str:
    """Return a program in which some relations are declared virtual."""
    for name in names:
        text, count = re.subn(rf"(?m)^(\.decl {name}\(.*\))", r"\1 virtual", text)
        assert count == 1, name
    return text


@lru_cache(maxsize=64)
def derived_relations(text: str) -> tuple[str, ...]:
    """Return the relations that rules or facts define in the text, in the order of their heads."""
    rules = parser.parse(text).rules
    return tuple(dict.fromkeys(head.relation for rule in rules for head in rule.heads))


@lru_cache(maxsize=64)
def recursive_relations(text: str) -> tuple[str, ...]:
    """Return the relations that depend on themselves."""
    program = parser.parse(text)
    reads: dict[str, set[str]] = {
        name: {name} if each.is_eqrel else set() for name, each in program.decls.items()
    }
    for rule in program.rules:
        for head in rule.heads:
            if head.mark not in ("+", "-"):
                reads.setdefault(head.relation, set()).update(evaluation.relations_in(rule.body))
    return tuple(name for name in reads if name in _reached(name, reads))


def _reached(start: str, reads: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    work = list(reads[start])
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += reads[name]
    return found


@lru_cache(maxsize=64)
def grouped_relations(text: str) -> tuple[str, ...]:
    """Return the relations whose counts or sums are recursive."""
    program = parser.parse(text)
    events = evaluation.event_predicates(program.rules)
    rules = [
        rule
        for rule in program.rules
        if not any(head.mark or head.relation in events for head in rule.heads)
    ]
    return tuple(
        name
        for stratum in evaluation.strata(rules, program.decls)
        if groups.is_grouped(rules, stratum)
        for name in sorted(stratum)
    )


@lru_cache(maxsize=64)
def climbing_relations(text: str) -> tuple[str, ...]:
    """Return the recursive relations of strata of which only the best tuples count."""
    program = parser.parse(text)
    best = {each.head.relation for each in program.subsumptions}
    best |= {name for name, *_ in evaluation.recursive_extremes(program.rules)}
    reads: dict[str, set[str]] = {name: set() for name in program.decls}
    for rule in program.rules:
        for head in rule.heads:
            reads.setdefault(head.relation, set()).update(evaluation.relations_in(rule.body))
    reached = {name: _reached(name, reads) for name in recursive_relations(text)}
    return tuple(
        name
        for name, below in reached.items()
        if any(other in best and name in reached.get(other, ()) for other in below)
    )


def algorithm_for(text: str, algorithm: str) -> Algorithm:
    """Return what to ask for: relations that an algorithm cannot maintain are left to another."""
    if algorithm == MIXED:
        return "auto"
    left = recursive_relations(text) if algorithm == "counting" else ()
    if algorithm not in ("auto", "ranked", "recompute"):
        left = (*left, *grouped_relations(text), *climbing_relations(text))
    return {"": algorithm, **dict.fromkeys(left, "ranked")} if left else algorithm


# ---------------------------------------------------------------------------------------- databases


def opened(
    text: str,
    algorithm: str = "auto",
    virtual: Iterable[str] = (),
    place: str | None = None,
    **options: Any,
) -> Database:
    """Return a database with a program in force, virtual relations watched."""
    db = reopened(text, algorithm, (), place, **options)
    db.load(text=with_virtual(text, virtual))
    for name in virtual:
        db.watch(name)
    return db


def reopened(
    text: str,
    algorithm: str = "auto",
    virtual: Iterable[str] = (),
    place: str | None = None,
    **options: Any,
) -> Database:
    """Return a database as it is in a warehouse, virtual relations watched."""
    options = {"limits": LIMITS, "engine": "local", **options}
    db = corollary.open(place, algorithm=algorithm_for(text, algorithm), **options)
    for name in virtual:
        db.watch(name)
    return db


def apply(
    db: Database,
    step: Step,
    algorithm: Algorithm | None = None,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    **options: Any,
) -> Transaction:
    """Commit one transaction: deletes before inserts, rules removed before rules added."""
    inserts, deletes = step
    with db.transaction(algorithm=algorithm, **options) as tx:
        for rule in remove:
            tx.remove_rule(rule)
        for rule in add:
            tx.add_rule(rule)
        for name, rows in deletes.items():
            tx.delete(name, list(rows))
        for name, rows in inserts.items():
            tx.insert(name, list(rows))
    return tx


def insert(db: Database, relation: str, rows: Iterable[Row], **options: Any) -> Transaction:
    """Commit one transaction that inserts."""
    return apply(db, ({relation: rows}, {}), **options)


def delete(db: Database, relation: str, rows: Iterable[Row], **options: Any) -> Transaction:
    """Commit one transaction that deletes."""
    return apply(db, ({}, {relation: rows}), **options)


def changes_of(tx: Transaction, relation: str) -> tuple[list[Row], list[Row]]:
    """Return what came to a relation and what went, sorted."""
    change = tx.changes[relation]
    return sorted(to_python(change.added)), sorted(to_python(change.removed))


def held(db: Database) -> dict[str, Any]:
    """Return everything that a database holds: relations, payload, marks, program, commits."""
    relations = db._state.engine.statistics().rows
    return {
        "relations": {
            name: comparable(to_python(db._state.engine.read(name))) for name in relations
        },
        "sizes": dict(relations),
        "program": db.program,
        "normal": db._state.loaded.normal,
        "payload": db._state.planner.payload,
        "commits": db.commits,
    }


def after(state: State, step: Step) -> dict[str, set[Row]]:
    """Return the base relations after a step."""
    inserts, deletes = step
    return {
        name: (set(rows) - set(deletes.get(name, ()))) | set(inserts.get(name, ()))
        for name, rows in state.items()
    }


# ------------------------------------------------------------------------------------------ judging


class SkipError(Exception):
    """The rest of a sequence means nothing."""


@lru_cache(maxsize=256)
def _truth(text: str, facts: tuple[tuple[str, frozenset[Row]], ...]) -> dict[str, set[Row]] | None:
    try:
        return evaluation.evaluate(text, dict(facts))
    except evaluation.OracleError:
        return None


def truth(text: str, base: State) -> dict[str, set[Row]] | None:
    """Return every relation as the oracle says, None if it says that there is an error."""
    return _truth(text, tuple((name, frozenset(rows)) for name, rows in sorted(base.items())))


class Judged:
    """A database and the state that the oracle says it is in.

    Attributes:
        text: the program in force, one rule per line where rules come and go.
        base: what was inserted and not deleted.
        expected: every relation as the oracle says.
        counts: `steps` judged, those that `changed` a view, those `refused` by both sides.
    """

    def __init__(
        self,
        text: str,
        algorithm: str,
        virtual: Sequence[str] = (),
        seed: int = 0,
        place: str | None = None,
    ) -> None:
        self.text = text
        self.algorithm = algorithm
        self.virtual = tuple(virtual)
        self.place = place
        expected = truth(text, {})
        if expected is None:
            raise SkipError
        self.expected = expected
        self.db = opened(text, algorithm, virtual, place)
        self.base: dict[str, set[Row]] = {name: set() for name in expected}
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)

    def step(
        self, step: Step = ({}, {}), *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> Transaction | None:
        """Apply a step and judge its changes and the state; None if both sides refuse it.

        Args:
            step: inserts and deletes.
            add: lines of the program that come.
            remove: lines of the program that go.
        """
        text = self._edited(add, remove) if add or remove else self.text
        algorithm = self._algorithm(text)

        def commit() -> Transaction:
            return apply(self.db, step, algorithm, add=add, remove=remove)

        return self._judge(text, after(self.base, step), commit)

    def edit(self, text: str) -> Transaction | None:
        """Put another text into force, and judge as for a step."""
        return self._judge(
            text, self.base, lambda: self.db.load(text=with_virtual(text, self.virtual))
        )

    def reopen(self) -> None:
        """Let go of the database, open it again, and judge its state."""
        self.db.close()
        self.db = reopened(self.text, self.algorithm, self.virtual, self.place)
        self.counts["reopened"] += 1
        self.judge_state()

    def _judge(
        self, text: str, base: State, commit: Callable[[], Transaction]
    ) -> Transaction | None:
        expected = truth(text, base)
        if expected is None:
            self._judge_refusal(commit)
            return None
        tx = commit()
        before, self.expected, self.text = self.expected, expected, text
        self.base = {name: set(base.get(name, ())) for name in expected}
        self.counts["steps"] += 1
        self.counts["changed"] += self._judge_changes(tx, before)
        self.judge_state()
        return tx

    def _edited(self, add: Iterable[str], remove: Iterable[str]) -> str:
        lines = self.text.splitlines()
        for rule in remove:
            lines.remove(rule)
        return "\n".join([*lines, *add]) + "\n"

    def _algorithm(self, text: str) -> Algorithm | None:
        if self.algorithm == MIXED:
            return algorithm_for(text, self._random.choice(ALGORITHMS))
        found = algorithm_for(text, self.algorithm)
        return None if isinstance(found, str) else found

    def _judge_refusal(self, commit: Callable[[], Transaction]) -> None:
        try:
            commit()
        except EvaluationError:
            self.counts["refused"] += 1
            self.judge_state()
            return
        if self.virtual:
            raise SkipError  # nobody may have asked for what fails
        raise AssertionError(f"the oracle refuses what the database takes\n{self}")

    def _judge_changes(self, tx: Transaction, before: State) -> bool:
        has_changed = False
        derived = derived_relations(self.text)
        for name, rows in self.expected.items():
            was = set(before.get(name, ()))
            wanted = comparable(rows - was), comparable(was - rows)
            change = tx.changes[name]
            found = comparable(to_python(change.added)), comparable(to_python(change.removed))
            assert found == wanted, f"{name} changes by {found}, not by {wanted}\n{self}"
            assert tx.changes[name].counts == (len(wanted[0]), len(wanted[1]))
            has_changed |= name in derived and any(wanted)
        return has_changed

    def judge_state(self) -> None:
        """Assert that everything stored is what the oracle says, and nothing else is stored."""
        relations = self.db._state.loaded.normal.relations
        for name, rows in self.expected.items():
            if name in self.virtual and relations[name].is_derived:
                assert self.db._state.engine.size(name) == 0, name
            else:
                found = comparable(to_python(self.db._state.engine.read(name)))
                wanted = comparable(rows)
                assert found == wanted, f"{name} is {found}, not {wanted}\n{self}"
        self.counts["payload"] += check_payload(self.db)
        self.counts["payload"] += check_stairs(self.db)

    def __str__(self) -> str:
        return f"{self.algorithm}, virtual {self.virtual}\n{self.text}\n{self.base}"


def rules_of(text: str) -> Iterator[str]:
    """Yield the lines of a program that are rules or facts."""
    for line in text.splitlines():
        if line and not line.startswith((".", "//")):
            yield line
