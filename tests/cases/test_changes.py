"""Every folder of `tests/cases/changes`, in every form, under every algorithm.

The form "as written" compares the changes of each transaction with those worked out by hand. The
other forms (one operation per transaction, other orders, everything in one transaction) compare the
states at the ends of the transactions; the changes of everything in one transaction are the
difference between the first state and the last.
"""

from __future__ import annotations

import re
from zlib import crc32

import pytest

from oracles.evaluation import OracleError, OracleLimit, OracleRejected, evaluate, typed_rows
from support.cases.change_runs import (
    CASES,
    VARIANTS,
    State,
    derived,
    name_of,
    run_case,
)
from support.cases.changes import ChangeCase, asserted, edited
from support.maintained_database import MIXED
from support.selection import sampled
from support.spark.in_process_partitions import everything_partitioned

RUNS = [
    *(("as written", variant) for variant in VARIANTS),
    *(("merged", variant) for variant in VARIANTS),
    *(("split", variant) for variant in VARIANTS if variant != "virtual pf"),
    *(("split and permuted", variant) for variant in ("auto", "epf", MIXED)),
    *(("permuted", variant) for variant in ("auto", "virtual")),
]
"""The order of operations inside a transaction is nothing that an algorithm gets to see."""
PARTITIONED_RUNS = [*(("as written", variant) for variant in VARIANTS), ("merged", "auto")]
LINES = {*range(1, 5), *range(6, 30), *range(32, 42), 54, 56}
"""The lines of the checklist that have cases here; 30 and 31 are in test_large_changes.py."""


# ----------------------------------------------------------------------------- the cases themselves


def test_every_line_of_the_checklist_has_a_case() -> None:
    heads = [re.match(r"// (?:Line (\d+): )?.+\.\n", case.text) for case in CASES]
    assert all(heads), "the first line of a case says what it shows"
    assert {int(head[1]) for head in heads if head[1]} == LINES


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


@pytest.mark.parametrize(("form", "variant"), sampled(RUNS, 60, [("as written", "auto")]))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_maintenance(case: ChangeCase, form: str, variant: str) -> None:
    run_case(case, form, variant)


@pytest.mark.parametrize(("form", "variant"), sampled(PARTITIONED_RUNS, 120))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_maintenance_in_partitions(case: ChangeCase, form: str, variant: str) -> None:
    """All relations are in partitions, in another way for each run; changes perhaps in files."""
    with everything_partitioned(crc32(f"{name_of(case)} {form} {variant}".encode())):
        run_case(case, form, variant)
