"""Best tuples of a recursion, groups and rounds on Spark: where they run, and what they give."""

from __future__ import annotations

from typing import Any

import pytest

import corollary
from oracles.evaluation import evaluate

pytestmark = pytest.mark.spark

PROGRAM = """
.decl edge(x: number, y: number, w: number)
.decl sp(x: number, y: number, d: number)
sp(x, y, w) :- edge(x, y, w).
sp(x, z, d + w) :- sp(x, y, d), edge(y, z, w).
sp(x, y, d1) <= sp(x, y, d2) :- d2 <= d1.
.decl label(x: number, l: number)
label(x, x) :- edge(x, _, _).
label(y, l) :- label(x, l), edge(x, y, _).
label(x, l1) <= label(x, l2) :- l2 <= l1.
.decl paths(x: number, n: number)
paths(x, n) :- edge(x, _, _), x < 6, n = count : { edge(x, y, _), x < y, y < 6, paths(y, _) }.
.decl last(x: number)
last(0).
last(y) :- last(x), edge(x, y, _), y < 9.
last(x) <= last(y) :- edge(x, y, _), x < y.
"""
PRAGMA = '.pragma "subsumption" "rounds"\n'
RELATIONS = ("sp", "label", "paths", "last")
EDGES = [(n, n + 1, 3 + n % 4) for n in range(10)] + [(0, 5, 9), (6, 2, 1), (3, 7, 2), (7, 3, 1)]


def rows(db: corollary.Database, name: str) -> set[tuple[Any, ...]]:
    return set(db.relation(name).rows())


def test_best_tuples_groups_and_rounds(spark: Any) -> None:
    text = PRAGMA + PROGRAM
    with corollary.open(None, spark=spark, placement="tasks") as db:
        db.load(text=text)
        edges = set(EDGES)
        with db.transaction() as tx:
            tx.insert("edge", EDGES)
        # The source of a path is a key that rules hand on; labels have no such column.
        assert tx.stats["sp"].placement == "tasks"
        assert {tx.stats[name].placement for name in RELATIONS[1:]} == {"driver"}
        gone, back = {(3, 7, 2), (0, 1, 3)}, {(2, 9, 1)}
        for inserts, deletes in ((back, gone), (gone, back)):
            with db.transaction() as tx:
                tx.delete("edge", deletes & edges)
                tx.insert("edge", inserts)
            edges = (edges - deletes) | inserts
            expected = evaluate(PRAGMA + PROGRAM, {"edge": edges})
            for name in RELATIONS:
                assert rows(db, name) == expected[name], name
