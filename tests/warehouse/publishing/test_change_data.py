"""The change data feed of published tables: what `deltalake` reads is what the commits changed."""

import os
import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.core.arrow import from_python
from corollary.core.engine import LocalTable
from corollary.core.program import Relation
from corollary.core.table_options import TableOptions
from corollary.core.types import NUMBER, SYMBOL, decimal
from corollary.warehouse.files import parquet_encoding
from corollary.warehouse.publishing import published_files
from corollary.warehouse.publishing.history import RecentHistory
from corollary.warehouse.sources import delta_source
from corollary.warehouse.warehouse import ChangeHandles, RelationDelta
from support.published_table import EDGE, ODD, House, random_row
from support.spark.in_process_partitions import RowsElsewhere

FEED = TableOptions(change_data_feed=True)
KINDS = ("insert", "delete", "update_postimage", "update_preimage")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "warehouse", options=FEED)


def texts(rows: Iterable[Any]) -> list[str]:
    return sorted(map(repr, rows))


def demand_differences(house: House, states: dict[int, Counter[str]], first: int) -> None:
    """Demand that each version changes what differs between two states of the model."""
    feed = house.change_data(first)
    assert set(feed) <= set(states)
    before = states[first - 1] if first else Counter[str]()
    for version, after in sorted(states.items()):
        if version < first:
            continue
        inserted, deleted, new, old = (
            Counter(feed.get(version, {}).get(kind, ())) for kind in KINDS
        )
        assert inserted + new == after - before, version
        assert deleted + old == before - after, version
        before = after


@pytest.mark.parametrize("seed", range(2))
def test_random_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(published_files, "FILE_MAX_ROWS", 16)
    monkeypatch.setattr(parquet_encoding, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(published_files, "TIER_MAX_FILES", 4)
    rng = random.Random(seed)
    house = House(tmp_path, ODD, FEED)
    states: dict[int, Counter[str]] = {}
    for _ in range(20):
        removed = rng.sample(list(house.rows.values()), min(len(house.rows), rng.randrange(8)))
        house.change([random_row(rng) for _ in range(rng.randrange(10))], removed)
        if rng.random() < 0.5:
            continue  # several commits are one version
        house.publish()
        for version in range(len(states), house.delta().version() + 1):
            states[version] = Counter(list(house.rows))  # a merge is a version without changes
    house.publish()
    for version in range(len(states), house.delta().version() + 1):
        states[version] = Counter(list(house.rows))
    house.demand_truth()
    demand_differences(house, states, 0)


def test_a_key_makes_updates(house: House) -> None:
    house.set_options(TableOptions(change_data_feed=True, key=(0,)))
    house.change([(1, "a"), (2, "b"), (3, "c")])
    house.publish()
    house.change([(1, "x"), (4, "d")], [(1, "a"), (2, "b")])
    house.publish()
    assert house.change_data(1) == {
        1: {
            "insert": texts([(4, "d")]),
            "delete": texts([(2, "b")]),
            "update_preimage": texts([(1, "a")]),
            "update_postimage": texts([(1, "x")]),
        }
    }


def test_appends_need_no_files_of_their_own(house: House) -> None:
    house.change([(1, "a")])
    house.publish()
    house.change([(2, "b")])
    house.publish()
    assert not (house.path / "_change_data").exists()
    assert house.change_data(1) == {1: {"insert": texts([(2, "b")])}}


def test_the_feed_is_switched_on_and_off(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.change([(1, "a"), (2, "b")])
    house.publish()
    house.set_options(FEED)
    made = house.publish()
    assert made is not None
    assert (made.version, made.commit, made.files) == (1, 1, 0)
    assert house.publish() is None
    house.change([(3, "c")], [(1, "a")])
    house.publish()
    house.demand_good()
    expected = {2: {"insert": texts([(3, "c")]), "delete": texts([(1, "a")])}}
    assert house.change_data(1) == expected
    assert house.delta().protocol().min_writer_version == 4
    house.set_options(TableOptions(file_retention=7200))
    house.change([(4, "d")], [(2, "b")])
    house.publish()
    house.demand_good()
    assert house.delta().metadata().configuration == {
        "delta.logRetentionDuration": "interval 2 hours",
        "delta.deletedFileRetentionDuration": "interval 2 hours",
    }
    with pytest.raises(Exception, match="does not have change data enabled"):
        house.change_data(3)


def test_other_columns(house: House) -> None:
    house.change([(1, "a"), (2, "b")])
    house.publish()
    columns = (NUMBER, SYMBOL, decimal(6, 2).with_null(True))
    house.relation = Relation("edge", ("x", "y", "weight"), columns, is_derived=False)
    house.rows = {}
    house.change([(1, "a", Decimal("1.50"))])
    house.publish()
    house.demand_good()
    assert house.change_data(0)[1] == {
        "insert": texts([(1, "a", Decimal("1.50"))]),
        "delete": texts([(1, "a", None), (2, "b", None)]),
    }
    house.relation = Relation("edge", ("x", "y"), (SYMBOL, NUMBER), is_derived=False)
    house.rows = {}
    house.change([("a", 1)])
    house.publish()
    house.demand_good()
    with pytest.raises(Exception, match=r"[Cc]ast"):
        house.change_data(2)  # the old rows have no place in the new columns
    house.change([("b", 2)], [("a", 1)])
    house.publish()
    assert house.change_data(3) == {3: {"insert": texts([("b", 2)]), "delete": texts([("a", 1)])}}


def test_a_rebuilt_table_changes_every_row(house: House) -> None:
    house.change([(1, "a"), (2, "b")])
    house.publish()
    house.republish()
    house.demand_good()
    every = texts([(1, "a"), (2, "b")])
    assert house.change_data(1) == {1: {"insert": every, "delete": every}}


def test_a_commit_that_says_all(house: House) -> None:
    house.change([(1, "a"), (2, "b"), (3, "c")])
    house.publish()
    rows = from_python([(2, "b"), (4, "d")], EDGE)
    house.store({"edge": RelationDelta(rows, rows.slice(0, 0), is_full=True)})
    house.publish()
    expected = {"insert": texts([(4, "d")]), "delete": texts([(1, "a"), (3, "c")])}
    assert house.change_data(1) == {1: expected}


@pytest.mark.parametrize("removed", [1, 5])
def test_changes_of_many_rows_are_written_where_they_are(
    house: House, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    house.change([(at, "a") for at in range(10)])
    house.publish()
    added, gone = [(at, "b") for at in range(5)], [(at, "a") for at in range(removed)]
    house.change(added, gone)
    here = LocalTable if removed == 1 else RowsElsewhere
    change = ChangeHandles(RowsElsewhere(from_python(added, EDGE)), here(from_python(gone, EDGE)))
    content = RowsElsewhere(from_python(house.rows.values(), EDGE))
    history = RecentHistory(1, 2, lambda _: change, lambda _: content, house.history)
    monkeypatch.setattr(RowsElsewhere, "table", None)
    house.publisher.publish(EDGE, 2, history)
    monkeypatch.undo()
    house.demand_good()
    assert house.change_data(1) == {1: {"insert": texts(added), "delete": texts(gone)}}


def test_another_warehouse_reads_the_feed(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []
    read_feed = delta_source.read_feed

    def noted(path: Path, name: str, expected: Any, after: int, upto: int) -> Any:
        read.append((after, upto))
        return read_feed(path, name, expected, after, upto)

    monkeypatch.setattr(delta_source, "read_feed", noted)
    (tmp_path / "p.dl").write_text(
        ".decl edge(x: number, y: symbol)\n"
        '.input edge(format=delta, filename="warehouse/tables/edge")\n'
    )
    house.change([(at, f"{at}") for at in range(5000)])
    house.publish()
    with corollary.open(str(tmp_path / "other"), engine="local") as db:
        db.run(tmp_path / "p.dl", facts=tmp_path)
        for at in range(3):
            house.change([(at, "new")], [(at + 50, f"{at + 50}"), (at, f"{at}")])
            house.publish()
        outcome = db.run(tmp_path / "p.dl", facts=tmp_path)
        assert read == [(0, 3)]
        assert len(outcome.changes["edge"].added) == 3
        assert sorted(db.relation("edge").rows()) == sorted(house.rows.values())


# --- retention -----------------------------------------------------------------------------------


def age(house: House, days: float) -> None:
    """Let all files of the table be older."""
    for each in house.path.rglob("*"):
        then = each.stat().st_mtime - days * 86_400
        os.utime(each, (then, then))


def test_versions_are_kept_as_long_as_said(tmp_path: Path) -> None:
    day = 86_400
    options = TableOptions(True, log_retention=30 * day, file_retention=7 * day)
    house = House(tmp_path, EDGE, options)
    states: dict[int, Counter[str]] = {}
    for at in range(20):
        house.change([(at, "a")], [(at - 1, "a")])
        house.publish()
        states[at] = Counter(list(house.rows))
        age(house, 1)
    removed = {each.name for each in house.publisher.clean()}
    assert removed
    assert not any(each.endswith(".json") for each in removed)
    # Version 12 was superseded 7 days ago, or a moment more.
    for version in range(13, 20):
        rows = DeltaTable(str(house.path), version=version).to_pyarrow_table().to_pylist()
        assert Counter(repr(tuple(each.values())) for each in rows) == states[version]
    with pytest.raises(Exception, match=r"not found|No such file"):
        DeltaTable(str(house.path), version=11).to_pyarrow_table()
    demand_differences(house, states, 14)
    assert house.publisher.clean() == []
    house.demand_good()


def test_entries_of_the_log_go_after_a_checkpoint(house: House) -> None:
    for at in range(25):
        house.change([(at, "a")])
        house.publish()
        age(house, 1)
    newest = house.delta().version()
    gone = house.publisher.clean()
    assert house.entry(0) in gone
    assert {each.name for each in house.log.iterdir()} == {
        "_last_checkpoint",
        f"{newest:020d}.checkpoint.parquet",
        f"{newest:020d}.json",
    }
    house.demand_good()
    house.change([(99, "a")], [(3, "a")])
    house.publish()
    house.publisher.clean()
    house.demand_good()
    expected = {"insert": texts([(99, "a")]), "delete": texts([(3, "a")])}
    assert house.change_data(newest + 1) == {newest + 1: expected}


def test_the_log_of_somebody_else_stays(house: House) -> None:
    house.path.parent.mkdir(parents=True)
    for at in range(15):
        write_deltalake(str(house.path), pa.table({"x": [at]}), mode="append")
    age(house, 100)
    assert house.publisher.clean() == []
    assert house.entry(0).exists()


def test_a_damaged_log_stays(house: House) -> None:
    house.change([(1, "a")])
    house.publish()
    house.entry(1).write_bytes(b"{")
    age(house, 100)
    house.publisher.clean()
    assert house.entry(0).exists()
    assert house.entry(1).exists()
