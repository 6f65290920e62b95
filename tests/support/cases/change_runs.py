"""Cases of changes, run on the package: in several forms, under every algorithm."""

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
from oracles.evaluation import evaluate, typed_rows
from support.cases.changes import FORMS, ROOT, ChangeCase, Part, asserted, changed, commit
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    Algorithm,
    algorithm_for,
    climbing_relations,
    grouped_relations,
    held,
    opened,
)
from support.payload_check import check_payload
from support.stairs_check import check_stairs

Row = tuple[Any, ...]
State = dict[str, set[Row]]
CASES = [ChangeCase(folder) for folder in sorted(ROOT.iterdir())]
BODIES = "virtual bodies"
"""What aggregates read is virtual, they themselves are stored."""
VARIANTS = (*ALGORITHMS, MIXED, "virtual", "virtual pf", BODIES, f"{BODIES} recompute")
LIMITS = Limits(rounds=40)


def name_of(case: ChangeCase) -> str:
    return case.folder.name


def derived(case: ChangeCase) -> list[str]:
    """The relations that rules define at the start, as the text has it."""
    heads = re.findall(r"(?m)^(\w+)\(.*:[-=]", case.text)
    return list(dict.fromkeys(heads))


@lru_cache(maxsize=2)
def states(case: ChangeCase) -> list[State]:
    """The derived relations before and after each transaction, as worked out by hand."""
    start = evaluate(case.text)
    found = [{name: start[name] for name in derived(case)}]
    for expected in case.expected:
        found.append(changed(found[-1], expected.changes))
    return found


def prepared(case: ChangeCase, variant: str) -> tuple[Database, list[str]]:
    """A database in force, and its virtual relations."""
    # Recursive counts and sums, and choices, cannot be virtual.
    stored = {*grouped_relations(case.text), *re.findall(r"(?m)^\.decl (\w+)\(.*choice", case.text)}
    virtual = [name for name in derived(case) if name not in stored]
    virtual = virtual if variant.startswith("virtual") else []
    if variant.startswith(BODIES):
        bodies = set(re.findall(r"\w+", " ".join(re.findall(r"{[^}]*}", case.text))))
        virtual = [name for name in virtual if name in bodies]
    virtual = [name for name in virtual if name not in climbing_relations(case.text)]
    algorithms = {"virtual": "auto", "virtual pf": "pf", BODIES: "auto"}
    algorithm = algorithms.get(variant, variant.removeprefix(f"{BODIES} "))
    return opened(case.text, algorithm, virtual, limits=LIMITS), virtual


def algorithm_of(variant: str, number: int, text: str) -> Algorithm | None:
    """The algorithm of a transaction, where it is not the database's own."""
    if variant == MIXED:
        return algorithm_for(text, ALGORITHMS[(number * 5 + len(text)) % len(ALGORITHMS)])
    return None


def check_state(db: Database, wanted: State, virtual: list[str]) -> None:
    for name, rows in wanted.items():
        assert typed_rows(to_python(db.relation(name).arrow())) == typed_rows(rows), name
        if name in virtual:
            assert db._state.engine.size(name) == 0
    check_payload(db)
    check_stairs(db)


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


def run_case(case: ChangeCase, form: str, variant: str) -> None:
    """Run a case in a form, and compare every transaction with what is expected of it."""
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
