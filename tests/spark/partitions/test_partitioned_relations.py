"""Relations in partitions, on Spark: probes are jobs, and what they return is right."""

from __future__ import annotations

import random
from typing import Any

import pytest

import corollary
from corollary.core.engine import TUPLE_BYTES
from corollary.database.database import state_of
from corollary.engines.spark.engine import SparkEngine

PROGRAM = """
.decl sale(id: number, shop: symbol, amount: decimal(8,2)?) key(id)
.decl shop(shop: symbol, town: symbol) key(shop)
.decl total(town: symbol, s: decimal(38,2))
total(t, s) :- shop(_, t), s = sum a : { shop(x, t), sale(_, x, a), a = a }.
.decl near(a: symbol, b: symbol)
near(x, y) :- shop(x, t), shop(y, t).
near(x, z) :- near(x, y), near(y, z).
.decl idle(shop: symbol)
idle(x) :- shop(x, _), !sale(_, x, _).
"""


def rows(seed: int, count: int, first: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    amounts = [None, *(chance.randrange(10_000) for _ in range(20))]
    return [
        (first + n, f"shop {chance.randrange(40)}", chance.choice(amounts)) for n in range(count)
    ]


@pytest.mark.parametrize(
    "placement",
    [pytest.param("partitions", marks=[pytest.mark.smoke, pytest.mark.oldest]), "auto"],
)
def test_changes_are_maintained_by_probes(spark: Any, placement: str) -> None:
    shops = [(f"shop {n}", f"town {n % 6}") for n in range(50)]
    sales = rows(1, 3000, 0)
    with (
        corollary.open(None, engine="local") as here,
        corollary.open(
            None, spark=spark, placement=placement, driver_memory=1000 * TUPLE_BYTES
        ) as there,
    ):
        engine = state_of(there).engine
        assert isinstance(engine, SparkEngine)
        for db in (here, there):
            db.load(text=PROGRAM)
            with db.transaction() as tx:
                tx.insert("shop", shops)
                tx.insert("sale", sales)
        assert engine.residency("sale").place == "partitions"
        assert engine.residency("shop").place == ("driver" if placement == "auto" else "partitions")
        for at in range(3):
            before = engine.job_counts
            for db in (here, there):
                with db.transaction() as tx:
                    tx.delete("sale", sales[at * 50 : at * 50 + 40])
                    tx.insert("sale", rows(at + 2, 30, 10_000 + 100 * at))
                    tx.insert("shop", [(f"new {at}", f"town {at}")])
            spent = engine.job_counts.since(before)
            assert 0 < spent.jobs < 80
            assert spent.sent > 1000
            for name in ("sale", "total", "near", "idle"):
                found, wanted = (set(db.relation(name).rows()) for db in (there, here))
                assert found == wanted, name
        with pytest.raises(corollary.ConstraintError, match="key"), there.transaction() as tx:
            tx.insert("sale", [(2999, "shop 1", None)])
        assert set(there.relation("sale").rows()) == set(here.relation("sale").rows())
