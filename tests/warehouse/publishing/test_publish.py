"""Published tables show the relation, whatever happens between: read by deltalake and DuckDB."""

import json
import os
import random
import shutil
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from corollary.core.arrow import from_python
from corollary.core.engine import LocalTable
from corollary.core.program import Relation
from corollary.core.types import (
    NUMBER,
    decimal,
)
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog_rows import StoredSnapshot
from corollary.warehouse.files import durable_files, parquet_encoding
from corollary.warehouse.files.parquet_encoding import to_parquet
from corollary.warehouse.publishing import delta_commit, published_files
from corollary.warehouse.publishing.history import RecentHistory
from corollary.warehouse.publishing.outputs import Retries, publish_all
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import ChangeHandles, RelationDelta
from support.published_table import EDGE, ODD, House, nullable, random_row
from support.spark.in_process_partitions import RowsElsewhere


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "warehouse")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make files so small that a few rows make many."""
    monkeypatch.setattr(published_files, "FILE_MAX_ROWS", 16)
    monkeypatch.setattr(parquet_encoding, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(published_files, "TIER_MAX_FILES", 4)


# --- contents ------------------------------------------------------------------------------------


def test_commits_are_coalesced_and_only_touched_files_change(house: House, small: None) -> None:
    house.change([(at, "a") for at in range(64)])
    first = house.publish()
    assert first is not None
    assert (first.commit, first.version, first.added, first.files) == (1, 0, 64, 4)
    house.demand_good()
    before = house.referenced()
    for _ in range(3):  # what comes and goes between leaves no trace
        house.change([(5, "b")], [(5, "a")])
        house.change([(5, "a")], [(5, "b")])
    assert house.publish() is None
    assert house.referenced() == before
    house.change([(5, "b")])
    house.change([(50, "b")], [(5, "a"), (5, "b")])
    assert house.publisher.lag([EDGE]) == {"edge": 2}
    second = house.publish()
    assert second is not None
    assert (second.commit, second.version, second.added, second.removed) == (9, 1, 1, 1)
    assert len(before - house.referenced()) == 1
    assert len(house.referenced() - before) == 2
    house.demand_good()
    assert house.publish() is None


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_agree_with_a_set(tmp_path: Path, small: None, seed: int) -> None:
    rng = random.Random(seed)
    house = House(tmp_path, ODD)
    for step in range(25):
        removed = rng.sample(list(house.rows.values()), min(len(house.rows), rng.randrange(8)))
        house.change([random_row(rng) for _ in range(rng.randrange(10))], removed)
        if rng.random() < 0.6:
            continue
        house.publish()
        house.demand_truth()
        if rng.random() < 0.3:
            house.publisher = Publisher(house.root, house.warehouse.catalog)
            house.publisher.clean(0)
            assert house.data_files() == house.referenced(), step
    house.publish()
    house.demand_good()


# --- few files -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_small_appends_leave_few_files(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_files, "TIER_MAX_FILES", 4)
    monkeypatch.setattr(delta_commit, "CHECKPOINT_INTERVAL_VERSIONS", 10)
    rng = random.Random(1)
    for at in range(30):
        house.change([(rng.randrange(1000), str(at))])
        house.publish()
        assert len(house.referenced()) <= 4 * 4
    house.demand_good()
    assert (house.log / "_last_checkpoint").exists()
    changes = [
        action
        for version in range(house.delta().version() + 1)
        for action in map(json.loads, house.entry(version).read_text().splitlines())
        if "remove" in action
    ]
    assert changes
    assert not any(action["remove"]["dataChange"] for action in changes), "streams see appends only"


def test_old_entries_of_the_log_go(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_commit, "CHECKPOINT_INTERVAL_VERSIONS", 5)
    for at in range(12):
        house.change([(at, "a")])
        house.publish()
        for entry in house.log.iterdir():
            os.utime(entry, (time.time() - 86_400,) * 2)
    assert not house.entry(2).exists()
    house.demand_good()
    house.warehouse.catalog.delete_published("edge")
    house.change([(99, "b")], [(3, "a")])
    house.publish()
    house.demand_good()


# --- life of a relation --------------------------------------------------------------------------


def test_other_columns_make_a_new_version(house: House) -> None:
    house.change([(1, "a"), (2, "b")])
    house.publish()
    house.relation = Relation("edge", ("x", "weight"), (NUMBER, decimal(6, 2)), is_derived=False)
    house.rows = {}
    house.change([(1, Decimal("1.50"))])
    found = house.publish()
    assert found is not None
    assert found.version == 1
    house.demand_good()
    house.relation = Relation(
        "edge", ("x", "cost"), (NUMBER, nullable(decimal(6, 2))), is_derived=False
    )
    house.change([(2, None)])
    house.publish()
    house.demand_good()
    assert DeltaTable(str(house.path), version=0).to_pyarrow_dataset().count_rows() == 2


def test_withdrawn_and_published_again(house: House) -> None:
    house.change([(1, "a")])
    house.publish()
    house.publisher.withdraw("edge")
    assert not house.path.exists()
    assert house.publisher.check(EDGE) == []
    house.change([(2, "b")])
    house.publish()
    house.demand_good()


def test_table_that_is_gone_is_made_again(house: House) -> None:
    house.change([(1, "a")])
    house.publish()
    shutil.rmtree(house.path)
    assert [each.message for each in house.publisher.check(EDGE)] == ["it is gone"]
    house.publish()
    house.demand_good()


def test_history_that_is_no_longer_kept(house: House, small: None) -> None:
    house.change([(at, "a") for at in range(40)])
    house.publish()
    house.change([(7, "b")], [(7, "a")])
    house.change([(8, "b")])
    catalog = house.warehouse.catalog
    data = to_parquet(from_python(house.rows.values(), EDGE))
    name = "data/s/snapshot.parquet"
    checksum = durable_files.write(house.root, name, data)
    stored = StoredSnapshot("edge", house.commit, len(house.rows), name, checksum)
    catalog.record_fold(house.commit, [stored], [], catalog.insert_intent())
    with catalog.write_transaction() as connection:
        connection.execute("DELETE FROM corollary_changes")
        catalog.replace_meta(connection, "oldest", "3")
    before = house.referenced()
    found = house.publish()
    assert found is not None
    assert (found.added, found.removed) == (2, 1)
    assert len(before & house.referenced()) == len(before) - 1
    house.demand_good()


def handles(added: list[Any], removed: list[Any]) -> ChangeHandles:
    return ChangeHandles.of(RelationDelta(from_python(added, EDGE), from_python(removed, EDGE)))


@pytest.mark.parametrize("removed", [[], [(2, "b")], [(n, "x") for n in range(10, 30)]])
def test_a_large_change_is_written_where_its_tuples_are(
    house: House, monkeypatch: pytest.MonkeyPatch, removed: list[Any]
) -> None:
    """Those that go may be few; if they are many, the table is written anew."""
    house.change([(1, "a"), (2, "b"), *((n, "x") for n in range(10, 40))])
    house.publish()
    added = [(n, "y") for n in range(100, 120)]
    house.change(added, removed)
    here = LocalTable if len(removed) < 5 else RowsElsewhere
    change = ChangeHandles(
        RowsElsewhere(from_python(added, EDGE)), here(from_python(removed, EDGE))
    )
    content = RowsElsewhere(from_python(house.rows.values(), EDGE))
    history = RecentHistory(1, 2, lambda _: change, lambda _: content, house.history)
    monkeypatch.setattr(RowsElsewhere, "table", None)
    found = house.publisher.publish(EDGE, 2, history)
    assert found is not None
    monkeypatch.undo()
    house.demand_good()


def test_what_is_in_hand_is_not_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(after: int) -> RecentHistory:
        content = LocalTable(from_python(house.rows.values(), EDGE))
        return RecentHistory(after, house.commit, lambda _: last, lambda _: content, house.history)

    last: ChangeHandles | None = None
    house.change([(1, "a"), (2, "b")])
    with monkeypatch.context() as patch:
        patch.setattr(house.warehouse, "read_change", None)
        house.publisher.publish(EDGE, 1, fresh(0))
        last = handles([(3, "c")], [(1, "a")])
        house.change([(3, "c")], [(1, "a")])
        found = house.publisher.publish(EDGE, 2, fresh(1))
        assert found is not None
        assert (found.added, found.removed) == (1, 1)
    house.change([(4, "d")])  # was never published
    last = handles([(1, "a")], [(4, "d")])
    house.change([(1, "a")], [(4, "d")])
    found = house.publisher.publish(EDGE, 4, fresh(3))
    assert found is not None
    assert (found.added, found.removed) == (1, 0)
    house.demand_good()


def test_a_commit_that_says_all(house: House) -> None:
    house.change([(1, "a"), (2, "b"), (3, "c")])
    house.publish()
    rows = from_python([(2, "b"), (4, "d")], EDGE)
    full = RelationDelta(rows, rows.slice(0, 0), is_full=True)
    number = house.store({"edge": full})
    house.rows = {repr(row): row for row in ((2, "b"), (4, "d"))}
    fresh = RecentHistory(
        1, number, lambda _: ChangeHandles.of(full), lambda _: LocalTable(rows), house.history
    )
    for history in (fresh, house.history):
        assert history.changes(EDGE, 1, number) is None
        assert history.content(EDGE, number).table() == rows
    found = house.publish()
    assert found is not None
    assert (found.added, found.removed) == (1, 2)
    house.change([(5, "e")])
    house.publish()
    house.demand_good()


def test_one_bad_table_does_not_stop_the_others(house: House) -> None:
    other = replace(EDGE, name="other")
    rows = from_python([(1, "a")], EDGE)
    house.store(
        {
            "edge": RelationDelta(rows, rows.slice(0, 0)),
            "other": RelationDelta(rows, rows.slice(0, 0)),
        }
    )
    house.path.parent.mkdir()
    house.path.write_text("mine")
    outputs = house.publisher.outputs([EDGE, other])
    catalog = house.warehouse.catalog
    outcome = publish_all(outputs, house.commit, catalog, house.history, Retries())
    assert [each.relation for each in outcome.published] == ["other"]
    assert [(each.code, each.severity) for each in outcome.problems] == [("C0940", "warning")]


def test_up_to_date_costs_no_version(house: House) -> None:
    house.change([(1, "a")])
    house.publish()
    for _ in range(70):
        house.store({"other": RelationDelta(from_python([], EDGE), from_python([], EDGE))})
    assert house.publish() is None
    assert house.warehouse.catalog.published_versions() == {"edge": (71, 0)}
    assert house.publisher.publish(EDGE, 1, house.history) is None
    with pytest.raises(WarehouseError, match="C0936"):
        house.publisher.publish(EDGE, 72, house.history)
