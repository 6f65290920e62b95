"""Counts and totals in a warehouse: stored with each commit, verified, and repaired."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import corollary
from corollary.core.arrow import from_python, to_python
from corollary.database.database import Database
from corollary.database.upkeep.checked_reads import FindingKind
from corollary.database.upkeep.verify import repair, verify
from corollary.maintain.payload import payload_relations_of
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.warehouse import RelationDelta
from support.payload_check import check_payload
from support.warehouse_scenarios import store_of

TEXT = """
.decl sale(id: number, day: number, price: decimal(12,2), weight: float)
.decl day(d: number)
.decl line(id: number, item: symbol)
.decl takings(d: number, total: decimal(18,2))
takings(d, total) :- day(d), total = sum p : { sale(_, d, p, _) }.
.decl load(d: number, total: float)
load(d, total) :- day(d), total = sum w : { sale(_, d, _, w) }.
.decl best(d: number, p: decimal(12,2))
best(d, p) :- day(d), p = max c : { sale(i, d, c, _), line(i, _) }.
.decl sold(item: symbol)
sold(item) :- line(_, item).
"""
PAYLOAD = {"takings.aggregate1•total", "load.aggregate1•digits", "best.aggregate1•values"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    with corollary.open(str(tmp_path / "w")) as db:
        db.load(text=TEXT)
        with db.transaction() as tx:
            tx.insert("day", [(1,), (2,)])
            tx.insert("sale", [(i, 1 + i % 2, Decimal(f"{i}.25"), i / 10) for i in range(20)])
            tx.insert("line", [(i, f"item {i % 3}") for i in range(0, 20, 2)])
        with db.transaction() as tx:
            tx.delete("sale", [(18, 1, Decimal("18.25"), 1.8)])
    return str(tmp_path / "w")


def sell(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("sale", [(100, 1, Decimal("0.01"), 0.1)])
        tx.delete("sale", [(16, 1, Decimal("16.25"), 1.6)])
    assert {tx.stats[name].algorithm for name in tx.stats if name.endswith("aggregate1")} == {
        "totals"
    }
    assert check_payload(db)


@pytest.mark.slow
def test_totals_outlive_the_process(place: str) -> None:
    for _ in range(2):
        with corollary.open(place) as db:
            assert payload_relations_of(db._state.loaded.normal).keys() >= PAYLOAD
            sell(db)
            assert not verify(store_of(db).warehouse).findings
            store_of(db).fold(db._state)
            with db.transaction() as tx:
                tx.delete("sale", [(100, 1, Decimal("0.01"), 0.1)])
                tx.insert("sale", [(16, 1, Decimal("16.25"), 1.6)])
    with corollary.open(place) as db:
        assert not verify(store_of(db).warehouse).findings


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PAYLOAD | {"sold•count"}))
def test_wrong_payload_is_found_and_repaired(place: str, name: str) -> None:
    with corollary.open(place) as db:
        warehouse = store_of(db).warehouse
        latest = warehouse.commit_at()
        assert latest is not None
        relation = payload_relations_of(db._state.loaded.normal)[name]
        (right, *_) = to_python(db._state.engine.read(name))
        wrong = from_python([(*right[:-1], right[-1] + 1)], relation)
        delta = RelationDelta(wrong, from_python([right], relation))
        warehouse.commit(NewCommit(latest.number, latest.payload, {}), {name: delta})
        (finding,) = verify(warehouse).findings
        assert finding.kind is FindingKind.PAYLOAD
        assert finding.relation == name
        assert "has 1 that it should not have" in finding.message
        report = repair(warehouse)
        assert not report.findings
        assert [each.relation for each in report.repaired] == [name]
        db.refresh()
        sell(db)
    with corollary.open(place) as db:
        assert not verify(store_of(db).warehouse).findings
