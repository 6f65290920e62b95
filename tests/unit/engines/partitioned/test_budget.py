"""The driver's budget: the largest relations beyond it are partitioned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.engine import DRIVER_MEMORY_VARIABLE, TUPLE_BYTES, driver_memory
from corollary.core.states import State
from corollary.database import opening
from corollary.database.database import Database, state_of
from corollary.database.forecast import forecast_for_database
from corollary.engines.spark import engine as spark_engine
from corollary.engines.spark.relation import contents
from corollary.errors import InputError
from corollary.explain.forecast import forecast_as_json, print_forecast
from support.spark.in_process_partitions import InProcess, forbid_collecting, share_out

PROGRAM = """
.decl sale(id: number, shop: symbol, amount: number)
.decl shop(shop: symbol, town: symbol)
.decl total(town: symbol, s: number)
total(t, s) :- shop(_, t), s = sum a : { shop(x, t), sale(_, x, a) }.
.decl idle(shop: symbol)
idle(x) :- shop(x, _), !sale(_, x, _).
"""
SHOPS = [(f"s{n}", f"t{n % 3}") for n in range(12)]
SALES = [(n, f"s{n % 10}", n * n % 17) for n in range(500)]


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    def made(*_: Any, **__: Any) -> InProcess:
        return InProcess("auto", memory=200 * TUPLE_BYTES)

    monkeypatch.setattr(opening, "create_engine", made)
    db = corollary.open(None)
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("shop", SHOPS)
        tx.insert("sale", SALES)
    return db


def expected(sales: list[tuple[int, str, int]]) -> tuple[set[Any], set[Any]]:
    towns = dict(SHOPS)
    sums = dict.fromkeys(towns.values(), 0)
    for _, shop, amount in sales:
        sums[towns[shop]] += amount
    busy = {shop for _, shop, _ in sales}
    return set(sums.items()), {(shop,) for shop in towns if shop not in busy}


def test_only_what_is_beyond_the_budget_is_partitioned(database: Database) -> None:
    engine = state_of(database).engine
    assert engine.residency("sale").place == "partitions"
    assert "500 tuples" in engine.residency("sale").reason
    assert engine.residency("shop").place == "driver"
    assert engine.residency("total").place == "driver"


def test_changes_of_a_partitioned_relation_are_maintained(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_collecting(monkeypatch)
    sales = list(SALES)
    for at in range(20):
        removed, added = sales[at * 7 : at * 7 + 3], [(1000 + at, f"s{10 + at % 2}", at)]
        before = InProcess.jobs
        with database.transaction() as tx:
            tx.delete("sale", removed)
            tx.insert("sale", added)
        assert 0 < InProcess.jobs - before < 10
        sales = [each for each in sales if each not in removed] + added
        totals, idle = expected(sales)
        assert set(database.relation("total").rows()) == totals
        assert set(database.relation("idle").rows()) == idle
    assert tx.stats["total"].placement == "driver"
    with database.transaction() as tx:
        tx.insert("shop", [("s3", "t9")])  # its sales are in partitions
    assert ("t9", sum(each[2] for each in sales if each[1] == "s3")) in set(
        database.relation("total").rows()
    )
    counts = [each.as_json() for each in tx.stats.values()]
    assert 0 < sum(each.get("jobs", 0) for each in counts) < 8
    assert sum(each.get("bytes_returned", 0) for each in counts) > 100
    assert set(database.relation("sale").rows()) == set(sales)


def test_explain_says_where_relations_are(database: Database) -> None:
    forecast = forecast_for_database(database, {"sale": {State.ADDED: 1}})
    text = print_forecast(forecast)
    assert "relation sale: in partitions, its 500 tuples take about 0 MB" in text
    assert "relation shop" not in text
    assert forecast_as_json(forecast)["places"].keys() == {"sale"}


def test_the_budget_is_given_or_set_or_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DRIVER_MEMORY_VARIABLE, raising=False)
    assert driver_memory(1000) == 1000
    assert driver_memory("2G") == 2 << 30
    assert driver_memory() > 1 << 20
    monkeypatch.setenv(DRIVER_MEMORY_VARIABLE, "3m")
    assert driver_memory() == 3 << 20
    for wrong in ("much", "-1", "inf"):
        with pytest.raises(InputError, match=f"`{wrong}` is not an amount of memory"):
            driver_memory(wrong)


def test_nothing_is_left_that_nobody_needs(database: Database) -> None:
    engine = state_of(database).engine
    assert isinstance(engine, InProcess)
    kept = database.relation("sale")
    for at in range(40):  # enough for merging files
        with database.transaction() as tx:
            tx.delete("sale", [SALES[at]])
    (root,) = (each for each in Path(engine._root).iterdir() if each.is_dir())
    files = engine.partitioned_files("sale")
    assert files is not None
    assert {each.name for each in root.iterdir()} == files.files
    assert all(len(part.changes) < 16 for each in files.sets for part in each.partitions)
    assert len(kept.rows()) == 460


@pytest.mark.slow
def test_the_dictionary_forgets_what_has_only_passed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_engine, "DICTIONARY_MAX_BYTES", 20_000)
    engine = state_of(database).engine
    assert isinstance(engine, InProcess)
    kept = database.relation("shop").rows()
    sales, sizes = list(SALES), []
    for at in range(30):
        added = [(2000 + 50 * at + n, f"visitor {at} {n}", 1) for n in range(50)]
        with database.transaction() as tx:
            tx.insert("sale", added)
        with database.transaction() as tx:
            tx.delete("sale", added[1:])
        sales.append(added[0])
        sizes.append(engine._dictionary.nbytes)
    assert min(sizes[15:]) < max(sizes[:15])
    assert set(database.relation("sale").rows()) == set(sales)
    assert database.relation("shop").rows() == kept
    assert set(database.relation("total").rows()) == expected(SALES)[0]
    with database.transaction() as tx:
        tx.insert("shop", [("visitor 3 0", "t1")])
    sums = dict(expected(SALES)[0])
    assert dict(database.relation("total").rows()) == {**sums, "t1": sums["t1"] + 1}


def test_texts_get_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout of a partitioned table has little room for texts that pass, or are looked up."""
    share_out(monkeypatch, "partitions")
    monkeypatch.setattr(contents, "ROOM_BITS", 0)
    monkeypatch.setattr(spark_engine, "WIDER_BITS", 1)
    text = """.decl r(x: number, name: symbol)
        .decl k(x: number)
        .decl q(x: number, name: symbol)
        q(x, n) :- k(x), r(x, n)."""
    rows = [(n % 7, f"t{n}") for n in range(60)]
    with corollary.open(None) as db, corollary.open(None) as other:
        for each in (db, other):
            each.load(text=text)
        with db.transaction() as tx:
            tx.insert("r", rows)
        engine, fresh = (state_of(each).engine for each in (db, other))
        assert isinstance(engine, InProcess)
        assert isinstance(fresh, InProcess)
        files = engine.partitioned_files("r")
        assert files is not None
        fresh.partition_place.interned_bits = 2
        fresh.attach_files("r", files)
        made = fresh._tables["r"]
        assert made.layout.columns[1].width == 2
        with other.transaction() as tx:
            tx.insert("k", [(n,) for n in range(7)])
        assert made.layout.columns[1].width >= 6
        assert set(other.relation("q").rows()) == set(rows)
        # Of these texts, all but one are unknown to the files.
        fresh.delete("r", [*((n % 7, f"u{n}") for n in range(200)), (3, "t3")])
        assert to_python(fresh.read("r", State.REMOVED)) == [(3, "t3")]
        fresh.rollback()


def test_a_relation_of_any_name_is_partitioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "create_engine", lambda *_, **__: InProcess("partitions"))
    with corollary.open(None) as db:
        db.load(text=".decl added(x: number)\n.decl removed(x: number)\nremoved(x) :- added(x).")
        with db.transaction() as tx:
            tx.insert("added", [(1,), (2,)])
        engine = state_of(db).engine
        assert [engine.residency(each).place for each in ("added", "removed")] == ["partitions"] * 2
        assert sorted(to_python(db.query("removed(x)"))) == [(1,), (2,)]
