"""Cases of active rules, run on the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.errors import ConstraintError, LimitError
from oracles.active_rules import Alert, event_predicates
from oracles.evaluation import evaluate, typed_rows
from oracles.parser import parse
from support.cases.active import ROOT, ActiveCase, Reaction
from support.cases.changes import Operation, asserted, changed, commit, edited
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    Algorithm,
    algorithm_for,
    held,
    opened,
)
from support.payload_check import check_payload

Row = tuple[Any, ...]
State = dict[str, set[Row]]
CASES = [ActiveCase(folder) for folder in sorted(ROOT.iterdir())]
VARIANTS = (*ALGORITHMS, MIXED, "virtual", "virtual pf", "rules reversed")
LIMITS = Limits(rounds=40)


def name_of(case: ActiveCase) -> str:
    return case.folder.name


class Expecting:
    """The state of a case by hand, transaction by transaction."""

    def __init__(self, case: ActiveCase) -> None:
        self.case = case
        self.text = case.text
        self.base: State = {name: set() for name in case.types if name.isidentifier()}
        start = evaluate(case.text)
        self.derived: State = {name: start[name] for name in case.derived}
        self._lasting = start.keys() - event_predicates(parse(case.text).rules)

    def follow(self, operations: tuple[Operation, ...], expected: Reaction) -> tuple[State, State]:
        """Go one transaction on; return the relations before it and after it."""
        before = self.relations
        if not expected.is_refused:
            mine = [e for e in expected.changes if e.relation not in self.derived]
            self.base = changed(asserted(self.base, operations), mine)
            views = [e for e in expected.changes if e.relation in self.derived]
            self.derived = changed(self.derived, views)
            self.text = edited(self.text, operations)
        return before, self.relations

    @property
    def relations(self) -> State:
        """All relations but event predicates."""
        return {
            **{name: set(rows) for name, rows in self.base.items() if name in self._lasting},
            **{name: set(rows) for name, rows in self.derived.items()},
        }


def reversed_rules(text: str) -> str:
    """The program with its rules in the other order, behind its declarations."""
    lines = text.splitlines()
    rules = [line for line in lines if line and not line.startswith((".", "//"))]
    return "\n".join([*(line for line in lines if line not in rules), *reversed(rules)]) + "\n"


def prepared(case: ActiveCase, variant: str, place: str | None = None) -> Database:
    """A database in force, with all virtual relations watched."""
    algorithm = {"virtual": "auto", "virtual pf": "pf", "rules reversed": "auto"}.get(
        variant, variant
    )
    text = reversed_rules(case.text) if variant == "rules reversed" else case.text
    more = [name for name in case.derived if name not in case.virtual]
    virtual = more if variant.startswith("virtual") else ()
    db = opened(text, algorithm, virtual, place, limits=LIMITS)
    for name in case.virtual:
        db.watch(name)
    return db


def algorithm_of(variant: str, number: int, text: str) -> Algorithm | None:
    """The algorithm of a transaction, where it is not the database's own."""
    if variant != MIXED:
        return None
    return algorithm_for(text, ALGORITHMS[(number * 5 + len(text)) % len(ALGORITHMS)])


def alerts_of(tx: Transaction) -> list[Alert]:
    return [Alert(each.event, tuple(each.row), each.message) for each in tx.alerts]


def check_refusal(db: Database, expected: Reaction, run: Callable[[], object]) -> None:
    """A transaction is refused, names every violation, and leaves everything as it was."""
    before = held(db)
    with pytest.raises(LimitError if expected.limit else ConstraintError) as error:
        run()
    for words in (*expected.limit, *(each.message for each in expected.violations)):
        assert words in str(error.value)
    assert held(db) == before


def check_done(tx: Transaction, expected: Reaction, before: State, now: State) -> None:
    """A transaction has sent the alerts, and reports the changes, of triggers too."""
    found = alerts_of(tx)
    assert len(found) == len(expected.alerts)
    assert set(found) == set(expected.alerts)
    for name, rows in now.items():
        change = tx.changes[name]
        assert typed_rows(to_python(change.added)) == typed_rows(rows - before[name]), f"+{name}"
        assert typed_rows(to_python(change.removed)) == typed_rows(before[name] - rows), f"-{name}"


def run_case(
    case: ActiveCase,
    variant: str,
    db: Database,
    between: Callable[[Database], Database] = lambda db: db,
) -> None:
    """Run a case, and hold every transaction against what is expected of it."""
    expecting = Expecting(case)
    for number, operations in enumerate(case.transactions):
        expected = case.reactions[number]
        algorithm = algorithm_of(variant, number, case.text)
        before, now = expecting.follow(operations, expected)
        db = between(db)
        if expected.is_refused:
            check_refusal(db, expected, lambda: commit(db, operations, algorithm))  # noqa: B023
        else:
            check_done(commit(db, operations, algorithm), expected, before, now)
        for name, rows in now.items():
            assert typed_rows(db.relation(name).rows()) == typed_rows(rows), name
        check_payload(db)
    db.close()
