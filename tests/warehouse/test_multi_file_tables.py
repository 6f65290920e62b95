"""Views that are shared out: tasks write the files of the warehouse, the driver commits them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.engines.spark import engine, stratum
from corollary.engines.spark.relation import handle, open_partition
from corollary.engines.spark.relation.partitioning import partition_count
from corollary.engines.spark.relation.source import PartitionSource
from corollary.errors import WarehouseError
from corollary.warehouse.files import LIST_SUFFIX, multi_file_table
from corollary.warehouse.files.file_rows import FileRows
from corollary.warehouse.publishing import published_files
from support.maintained_database import closure, pairs
from support.spark.in_process_partitions import SHARES, share_out
from support.warehouse_scenarios import loose_files, root_of, store_of

EDGES = pairs("ab bc cd de ef fa")
NODES = "abcdef"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database whose shares are large at once, and whose driver reads none of them."""
    share_out(monkeypatch)
    few_are_many(monkeypatch)
    with corollary.open(tmp_path / "w") as found:
        found.load(text=closure() + "\n.output reach")
        with monkeypatch.context() as patch:
            patch.setattr(PartitionSource, "read", refused)
            patch.setattr(multi_file_table, "from_parquet", refused)
            with found.transaction() as tx:
                tx.insert("edge", EDGES)
            found.publish()
            store_of(found).fold(found._state)
        yield found


def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks write all that they would write of many tuples."""
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
    monkeypatch.setattr(stratum, "INLINE_MAX_TUPLES", 0)


def refused(*_: Any) -> None:
    pytest.fail("the view was brought to the driver")


def reached(db: Database) -> list[Any]:
    return sorted(db.relation("reach").rows())


def published(db: Database) -> list[Any]:
    return sorted(to_python(DeltaTable(str(root_of(db) / "tables/reach")).to_pyarrow_table()))


EVERY = sorted((x, y) for x in NODES for y in NODES)


def lists(db: Database) -> list[Path]:
    return sorted(root_of(db).glob(f"data/*/*{LIST_SUFFIX}"))


def snapshot_of(db: Database) -> Path:
    """Return the list of the snapshot of the view."""
    return root_of(db) / store_of(db).warehouse.catalog.latest_snapshots(db.commits)["reach"].path


def test_tasks_write_changes_snapshots_and_tables(db: Database) -> None:
    found = {each.name for each in lists(db)}
    assert len(found) >= 2  # of the change, which is the snapshot, and of its ranks
    catalog = store_of(db).warehouse.catalog
    ((_, change),) = catalog.changes(db.commits - 1, db.commits, "reach")
    assert snapshot_of(db) == root_of(db) / str(change.path)
    assert not loose_files(db)
    assert reached(db) == published(db) == EVERY
    files = DeltaTable(str(root_of(db) / "tables/reach")).file_uris()
    assert len(files) <= partition_count(len(EVERY))
    with db.transaction() as tx:
        tx.delete("edge", pairs("cd"))
    db.publish()
    assert reached(db) == published(db)
    assert sorted(db.at(db.commits - 1).relation("reach").rows()) == EVERY
    assert not verify(store_of(db).warehouse).findings


def test_it_comes_back_from_parts_alone(db: Database) -> None:
    root = root_of(db)
    for each in root.glob("data/*/index-*"):
        each.unlink()
    with corollary.open(root) as again:
        assert reached(again) == EVERY


def test_a_backup_has_all_parts(db: Database, tmp_path: Path) -> None:
    copy(store_of(db).warehouse, tmp_path / "copy")
    shutil.rmtree(root_of(db) / "data")
    with corollary.open(tmp_path / "copy") as other:
        assert reached(other) == EVERY
        assert not verify(store_of(other).warehouse).findings


@pytest.mark.parametrize("is_list", [True, False])
def test_damage_is_found(db: Database, is_list: bool) -> None:
    snapshot = snapshot_of(db)
    victim = snapshot if is_list else next(snapshot.parent.glob(f"{snapshot.name}-*"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    found = [each.file for each in verify(store_of(db).warehouse).findings]
    assert found[0] == str(snapshot.relative_to(root_of(db)))
    collect(store_of(db).warehouse, Retention())
    assert victim.exists()


def test_parts_go_with_their_list(db: Database) -> None:
    before, snapshot = set(lists(db)), snapshot_of(db)
    for number in range(4):
        with db.transaction() as tx:
            (tx.delete if number % 2 else tx.insert)("edge", pairs("ad"))
    collected = collect(store_of(db).warehouse, Retention(commits=1), is_dry=True)
    assert collected.files == collect(store_of(db).warehouse, Retention(commits=1)).files
    assert before - set(lists(db))
    assert snapshot in before & set(lists(db))
    named = {each.name for each in lists(db)}
    for each in root_of(db).glob("data/*/*.parts-*"):
        assert each.name.partition(".parts-")[0] + LIST_SUFFIX in named
    assert not loose_files(db)
    assert reached(db) == EVERY


def test_what_a_lost_task_wrote_is_loose(db: Database) -> None:
    snapshot = snapshot_of(db)
    stray = snapshot.with_name(f"{snapshot.name}-0123456789abcdef.parquet")
    stray.write_bytes(b"half")
    collect(store_of(db).warehouse, Retention())
    assert not stray.exists()
    assert snapshot.exists()


def test_a_directory_that_tasks_do_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    few_are_many(monkeypatch)
    for writer in (multi_file_table.TableFileWriter, published_files.PublishedFileWriter):
        monkeypatch.setattr(writer, "__call__", lambda *_: None)
    with corollary.open(tmp_path / "w") as db:
        db.load(text=closure() + "\n.output reach")
        with db.transaction() as tx:
            tx.insert("edge", EDGES)
        db.publish()
        store_of(db).fold(db._state)
        assert not lists(db)
        assert reached(db) == published(db) == EVERY
        assert not verify(store_of(db).warehouse).findings


def test_a_task_that_cannot_write_fails_the_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch)
    few_are_many(monkeypatch)

    def full(self: multi_file_table.TableFileWriter, rows: pa.Table) -> None:
        raise WarehouseError.cannot_write(self.root, OSError(28, "No space left on device"))

    with corollary.open(tmp_path / "w") as db:
        db.load(text=closure())
        with monkeypatch.context() as patch:
            patch.setattr(multi_file_table.TableFileWriter, "__call__", full)
            with pytest.raises(WarehouseError, match="No space"), db.transaction() as tx:
                tx.insert("edge", EDGES)
        assert not db.relation("reach").rows()
        assert not loose_files(db)
        with db.transaction() as tx:
            tx.insert("edge", EDGES)
        assert reached(db) == EVERY


# --- what workers keep ---------------------------------------------------------------------------


def test_a_worker_keeps_so_many_bytes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(open_partition, "_open", type(open_partition._open)())
    with corollary.open(None) as db:
        db.load(text=closure())
        with db.transaction() as tx:
            tx.insert("edge", EDGES)
        assert len(open_partition._open) >= SHARES
        monkeypatch.setattr(open_partition, "OPEN_MAX_BYTES", 1)
        with db.transaction() as tx:
            tx.delete("edge", pairs("ab"))
        assert len(open_partition._open) == 1
        with db.transaction() as tx:
            tx.insert("edge", pairs("ab"))
        assert reached(db) == EVERY


def test_what_a_failing_job_wrote_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    monkeypatch.setattr(engine, "SWEEP_MIN_FILES", 1)
    monkeypatch.setattr(engine, "SWEEP_DIVISOR", 1000)
    with corollary.open(None) as db:
        db.load(text=closure())
        with db.transaction() as tx:
            tx.insert("edge", EDGES)
        before = files_of(db)
        with monkeypatch.context() as patch:
            patch.setattr(stratum, "INLINE_MAX_TUPLES", 0)
            patch.setattr(stratum.RunStratum, "run", refuse_last(stratum.RunStratum.run))
            with pytest.raises(WarehouseError, match="lost"), db.transaction() as tx:
                tx.delete("edge", pairs("ab"))
        with db.transaction() as tx:
            tx.insert("edge", pairs("ac"))
        assert len(files_of(db)) <= len(before) + 3  # a change of the edges, by both columns


def files_of(db: Database) -> set[Path]:
    return {*Path(db._state.engine._root).rglob("*")}


def refuse_last(run: Any) -> Any:
    def running(plan: stratum.RunStratum, address: Any) -> Any:
        if address.number == SHARES - 1:
            raise WarehouseError.of("C0934", "It is lost.")
        return run(plan, address)

    return running


@pytest.mark.parametrize(
    ("columns", "rows", "is_taken_over"),
    [
        ("x: number, name: symbol) key(x", [(n, f"text {n}") for n in range(200)], True),
        ("x: number, name: symbol", [(n, "same") for n in range(200)], True),
        ("x: number, name: symbol", [(n % 150, "same") for n in range(200)], False),
        ("x: number, name: float", [(n, -0.0) for n in range(200)], False),
    ],
)
def test_files_of_a_load_become_the_snapshot(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
    rows: list[tuple[Any, ...]],
    is_taken_over: bool,
) -> None:
    """Unless equal rows were one, or are written in another way."""
    monkeypatch.setattr(engine, "SCAN_MAX_TUPLES", 10)
    link, linked = multi_file_table.link_rows, list[FileRows]()

    def note(files: Any, some: FileRows, path: str) -> tuple[str, str]:
        linked.append(some)
        return link(files, some, path)

    monkeypatch.setattr(multi_file_table, "link_rows", note)
    table = pa.table([*map(list, zip(*rows, strict=True))], names=["x", "name"])
    pq.write_table(table, tmp_path / "p.parquet")
    program = tmp_path / "program.dl"
    program.write_text(f'.decl p({columns})\n.input p(filename="p.parquet")\n')
    with corollary.open(tmp_path / "w", engine="sequential") as db:
        db.run(program, facts=tmp_path)
        with db.transaction() as tx:
            tx.insert("p", [(1000, rows[0][1])])
    assert len(linked) == is_taken_over
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert not verify(store_of(db).warehouse).findings
        assert sorted(db.relation("p").rows()) == sorted({*rows, (1000, rows[0][1])})
