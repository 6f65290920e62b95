"""Every folder of `tests/cases/active`: what was worked out by hand, the oracle, the package.

The package runs each case under every algorithm, with everything virtual, with its rules in another
order, and in a warehouse that is opened again before every transaction.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corollary
from corollary.database.database import Database
from corollary.errors import ConstraintError
from oracles.active_rules import react
from oracles.evaluation import OracleLimit
from support.cases.active import ActiveCase
from support.cases.active_runs import (
    CASES,
    LIMITS,
    VARIANTS,
    Expecting,
    name_of,
    prepared,
    run_case,
)
from support.cases.changes import Data, RuleText, commit, edited
from support.maintained_database import (
    reopened,
)
from support.selection import sampled
from support.spark.in_process_partitions import share_out

LINES = {*range(45, 53)}
"""The lines of the checklist that have cases here; others have theirs in test_changes.py."""


# ----------------------------------------------------------------------------- the cases themselves


def test_every_line_of_the_checklist_has_a_case() -> None:
    found = [re.match(r"// (?:Line (\d+)|Paper): .+\.\n", case.text) for case in CASES]
    assert {int(each[1]) for each in found if each[1]} >= LINES


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_has_an_expectation_for_every_transaction(case: ActiveCase) -> None:
    files = {file.name for file in case.folder.iterdir()}
    assert files == {"program.dl", "changes.txt", "expected.txt"}
    assert len(case.transactions) == len(case.reactions) > 1


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


@pytest.mark.parametrize("variant", sampled(VARIANTS, 10, ["auto"]))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_active_rules(case: ActiveCase, variant: str) -> None:
    run_case(case, variant, prepared(case, variant))


@pytest.mark.matrix(4)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_restarted_in_between(case: ActiveCase, tmp_path: Path) -> None:
    place = str(tmp_path / "warehouse")

    def again(db: Database) -> Database:
        db.close()
        return reopened(case.text, "auto", case.virtual, place, limits=LIMITS)

    run_case(case, "auto", prepared(case, "auto", place), again)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_placed_elsewhere(case: ActiveCase, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
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
