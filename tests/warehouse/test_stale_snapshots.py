"""Snapshots of large relations stay while little changes; index, changes and `gc` go with that."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corollary
from corollary.console import SilentConsole
from corollary.database import warehouse_store
from corollary.database.database import Database
from corollary.database.upkeep.retention import Retention, collect, fold_at
from corollary.database.upkeep.verify import verify
from corollary.engines.spark.relation import handle
from corollary.warehouse import stale_snapshots
from corollary.warehouse.warehouse import Warehouse
from support.spark.in_process_partitions import forbid_collecting, share_out
from support.warehouse_scenarios import index_files, store_of

PROGRAM = (
    '.decl sale(id: number, n: number)\n.input sale(filename="sale.parquet", format=parquet)\n'
)
SOLD = ".decl sale(x: number, y: number)\n.decl sold(y: number)\nsold(y) :- sale(_, y)."
ROWS = [(at, at % 7) for at in range(400)]


def snapshot_commits(db: Database) -> dict[str, int]:
    catalog = store_of(db).warehouse.catalog
    return {name: each.commit for name, each in catalog.latest_snapshots(db.commits).items()}


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_large_relation_of_which_little_changes(
    is_partitioned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale_snapshots, "SNAPSHOT_MIN_ROWS", 100)
    monkeypatch.setattr(warehouse_store, "FOLD_MIN_TUPLES", 10)
    if is_partitioned:
        share_out(monkeypatch, "partitions")
    engine = "spark" if is_partitioned else "local"
    columns = {name: [row[at] for row in ROWS] for at, name in enumerate(("id", "n"))}
    pq.write_table(pa.table(columns), tmp_path / "sale.parquet")
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    place = tmp_path / "w"
    now = set(ROWS)
    with corollary.open(place, engine=engine) as db:
        db.run(program, facts=tmp_path)
        loaded = snapshot_commits(db)["sale"]
        with db.transaction() as tx:  # the source's part becomes one of its own: all of it
            tx.insert("sale", [(1000, 1)])
        now |= {(1000, 1)}
        folded = store_of(db).warehouse.catalog.latest_index(db.commits)
        assert folded is not None
        assert folded[0] == db.commits
        assert snapshot_commits(db)["sale"] == loaded
        with db.transaction() as tx:
            tx.insert("sale", [(n, 2) for n in range(2000, 2150)])
        now |= {(n, 2) for n in range(2000, 2150)}
        assert snapshot_commits(db)["sale"] == db.commits  # a quarter has changed
        with db.transaction() as tx:
            tx.delete("sale", [(1000, 1)])
        now -= {(1000, 1)}
        for file in index_files(db):
            file.unlink()
    with corollary.open(place, engine=engine) as db:  # from the snapshot and the changes since
        assert set(db.relation("sale").rows()) == now
        collect(store_of(db).warehouse, Retention(commits=1))
        store_of(db).fold(db._state)
        assert not verify(store_of(db).warehouse).findings
    with corollary.open(place, engine=engine) as db:
        assert set(db.relation("sale").rows()) == now


def test_history_goes_while_relations_stay_in_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gc` may have to write snapshots of a commit: it reads no relation whole for it."""
    share_out(monkeypatch, "partitions")
    place = tmp_path / "warehouse"
    wanted = {(n, n % 7) for n in range(500)}
    with corollary.open(place) as db:
        db.load(text=SOLD)
        with db.transaction() as tx:
            tx.insert("sale", sorted(wanted))
        store_of(db).fold(db._state)
        for n in range(4):
            with db.transaction() as tx:
                tx.insert("sale", [(1000 + n, 9)])
                tx.delete("sale", [(n, n % 7)])
            wanted = wanted - {(n, n % 7)} | {(1000 + n, 9)}
    read: list[int] = []
    read_snapshot = Warehouse.read_snapshot

    def counted(warehouse: Warehouse, stored: Any) -> Any:
        read.append(stored.rows)
        return read_snapshot(warehouse, stored)

    with closing(Warehouse.open(place)) as warehouse, monkeypatch.context() as patch:
        forbid_collecting(patch, 100)
        patch.setattr(Warehouse, "read_snapshot", counted)
        patch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 100)
        number = db.commits - 1
        fold_at(warehouse, number, SilentConsole())
        assert not read
        result = collect(warehouse, Retention(commits=2))
        assert result.oldest == number
        found = warehouse.catalog.latest_index(number)
        assert found is not None
        assert found[0] == number
        assert warehouse.has_partitions(number)
    assert not (place / "scratch").exists()
    with corollary.open(place) as db:
        assert set(db.relation("sale").rows()) == wanted
        assert set(db.relation("sold").rows()) == {(n,) for n in (*range(7), 9)}
        assert not verify(store_of(db).warehouse).findings
