"""Maintained = recomputed: databases under every algorithm, judged by the oracle after each step."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import corollary
import oracle
from corollary.analysis.strata import strata
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.program import load
from corollary.database.transaction import Transaction
from corollary.errors import EvaluationError
from corollary.frontends.datalog.parse import parse
from corollary.source import SourceFile
from judgement import comparable
from programs import Case

State = Mapping[str, Iterable[tuple[Any, ...]]]
Step = tuple[State, State]
"""What is inserted and what is deleted."""

LIMITS = Limits(rounds=2_000)

ALGORITHMS = ("auto", "recompute", "dred", "pf", "epf", "counting", "ranked")
MIXED = "mixed"
"""Another algorithm in every transaction."""


def with_virtual(text: str, names: Iterable[str]) -> str:
    """Return a program in which some relations are declared virtual."""
    for name in names:
        text, count = re.subn(rf"(?m)^(\.decl {re.escape(name)}\([^)]*(?:\([^)]*\)[^)]*)*\))", r"\1 virtual", text)
        assert count == 1, name
    return text


def derived_relations(text: str) -> list[str]:
    """Return the declared relations that rules define."""
    normal = load(parse(SourceFile("program.dl", text))).normal
    return [n for n, each in normal.relations.items() if each.is_derived and each.is_declared]


def algorithm_for(text: str, algorithm: str) -> str | dict[str, str]:
    """Return what to ask for: counting leaves recursive relations to another algorithm."""
    if algorithm != "counting":
        return algorithm
    normal = load(parse(SourceFile("program.dl", text))).normal
    recursive = [n for each in strata(normal) if each.is_recursive for n in each.relations]
    return {"": "counting", **dict.fromkeys(recursive, "ranked")}


def opened(text: str, algorithm: str = "auto", virtual: Iterable[str] = ()) -> Database:
    """Return a database in memory with a program in force, virtual relations watched."""
    source = with_virtual(text, virtual)
    start = "auto" if algorithm == MIXED else algorithm_for(source, algorithm)
    db = corollary.open(None, algorithm=start, limits=LIMITS)
    db.load(text=source)
    for name in virtual:
        db.watch(name)
    return db


def apply(db: Database, step: Step, algorithm: str | None = None, **options: Any) -> Transaction:
    """Commit one transaction."""
    inserts, deletes = step
    with db.transaction(algorithm=algorithm, **options) as tx:
        for name, rows in deletes.items():
            tx.delete(name, list(rows))
        for name, rows in inserts.items():
            tx.insert(name, list(rows))
    return tx


def after(state: State, step: Step) -> dict[str, set[tuple[Any, ...]]]:
    """Return the base relations after a step."""
    inserts, deletes = step
    return {
        name: (set(rows) - set(deletes.get(name, ()))) | set(inserts.get(name, ()))
        for name, rows in state.items()
    }


class Judged:
    """A database and the state that the oracle says it is in."""

    def __init__(self, text: str, algorithm: str, virtual: Sequence[str] = (), seed: int = 0) -> None:
        self.text = text
        self.algorithm = algorithm
        self.virtual = tuple(virtual)
        self.db = opened(text, algorithm, virtual)
        self.base: dict[str, set[tuple[Any, ...]]] = {
            name: set()
            for name, each in self.db.loaded.normal.relations.items()
            if each.is_declared and not each.is_derived
        }
        self.expected = {name: set(rows) for name, rows in oracle.evaluate(text, {}).items()}
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)

    def step(self, step: Step) -> Transaction | None:
        """Apply a step and judge the changes and the state; None if both sides refuse it."""
        base = after(self.base, step)
        algorithm = None
        if self.algorithm == MIXED:
            options = [each for each in ALGORITHMS if each != "counting"]
            algorithm = self._random.choice(options)
        try:
            expected = {n: set(rows) for n, rows in oracle.evaluate(self.text, base).items()}
        except oracle.OracleError:
            try:
                apply(self.db, step, algorithm)
            except EvaluationError:
                self.counts["refused"] += 1
                self.judge_state()
                return None
            if self.virtual:
                raise SkipError from None  # nobody may have asked for what fails
            raise AssertionError(f"the oracle refuses what the database takes\n{self}") from None
        tx = apply(self.db, step, algorithm)
        before, self.expected, self.base = self.expected, expected, base
        self.counts["steps"] += 1
        has_changed = False
        for name in derived_relations(self.text):
            added = comparable(expected[name] - before[name])
            removed = comparable(before[name] - expected[name])
            change = tx.changes[name]
            found = comparable(to_python(change.added)), comparable(to_python(change.removed))
            if not _has_nan(expected[name] | before[name]):
                assert found == (added, removed), f"{name} changes by {found}, not by {(added, removed)}\n{self}\n{step}"
            has_changed |= bool(added or removed)
        self.counts["changed"] += has_changed
        self.judge_state()
        return tx

    def judge_state(self) -> None:
        """Assert that everything stored is what the oracle says, and nothing else is stored."""
        for name, rows in self.expected.items():
            if name in self.virtual:
                assert self.db.engine.size(name) == 0
            else:
                found = comparable(to_python(self.db.engine.read(name)))
                assert found == comparable(rows), f"{name} is {found}, not {comparable(rows)}\n{self}"

    def __str__(self) -> str:
        return f"{self.algorithm}, virtual {self.virtual}\n{self.text}\n{self.base}"


class SkipError(Exception):
    """The rest of a sequence means nothing."""


def _has_nan(rows: Iterable[tuple[Any, ...]]) -> bool:
    return any(isinstance(each, float) and each != each for row in rows for each in row)


def judge_case(
    case: Case, steps: Sequence[Step], algorithms: Iterable[str], virtual: Sequence[str] = ()
) -> Counter[str]:
    """Judge a sequence of updates under several algorithms; return what was covered."""
    counts: Counter[str] = Counter()
    for algorithm in algorithms:
        judged = Judged(case.text, algorithm, virtual)
        try:
            for step in ((case.facts, {}), *steps):
                judged.step(step)
        except SkipError:
            pass
        counts.update(judged.counts)
    return counts
