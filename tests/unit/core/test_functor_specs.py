"""A functor is one specification and one kernel: nothing else has to know it."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pytest

import corollary
from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import define
from corollary.core.logic import Functor, Variable
from corollary.core.types import NUMBER, SYMBOL
from corollary.engines.local.evaluation.functions import STRICT_FUNCTIONS
from corollary.sqlgen.dialect import DialectName
from corollary.sqlgen.script import print_sql
from support.functor_tables import bulk_table, language_table
from support.sql.duckdb import duckdb_outcome
from support.sql.expressions import Outcome, differences, local_outcome, random_rows

DISTANCE = define(
    "edit_distance(a: symbol, b: symbol) -> number",
    "how many characters have to change to make one text of the other",
    section="text",
    sql_names="edit_distance",
    readable="levenshtein(a, b)",
    exact={"duckdb": "CAST(LEVENSHTEIN(a, b) AS BIGINT)"},
)
PROGRAM = """
.decl word(w: symbol)
word("kitten"). word("sitting"). word("mitten").
.decl far(a: symbol, b: symbol, n: number)
far(a, b, n) :- word(a), word(b), n = edit_distance(a, b), a < b.
"""
FAR = [("kitten", "mitten", 1), ("kitten", "sitting", 3), ("mitten", "sitting", 3)]


def distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        before, row = row, [at]
        for column, right in enumerate(other):
            row.append(min(before[column] + (left != right), before[column + 1] + 1, row[-1] + 1))
    return row[-1]


def kernel(operands: list[Any], type_: Any) -> Any:
    columns = [values.array.to_pylist() for values, _ in operands]
    return np.array(list(map(distance, *columns)), np.int64), []


@pytest.fixture(autouse=True)
def edit_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a functor."""
    monkeypatch.setitem(FUNCTORS, DISTANCE.name, DISTANCE)
    monkeypatch.setitem(STRICT_FUNCTIONS, DISTANCE.name, kernel)  # type: ignore[arg-type]


def rows_of(db: corollary.Database, goal: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in db.query(goal).to_pylist())


def test_datalog_and_its_sql() -> None:
    with corollary.open(None, engine="local") as db, duckdb.connect() as other:
        db.load(text=PROGRAM)
        assert rows_of(db, "far(a, b, n)") == FAR
        for each in print_sql(db._state.loaded.normal, DialectName.DUCKDB, {}):
            other.execute(each.text)
        assert sorted(other.sql("SELECT * FROM far").fetchall()) == FAR


def test_sql() -> None:
    with corollary.open(None, engine="local") as db:
        db.sql("CREATE TABLE word (w STRING NOT NULL)")
        db.sql("INSERT INTO word VALUES ('kitten'), ('sitting')")
        found = db.sql("SELECT edit_distance(w, 'mitten') AS n FROM word ORDER BY n")
        assert found.rows() == [(1,), (3,)]


def test_bulk_steps() -> None:
    rows = random_rows(random.Random(1), 100)
    rows.values["xsymbol"] = [("kitten", "sitting", "", "ab")[at % 4] for at in range(100)]
    rows.values["nsymbol"] = [("mitten", None, "ba")[at % 3] for at in range(100)]
    sides = (Variable("xsymbol", SYMBOL), Variable("nsymbol", SYMBOL.with_null(True)))
    functor = Functor(DISTANCE.name, sides, NUMBER.with_null(True))
    theirs = duckdb_outcome(functor, rows)
    assert isinstance(theirs, Outcome)
    assert list(differences(local_outcome(functor, rows), theirs, is_exact=True)) == []


@pytest.mark.slow
def test_documentation() -> None:
    assert f"| `edit_distance(a, b)` | symbol | {DISTANCE.doc} |" in language_table("text")
    assert "| `edit_distance` | yes | – |" in bulk_table()
