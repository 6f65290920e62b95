"""Every folder of `tests/cases/changes`, in every form, under every algorithm.

The form "as written" compares the changes of each transaction with those worked out by hand. The
other forms (one operation per transaction, other orders, everything in one transaction) compare the
states at the ends of the transactions; the changes of everything in one transaction are the
difference between the first state and the last.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pytest

from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.transaction import Transaction
from corollary.errors import InputError, LimitError
from oracles.evaluation import OracleError, OracleLimit, OracleRejected, evaluate, typed_rows
from support.change_cases import FORMS, ROOT, ChangeCase, Part, asserted, changed, commit, edited
from support.maintained_database import ALGORITHMS, MIXED, Algorithm, algorithm_for, held, opened
from support.payload_check import check_payload

Row = tuple[Any, ...]
State = dict[str, set[Row]]

CASES = [ChangeCase(folder) for folder in sorted(ROOT.iterdir())]
VARIANTS = (*ALGORITHMS, MIXED, "virtual", "virtual pf")
RUNS = [
    *(("as written", variant) for variant in VARIANTS),
    *(("merged", variant) for variant in VARIANTS),
    *(("split", variant) for variant in VARIANTS if variant != "virtual pf"),
    *(("split and permuted", variant) for variant in ("auto", "epf", MIXED)),
    *(("permuted", variant) for variant in ("auto", "virtual")),
]
"""The order of operations inside a transaction is nothing that an algorithm gets to see."""
LIMITS = Limits(rounds=40)
LINES = {*range(1, 5), *range(6, 30), *range(32, 42), 54, 56}
"""The lines of the checklist that have cases here; 30 and 31 are in test_large_changes.py."""


def name_of(case: ChangeCase) -> str:
    return case.folder.name


def derived(case: ChangeCase) -> list[str]:
    """The relations that rules define at the start, as the text has it."""
    heads = re.findall(r"(?m)^(\w+)\(.*:-", case.text)
    return list(dict.fromkeys(heads))


@lru_cache(maxsize=2)
def states(case: ChangeCase) -> list[State]:
    """The derived relations before and after each transaction, as worked out by hand."""
    start = evaluate(case.text)
    found = [{name: start[name] for name in derived(case)}]
    for expected in case.expected:
        found.append(changed(found[-1], expected.changes))
    return found


# ----------------------------------------------------------------------------- the cases themselves


def test_every_line_of_the_checklist_has_a_case() -> None:
    lines = {int(re.match(r"// Line (\d+): .+\.\n", case.text)[1]) for case in CASES}
    assert lines == LINES


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_has_an_expectation_for_every_transaction(case: ChangeCase) -> None:
    files = {file.name for file in case.folder.iterdir()}
    assert files == {"program.dl", "changes.txt", "expected.txt"}
    assert len(case.transactions) == len(case.expected) > 1
    assert any(each.changes for each in case.expected)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_oracle_agrees(case: ChangeCase) -> None:
    base: State = {}
    text = case.text
    before = evaluate(text)
    for operations, expected in zip(case.transactions, case.expected, strict=True):
        next_base, next_text = asserted(base, operations), edited(text, operations)
        if expected.error:
            with pytest.raises((OracleError, OracleRejected, OracleLimit)):
                evaluate(next_text, next_base, limit=2_000, rounds=50)
            continue
        base, text = next_base, next_text
        now = evaluate(text, base)
        for name in derived(case):
            for sign, rows in (("+", now[name] - before[name]), ("-", before[name] - now[name])):
                wanted = [e.row for e in expected.changes if (e.sign, e.relation) == (sign, name)]
                assert typed_rows(wanted) == typed_rows(rows), f"{sign}{name} at {operations}"
        before = now


# -------------------------------------------------------------------------------------- the package


def prepared(case: ChangeCase, variant: str) -> tuple[Database, list[str]]:
    """A database in force, and its virtual relations."""
    virtual = derived(case) if variant.startswith("virtual") else []
    algorithm = {"virtual": "auto", "virtual pf": "pf"}.get(variant, variant)
    return opened(case.text, algorithm, virtual, limits=LIMITS), virtual


def algorithm_of(variant: str, number: int, text: str) -> Algorithm | None:
    """The algorithm of a transaction, where it is not the database's own."""
    if variant == MIXED:
        return algorithm_for(text, ALGORITHMS[(number * 5 + len(text)) % len(ALGORITHMS)])
    return None


def check_state(db: Database, wanted: State, virtual: list[str]) -> None:
    for name, rows in wanted.items():
        assert typed_rows(db.relation(name).rows()) == typed_rows(rows), name
        if name in virtual:
            assert db._state.engine.size(name) == 0
    check_payload(db)


def check_changes(tx: Transaction, before: State, now: State) -> None:
    """Changes are the difference of two states, and only relations that changed are listed."""
    for name, rows in now.items():
        change = tx.changes[name]
        assert typed_rows(to_python(change.added)) == typed_rows(rows - before[name]), f"+{name}"
        assert typed_rows(to_python(change.removed)) == typed_rows(before[name] - rows), f"-{name}"
        assert (name in set(tx.changes)) == (rows != before[name])


def check_failure(
    db: Database, part: Part, words: tuple[str, ...], algorithm: Algorithm | None
) -> None:
    """A transaction fails with certain words and leaves everything as it was."""
    before = held(db)
    with pytest.raises((InputError, LimitError)) as error:
        commit(db, part.operations, algorithm)
    assert all(each in str(error.value) for each in words)
    assert held(db) == before


@pytest.mark.parametrize(("form", "variant"), RUNS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_maintenance(case: ChangeCase, form: str, variant: str) -> None:
    wanted = states(case)
    db, virtual = prepared(case, variant)
    base: State = {name: set() for name in case.types}
    for part in FORMS[form](case):
        algorithm = algorithm_of(variant, part.number, case.text)
        error = case.expected[part.number].error
        if error and form != "merged":
            check_failure(db, part, error, algorithm)
            continue
        tx = commit(db, part.operations, algorithm)
        before, base = base, asserted(base, part.operations)
        if form in ("as written", "permuted"):
            check_changes(tx, wanted[part.number], wanted[part.number + 1])
        elif form == "merged":
            check_changes(tx, wanted[0], wanted[-1])
        plain = {name: rows for name, rows in base.items() if name not in wanted[0]}
        check_changes(tx, before, plain)
        if before == base and not case.has_rules:
            assert tx.commit_number is None
        if part.is_end:
            check_state(db, wanted[part.number + 1], virtual)
