"""Lineage of columns: worked out by hand, and by changing what a column does not come from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.analysis.lineage import lineage_of
from corollary.core.program import NormalProgram
from corollary.database.database import Database, state_of
from support.command_line import OK, cli, of_json

RULES = """
.decl edge(x: number, y: number, w: number)
.decl closed(x: number)
.decl reach(a: number, b: number)
reach(x, y) :- edge(x, y, w), w > 2, !closed(y).
reach(x, z) :- reach(x, y), edge(y, z, _).
.decl back(b: number, a: number)
back(y, x) :- reach(x, y).
.decl heavy(a: number, n: number, t: number)
heavy(a, n, t) :- back(_, a), n = count : { reach(a, _) }, t = sum w * 2 : { edge(a, _, w) }.
.decl later(x: number, y: number)
later(x, y) :- closed(x), edge(y, _, 7), x < y.
.decl own(x: number)
own(x) :- closed(x).
own(5).
"""
VIEWS = """
CREATE TABLE o (id INT PRIMARY KEY, cust INT NOT NULL, amount INT NOT NULL, day INT NOT NULL);
CREATE TABLE c (id INT PRIMARY KEY, name STRING NOT NULL, city STRING NOT NULL);
CREATE MATERIALIZED VIEW turnover AS SELECT c.city, sum(o.amount + 1) AS t, count(*) AS k
  FROM o JOIN c ON o.cust = c.id WHERE o.day > 3 GROUP BY c.city;
CREATE MATERIALIZED VIEW ranked AS SELECT id,
  row_number() OVER (PARTITION BY cust ORDER BY day, id) AS rn,
  CASE WHEN amount > 3 THEN cust ELSE id END AS x FROM o;
CREATE MATERIALIZED VIEW every AS SELECT city FROM c
  UNION ALL SELECT upper(name) FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.cust = c.id);
CREATE MATERIALIZED VIEW most AS SELECT city, t FROM turnover ORDER BY t DESC LIMIT 1;
"""
EXPECTED = {
    "reach": {
        "a": ["edge.x identity"],
        "b": ["edge.y identity"],
        "": ["closed.x join", "edge.w filter", "edge.x join", "edge.y join"],
    },
    "back": {
        "b": ["edge.y identity"],
        "a": ["edge.x identity"],
        "": ["closed.x join", "edge.w filter", "edge.x join", "edge.y join"],
    },
    "later": {
        "x": ["closed.x identity"],
        "y": ["edge.x identity"],
        "": ["closed.x join", "edge.w filter", "edge.x join"],
    },
    "own": {"x": ["closed.x identity", "own.x identity"], "": []},
    "turnover": {
        "city": ["c.city identity"],
        "t": ["o.amount aggregation"],
        "k": [],
        "": ["c.city group by", "c.id join", "o.cust join", "o.day filter"],
    },
    "ranked": {
        "id": ["o.id identity"],
        "rn": ["o.cust window", "o.day window", "o.id window"],
        "x": ["o.amount conditional", "o.cust transformation", "o.id transformation"],
        "": [],
    },
    "every": {
        "city": ["c.city identity", "c.name transformation"],
        "": ["c.id join", "o.cust join"],
    },
}


def loaded(text: str) -> Database:
    db = corollary.open(None, engine="local")
    if "CREATE" in text:
        db.sql(text)
    else:
        db.load(text=text)
    return db


def program_of(db: Database) -> NormalProgram:
    return state_of(db).loaded.normal


def as_text(program: NormalProgram, name: str) -> dict[str, list[str]]:
    lineage = lineage_of(program, name)
    found = {**lineage.columns, "": lineage.rows}
    return {
        column: [f"{each.relation}.{each.column} {each.influence}" for each in of]
        for column, of in found.items()
    }


@pytest.mark.parametrize("text", [RULES, VIEWS], ids=["rules", "sql"])
def test_lineage_as_worked_out_by_hand(text: str) -> None:
    program = program_of(loaded(text))
    for name in program.declared_relations.keys() & EXPECTED.keys():
        assert as_text(program, name) == EXPECTED[name], name


def test_the_order_of_a_limit_sorts() -> None:
    found = as_text(program_of(loaded(VIEWS)), "most")
    assert found["t"] == ["o.amount aggregation"]
    assert "o.amount sort" in found[""]


def test_one_step_ends_at_the_next_relations() -> None:
    program = program_of(loaded(RULES))
    step = lineage_of(program, "back", is_whole=False)
    assert {(each.relation, each.column) for each in step.columns["a"]} == {("reach", "a")}
    assert step.rows == ()
    assert lineage_of(program, "edge").relations == frozenset()


@pytest.mark.parametrize(
    "text", [RULES, pytest.param(VIEWS, marks=pytest.mark.slow)], ids=["rules", "sql"]
)
def test_what_a_column_does_not_come_from_does_not_change_it(text: str) -> None:
    """Values of a base column are changed: nobody who does not come from it may notice."""
    draw = random.Random(5)
    program = program_of(loaded(text))
    views = {
        name: lineage_of(program, name)
        for name in program.declared_relations
        if program.kind_of(name) != "base"
    }
    bases = [name for name in program.declared_relations if program.kind_of(name) == "base"]
    rows = {name: _rows(draw, program, name) for name in bases}
    before = _contents(text, rows)
    seen = 0
    for base in bases:
        for at, column in enumerate(program.declared_relations[base].columns):
            changed = [_changed(row, at) for row in rows[base]]
            after = _contents(text, {**rows, base: changed})
            for name, lineage in views.items():
                if any((e.relation, e.column) == (base, column) for e in lineage.rows):
                    continue
                for number, (shown, sources) in enumerate(lineage.columns.items()):
                    if any((e.relation, e.column) == (base, column) for e in sources):
                        continue
                    one, other = (
                        {row[number] for row in contents[name]} for contents in (before, after)
                    )
                    assert one == other, (name, shown, base, column)
                    seen += 1
    assert seen >= 5


def _rows(draw: random.Random, program: NormalProgram, name: str) -> list[tuple[Any, ...]]:
    types = program.declared_relations[name].types[1:]
    return [
        (at, *(draw.randrange(9) if str(each) == "number" else draw.choice("ab") for each in types))
        for at in range(9)
    ]


def _changed(row: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    value = row[at]
    return (*row[:at], value + 100 if isinstance(value, int) else f"{value}!", *row[at + 1 :])


def _contents(text: str, rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, set[Any]]:
    db = loaded(text)
    with db.transaction() as tx:
        for name, each in rows.items():
            tx.insert(name, each)
    return {name: set(db.relation(name).rows()) for name in program_of(db).declared_relations}


def test_show_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "views.sql"
    path.write_text(VIEWS)
    result = cli("show", str(path), "--as", "lineage", "--relation", "every")
    assert result.exit_code == OK
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["every"],
        ["city", "c.city,", "c.name", "(transformation)"],
        ["(rows)", "c.id", "(join),", "o.cust", "(join)"],
    ]
    found = of_json(cli("show", str(path), "--as", "lineage", "--format", "json"))["lineage"]
    assert list(found) == ["turnover", "ranked", "every", "most"]
    assert found["turnover"]["columns"]["city"] == [
        {"relation": "c", "column": "city", "how": "identity"}
    ]
