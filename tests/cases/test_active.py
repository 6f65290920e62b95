"""Every folder of `tests/cases/active`: what was worked out by hand, the oracle, the package.

The package runs each case under every algorithm, with everything virtual, with its rules in another
order, and in a warehouse that is opened again before every transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.errors import ConstraintError, LimitError
from oracles.active_rules import Alert, event_predicates, react
from oracles.evaluation import OracleLimit, evaluate, typed_rows
from oracles.parser import parse
from support.active_cases import ROOT, ActiveCase, Reaction
from support.change_cases import Data, Operation, RuleText, asserted, changed, commit, edited
from support.in_process_partitions import share_out
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    Algorithm,
    algorithm_for,
    held,
    opened,
    reopened,
)
from support.payload_check import check_payload

Row = tuple[Any, ...]
State = dict[str, set[Row]]

CASES = [ActiveCase(folder) for folder in sorted(ROOT.iterdir())]
VARIANTS = (*ALGORITHMS, MIXED, "virtual", "virtual pf", "rules reversed")
LIMITS = Limits(rounds=40)
LINES = {*range(45, 53)}
"""The lines of the checklist that have cases here; others have theirs in test_changes.py."""


def name_of(case: ActiveCase) -> str:
    return case.folder.name


# ----------------------------------------------------------------------------- the cases themselves


def test_every_line_of_the_checklist_has_a_case() -> None:
    found = [re.match(r"// (?:Line (\d+)|Paper): .+\.\n", case.text) for case in CASES]
    assert {int(each[1]) for each in found if each[1]} >= LINES


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_has_an_expectation_for_every_transaction(case: ActiveCase) -> None:
    files = {file.name for file in case.folder.iterdir()}
    assert files == {"program.dl", "changes.txt", "expected.txt"}
    assert len(case.transactions) == len(case.reactions) > 1


class Expecting:
    """The state of a case by hand, transaction by transaction."""

    def __init__(self, case: ActiveCase) -> None:
        self.case = case
        self.text = case.text
        self.base: State = {name: set() for name in case.types if name.isidentifier()}
        start = evaluate(case.text)
        self.derived: State = {name: start[name] for name in case.derived}

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
        lasting = evaluate(self.case.text).keys() - event_predicates(parse(self.case.text).rules)
        return {
            **{name: set(rows) for name, rows in self.base.items() if name in lasting},
            **{name: set(rows) for name, rows in self.derived.items()},
        }


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_oracle_agrees(case: ActiveCase) -> None:
    expecting = Expecting(case)
    for operations, expected in zip(case.transactions, case.reactions, strict=True):
        text, base = expecting.text, expecting.base
        before, now = expecting.follow(operations, expected)
        data = [(e.sign, e.relation, e.row) for e in operations if isinstance(e, Data)]
        following = edited(text, operations)
        if expected.limit:
            with pytest.raises(OracleLimit):
                react(following, base, data, before=text)
            continue
        outcome = react(following, base, data, before=text)
        assert set(outcome.violations) == set(expected.violations), operations
        assert set(outcome.alerts) == set(expected.alerts), operations
        assert {name: rows for name, rows in outcome.base.items() if rows} == {
            name: rows for name, rows in expecting.base.items() if rows
        }, operations
        for name, rows in now.items():
            added, removed = outcome.changes.get(name, (set(), set()))
            assert (added, removed) == (rows - before[name], before[name] - rows), name


# -------------------------------------------------------------------------------------- the package


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


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_active_rules(case: ActiveCase, variant: str) -> None:
    run_case(case, variant, prepared(case, variant))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_restarted_in_between(case: ActiveCase, tmp_path: Path) -> None:
    place = str(tmp_path / "warehouse")

    def again(db: Database) -> Database:
        db.close()
        return reopened(case.text, "auto", case.virtual, place, limits=LIMITS)

    run_case(case, "auto", prepared(case, "auto", place), again)


@pytest.mark.parametrize("placement", ["tasks", "sql"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_placed_elsewhere(
    case: ActiveCase, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, placement)
    run_case(case, "auto", prepared(case, "auto"))


def test_write_skew_between_two_processes(tmp_path: Path) -> None:
    """Both begin on the same state; the second one is judged on what the first has left."""
    case = next(each for each in CASES if each.folder.name == "write_skew")
    place = str(tmp_path / "warehouse")
    one = prepared(case, "auto", place)
    commit(one, case.transactions[0])
    with corollary.open(place, engine="local") as other:
        mine, yours = one.transaction(), other.transaction()
        with mine:
            mine.insert("away", [("ann",)])
        with pytest.raises(ConstraintError, match="nobody would be there for west"), yours:
            yours.insert("away", [("bob",)])
        assert other.relation("away").rows() == [("ann",)]
    one.close()


def test_a_rule_text_is_one_of_the_program() -> None:
    """Cases that take rules away spell them as the program does."""
    for case in CASES:
        text = case.text
        for operations in case.transactions:
            gone = [e.text for e in operations if isinstance(e, RuleText) and e.sign == "-"]
            assert set(gone) <= set(text.splitlines())
            text = edited(text, operations)
