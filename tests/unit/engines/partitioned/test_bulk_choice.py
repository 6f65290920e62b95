"""Which steps are queries of Spark SQL: those that would first have to arrange what they read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import corollary
from corollary.core.logic import NO_RULE, Variable
from corollary.core.pipeline import Pipeline, Probe, Reference
from corollary.core.plans import Derive, Plan
from corollary.core.types import NUMBER
from corollary.database.database import state_of
from corollary.engines.spark.bulk import steps
from corollary.engines.spark.relation import files
from support.spark.in_process_partitions import share_out

PROGRAM = """
.decl sale(id: number, store: number)
.decl store(store: number, region: number)
"""
ID, S, R = (Variable(name, NUMBER) for name in "isr")


@pytest.mark.parametrize(
    ("stores", "column", "is_query"),
    [
        (100, S, True),  # all sales, which have no order by store
        (100, ID, False),  # as many sales, by the order that they have
        (10, S, False),  # a tenth of them, below the quarter
    ],
)
def test_what_lacks_an_order_is_read_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, stores: int, column: Variable, is_query: bool
) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(steps, "BULK_MIN_TUPLES", 1000)
    monkeypatch.setattr(files, "FOLD_MIN_TUPLES", 1)  # the base says how many values there are
    with corollary.open(None) as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("sale", [(at, at % 100) for at in range(2000)])
            tx.insert("store", [(at, at % 3) for at in range(stores)])
        tables = state_of(db).engine.tables
        first = Probe(Reference("store"), (column, R), ())
        bound = 0 if column is ID else 1
        then = Probe(Reference("sale"), (ID, S), (bound,))
        rows = Pipeline(stages=(first, then), head=(R, ID), origin=NO_RULE)
        step = Derive("line", (rows,))
        types = dict.fromkeys(("sale", "store", "line"), (NUMBER, NUMBER))
        queries: Any = SimpleNamespace(is_forced=False)
        chosen = steps.SparkSteps(queries, Plan({"main": (step,)}, types), tables, tables.keys())
        assert chosen.is_due(step) is is_query
