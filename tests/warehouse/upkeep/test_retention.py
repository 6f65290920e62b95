"""Retention: what is kept answers as before, what is not says so, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import corollary
from corollary import fault
from corollary.core.arrow import to_python
from corollary.database.upkeep.retention import Retention, collect
from corollary.errors import ConflictError, InputError, WarehouseError
from corollary.warehouse import warehouse
from corollary.warehouse.catalog import catalog as catalogs
from corollary.warehouse.catalog.retention import list_intents
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.orphan_files import list_data_files
from corollary.warehouse.publishing.history import StoredHistory
from support.selection import examples
from support.warehouse_history import House, state

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    found = House(str(tmp_path / "warehouse"))
    yield found
    found.close()


@pytest.fixture
def either(place: str) -> Iterator[House]:
    """A warehouse whose catalog is of each kind in turn."""
    found = House(place)
    yield found
    found.close()


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every change stand in a file."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)


def oldest_of(house: House) -> int:
    return int(house.warehouse.catalog.meta("oldest"))


def test_without_bounds_everything_stays(house: House) -> None:
    house.change(10)
    collected = collect(house.warehouse)
    assert collected.dropped is None
    assert not collected.files
    house.demand_past(1)


@pytest.mark.slow
def test_old_commits_are_no_longer_kept(either: House, in_files: None) -> None:
    house = either
    house.change(12)
    house.fold()
    house.change(12)
    last = house.db.commits
    files_before = len(list_data_files(house.root, house.warehouse.catalog).sizes)
    collected = collect(house.warehouse, Retention(commits=3))
    assert collected.oldest == last - 2
    assert not collected.has_folded
    assert collected.dropped is not None
    assert collected.dropped.commits == last - 3
    assert collected.files
    assert (
        len(list_data_files(house.root, house.warehouse.catalog).sizes)
        == files_before - collected.files
    )
    house.demand_past(last - 2)
    house.demand_sound()
    with pytest.raises(WarehouseError, match=f"Commit {last - 3} is no longer kept"):
        house.db.at(last - 3)
    with pytest.raises(WarehouseError, match="C0936"):
        house.db.changes(1)
    assert [each.number for each in house.db.log()] == [last, last - 1, last - 2]


def test_snapshots_are_written_first(either: House) -> None:
    house = either
    house.change(8)
    last = house.db.commits
    collected = collect(house.warehouse, Retention(commits=4))
    assert collected.has_folded
    house.demand_past(last - 3)
    house.demand_sound()
    assert house.warehouse.catalog.changes(0, last - 4) == []


def test_a_dry_run_foretells(house: House, in_files: None) -> None:
    house.change(12)
    house.fold()
    house.change(5)
    house.warehouse.catalog.insert_intent()
    retention = Retention(commits=2, intents=0.0)
    foreseen = collect(house.warehouse, retention, is_dry=True)
    assert foreseen.is_dry
    house.demand_past(1)
    assert list_intents(house.warehouse.catalog)
    done = collect(house.warehouse, retention)
    same = ("expired_intents", "oldest", "commits", "changes", "snapshots", "indexes", "files")
    assert {k: foreseen.as_json()[k] for k in same} == {k: done.as_json()[k] for k in same}
    assert done.expired


@pytest.mark.parametrize("days", [0.0, 1.0])
def test_days(house: House, days: float) -> None:
    house.change(5)
    collect(house.warehouse, Retention(days=days))
    assert oldest_of(house) == (house.db.commits if days == 0 else 1)


def test_either_bound_keeps(house: House) -> None:
    house.change(6)
    collect(house.warehouse, Retention(commits=2, days=1.0))
    assert oldest_of(house) == 1
    collect(house.warehouse, Retention(commits=2, days=0.0))
    assert oldest_of(house) == house.db.commits - 1
    collect(house.warehouse, Retention(commits=100))
    assert oldest_of(house) == house.db.commits - 1


@pytest.mark.parametrize(
    "retention", [Retention(commits=0), Retention(days=-1.0), Retention(intents=float("nan"))]
)
def test_bounds_make_sense(house: House, retention: Retention) -> None:
    with pytest.raises(InputError, match="C0964"):
        collect(house.warehouse, retention)


def test_of_a_warehouse_without_commits(place: str) -> None:
    with corollary.open(place) as db:
        assert db._store is not None
        assert collect(db._store.warehouse, Retention(commits=1)).oldest == 0


def test_keys_are_remembered(either: House) -> None:
    house = either
    with house.db.transaction(idempotency="k") as tx:
        tx.insert("edge", [("x", "y")])
    first = tx.commit_number
    house.change(5)
    house.note()
    collect(house.warehouse, Retention(commits=1))
    with house.db.transaction(idempotency="k") as tx:
        tx.insert("edge", [("x", "z")])
    assert tx.commit_number == first
    assert ("x", "z") not in house.db.relation("edge").rows()
    house.demand_past(house.db.commits)


def test_who_lags_behind_begins_anew(house: House) -> None:
    other = corollary.open(house.place)
    house.change(6)
    collect(house.warehouse, Retention(commits=1))
    house.change(2)
    with other.transaction() as tx:
        tx.insert("edge", [("p", "q")])
    house.db.refresh()
    assert tx.commit_number == house.db.commits
    house.note()
    house.demand_past(house.db.commits)
    house.demand_sound()
    other.close()


def test_history_dropped_while_it_is_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.change(4)
    house.fold()
    house.change(6)
    real = catalogs.Catalog.changes
    once = [True]

    def meanwhile(catalog: Any, after: int, upto: int, relation: str | None = None) -> Any:
        if once:
            once.clear()
            collect(house.warehouse, Retention(commits=1))
        return real(catalog, after, upto, relation)

    house.note()
    monkeypatch.setattr(catalogs.Catalog, "changes", meanwhile)
    house.demand_past(house.db.commits)
    assert not once


def test_a_small_catalog_is_compacted_too(house: House) -> None:
    for _ in range(18):
        with house.db.transaction() as tx:
            tx.insert("edge", [(house.random.randbytes(4_000).hex(), "x")])
    collect(house.warehouse)
    size = house.warehouse.catalog_bytes
    assert 1 << 19 < size < 1 << 20
    collected = collect(house.warehouse, Retention(commits=1))
    assert collected.dropped is not None
    assert house.warehouse.catalog_bytes < size // 2


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.usefixtures("in_files")
def test_changes_dropped_while_they_are_read(
    house: House, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """They are not known any more, whether rows or only files of them are missed."""
    house.change(8)
    edge = house.db._state.loaded.normal.relations["edge"]
    content = StoredHistory(house.warehouse).content(edge, house.db.commits).table()
    real = type(house.warehouse.catalog).changes
    asked = 0

    def meanwhile(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        found = real(*arguments) if is_late else None
        if asked == 1:
            collect(house.warehouse, Retention(commits=1))
        return found or real(*arguments)

    monkeypatch.setattr(type(house.warehouse.catalog), "changes", meanwhile)
    history = StoredHistory(house.warehouse)
    assert history.changes(edge, 1, house.db.commits) is None
    asked = -9
    now = history.content(edge, house.db.commits).table()
    assert sorted(to_python(now)) == sorted(to_python(content))
    with pytest.raises(WarehouseError, match="no longer kept"):
        history.content(edge, 2)


def fold_often(house: House) -> None:
    """Take a snapshot at each of commits 2 to 7."""
    for number in range(2, 8):
        with house.db.transaction() as tx:
            tx.insert("edge", [("n", str(number))])
        house.note()
        house.fold()


def test_a_snapshot_thinned_out_while_the_past_is_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_often(house)
    real, names = type(house.warehouse).read_snapshot, []

    def meanwhile(warehouse: Any, stored: Any) -> Any:
        if not names:
            with house.db.transaction() as tx:
                tx.insert("edge", [("n", "8")])
            house.fold()
            assert not (house.root / stored.path).exists()
        names.append(stored.path)
        return real(warehouse, stored)

    monkeypatch.setattr(type(house.warehouse), "read_snapshot", meanwhile)
    assert state(house.db.at(5)) == house.seen[5]
    assert len(names) > 1


def test_a_snapshot_that_is_gone_is_not_looked_for_forever(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_often(house)
    for path in house.root.glob("data/*/snapshot-*"):
        path.unlink()
    with pytest.raises(WarehouseError, match="C0933"):
        house.db.at(5).relation("edge").rows()
    counter = iter(range(99))
    monkeypatch.setattr(type(house.warehouse.catalog), "folded_files", lambda _: next(counter))
    with pytest.raises(WarehouseError, match="C0933"):
        house.db.at(5).relation("edge").rows()


# --- writers -------------------------------------------------------------------------------------


def test_a_writer_that_is_taken_for_dead_cannot_commit(
    either: House, in_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = either
    real, tries = FileBatch.write, []

    def slow(files: FileBatch, name: str, data: bytes | memoryview) -> str:
        checksum = real(files, name, data)
        if not tries:
            tries.append(name)
            assert collect(house.warehouse, Retention(intents=0.0)).expired
            assert not (files.root / name).exists()
        return checksum

    monkeypatch.setattr(FileBatch, "write", slow)
    with house.db.transaction() as tx:
        tx.insert("edge", [("p", "q")])
    assert tries
    assert tx.commit_number == 2
    house.note()
    house.demand_past(1)
    collect(house.warehouse)
    house.demand_sound()


@pytest.mark.parametrize("work", ["commit", "fold"])
@pytest.mark.usefixtures("in_files")
def test_a_writer_shows_signs_of_life(
    house: House, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """A commit or a fold may last longer than `gc` waits, as long as it writes files."""
    house.change(3)
    monkeypatch.setattr(catalogs, "BEAT_SECONDS", 0.0)
    now, real, tries = [time.time()], FileBatch.write, []
    monkeypatch.setattr(time, "time", lambda: now[0])

    def slow(files: FileBatch, name: str, data: bytes | memoryview) -> str:
        checksum = real(files, name, data)
        now[0] += 40 * 60.0
        tries.append(name)
        assert not collect(house.warehouse).expired
        assert (files.root / name).exists()
        return checksum

    monkeypatch.setattr(FileBatch, "write", slow)
    if work == "fold":
        house.fold()
    else:
        with house.db.transaction() as tx:
            tx.insert("edge", [("p", "q")])
    assert len(tries) > 2
    assert len({Path(name).parent for name in tries}) == 1, "it was not done again"


def test_the_files_of_living_writers_stay(house: House) -> None:
    intent = house.warehouse.catalog.insert_intent()
    durable_files.write(house.root, f"data/{intent}/0.parquet", b"half")
    durable_files.write(house.root, "data/nobody/0.parquet", b"loose")
    collected = collect(house.warehouse)
    assert collected.files == 1
    assert not collected.expired
    assert (house.root / f"data/{intent}/0.parquet").exists()
    assert not (house.root / "data/nobody").exists()
    assert collect(house.warehouse, Retention(intents=0.0)).files == 1
    with (
        pytest.raises(ConflictError, match="gave it up"),
        house.warehouse.catalog.write_transaction() as c,
    ):
        house.warehouse.catalog.consume_intent(c, intent)
    house.demand_sound()


def test_a_fold_of_the_past_is_not_recorded(house: House) -> None:
    """A process that folds an old commit while history is dropped must not bring it back."""
    old = corollary.open(house.place)
    house.change(5)
    collect(house.warehouse, Retention(commits=1))
    assert old._store is not None
    old._store.fold(old._state)
    old.close()
    assert house.warehouse.catalog.latest_snapshots(oldest_of(house) - 1) == {}
    house.demand_sound()


def test_folding_twice_loses_nothing(house: House) -> None:
    house.change(5)
    house.fold()
    collect(house.warehouse, Retention(commits=1))
    house.fold()
    collect(house.warehouse, Retention(commits=1))
    for index in house.root.glob("data/*/index-*"):
        index.unlink()
    house.demand_past(house.db.commits)


# --- crashes -------------------------------------------------------------------------------------

DROP = """
import sys, corollary
from corollary.database.upkeep.retention import Retention, collect
with corollary.open(sys.argv[1]) as db:
    collect(db._store.warehouse, Retention(commits=2, intents=0.0))
"""


@pytest.mark.integration
@pytest.mark.matrix(5)
@pytest.mark.parametrize(
    "point",
    ["after_intent", "during_snapshot", "during_snapshot:3", "after_snapshot", "during_gc"],
)
def test_killed_anywhere(house: House, in_files: None, point: str) -> None:
    house.change(7)
    environment = {**os.environ, "COROLLARY_FAULT": point}
    done = subprocess.run(
        [sys.executable, "-c", DROP, house.place], env=environment, capture_output=True, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    last = house.db.commits
    house.demand_past(oldest_of(house))
    collect(house.warehouse, Retention(commits=2, intents=0.0))
    assert oldest_of(house) == last - 1
    house.demand_past(last - 1)
    house.demand_sound()


def test_killed_between_two_files(house: House, in_files: None, monkeypatch: Any) -> None:
    class Killed(BaseException):
        pass

    house.change(7)
    real, left = Path.unlink, [3]

    def unlink(path: Path, missing_ok: bool = False) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed
        real(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        with pytest.raises(Killed):
            collect(house.warehouse, Retention(commits=1))
    assert list_data_files(house.root, house.warehouse.catalog).orphans
    collect(house.warehouse)
    house.demand_past(house.db.commits)
    house.demand_sound()
    assert "during_gc" in fault.TRANSACTION_POINTS


# --- at random -----------------------------------------------------------------------------------

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(1, 5)),
        st.tuples(st.just("fold"), st.just(0)),
        st.tuples(st.just("gc"), st.integers(1, 8)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    min_size=3,
    max_size=12,
)


EXAMPLES = {
    "sqlite": examples(3, 10),
    "postgresql": examples(1, 3),
    "postgresql+s3": examples(1, 2),
}


@pytest.mark.slow
def test_every_kept_commit_answers_as_before(
    places: Callable[[], str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    number = EXAMPLES[request.node.callspec.params["places"]]

    @settings(max_examples=number, suppress_health_check=SLOW, phases=PHASES)
    @given(acts=ACTS, seed=st.integers(0, 10_000), is_inline=st.booleans())
    def run(acts: list[tuple[str, int]], seed: int, is_inline: bool) -> None:
        monkeypatch.setattr(warehouse, "INLINE_BYTES", 1 << 16 if is_inline else 1)
        act_at_random(House(places(), seed), acts)

    run()


def act_at_random(house: House, acts: list[tuple[str, int]]) -> None:
    house.change(3)
    for act, count in acts:
        if act == "change":
            house.change(count)
        elif act == "fold":
            house.fold()
        elif act == "reopen":
            house.close()
            house.db = corollary.open(house.place)
        else:
            was = oldest_of(house)
            collect(house.warehouse, Retention(commits=count))
            assert oldest_of(house) == max(was, house.db.commits - count + 1)
            house.demand_past(oldest_of(house))
    house.demand_past(oldest_of(house))
    collect(house.warehouse)
    house.demand_sound()
    house.close()
