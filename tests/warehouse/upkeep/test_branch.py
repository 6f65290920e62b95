"""Branches share files with their origin, and neither loses any by what is done to the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import corollary
from corollary.database.upkeep.backup import branch, origin_of
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.errors import WarehouseError
from corollary.warehouse import warehouse
from corollary.warehouse.warehouse import Warehouse
from support.warehouse_history import House, state


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 600)
    found = House(str(tmp_path / "warehouse"), 2)
    found.change(5)
    found.fold()
    found.change(3)
    found.db.publish()
    yield found
    found.close()


def make_branch(house: House, place: Path) -> int:
    """Make a branch; return how many files are shared."""
    assert house.db._store is not None
    return branch(house.db._store.warehouse, place).files


def data_files(place: Path) -> dict[str, os.stat_result]:
    return {
        str(each.relative_to(place)): each.stat()
        for each in (place / "data").rglob("*")
        if each.is_file()
    }


def seen_by(place: Path) -> dict[int, object]:
    with corollary.open(str(place), engine="local", create=False) as db:
        return {number: state(db.at(number)) for number in range(1, db.commits + 1)}


def test_a_branch_has_the_same_files_and_history(house: House, tmp_path: Path) -> None:
    shared = make_branch(house, tmp_path / "dev")
    own, its = data_files(tmp_path / "warehouse"), data_files(tmp_path / "dev")
    assert len(its) == shared > 0
    assert {name: each.st_ino for name, each in its.items()} == {
        name: own[name].st_ino for name in its
    }
    assert seen_by(tmp_path / "dev") == house.seen
    opened = Warehouse.open(tmp_path / "dev", create=False)
    assert origin_of(opened.catalog) == str(tmp_path / "warehouse")
    assert not verify(opened).findings
    opened.close()


def test_each_goes_its_own_way(house: House, tmp_path: Path) -> None:
    make_branch(house, tmp_path / "dev")
    before = seen_by(tmp_path / "dev")
    house.change(3)
    assert seen_by(tmp_path / "dev") == before
    with corollary.open(str(tmp_path / "dev"), engine="local") as db, db.transaction() as tx:
        tx.insert("edge", [("of", "dev")])
    latest = house.db.commits
    assert state(house.db) == house.seen[latest]


@pytest.mark.parametrize("collected", ["warehouse", "dev"])
def test_gc_of_one_leaves_the_files_of_the_other(
    house: House, tmp_path: Path, collected: str
) -> None:
    make_branch(house, tmp_path / "dev")
    other = tmp_path / ("dev" if collected == "warehouse" else "warehouse")
    before, files = seen_by(other), set(data_files(other))
    with corollary.open(str(tmp_path / collected), engine="local") as db:
        with db.transaction() as tx:
            tx.insert("edge", [("one", "more")])
        assert db._store is not None
        removed = collect(db._store.warehouse, Retention(commits=1))
        assert removed.files > 0
    assert set(data_files(other)) == files
    assert seen_by(other) == before
    opened = Warehouse.open(other, create=False)
    assert not verify(opened).findings
    opened.close()


def test_the_original_may_go(house: House, tmp_path: Path) -> None:
    make_branch(house, tmp_path / "dev")
    house.close()
    shutil.rmtree(tmp_path / "warehouse")
    assert seen_by(tmp_path / "dev") == house.seen


def test_alerts_that_wait_are_delivered_by_the_original(tmp_path: Path) -> None:
    text = """.decl p(x: number)\n.output p\nseen(x) :- +p(x).\n.alert seen "{x}" (IO=webhook, url="http://127.0.0.1:9/")\n"""
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("p", [(1,)])
        assert db._store is not None
        branch(db._store.warehouse, tmp_path / "dev")
    with corollary.open(str(tmp_path / "dev"), engine="local") as db:
        assert db.deliver().alerts == 0


def test_a_branch_is_on_the_same_file_system(house: House, tmp_path: Path) -> None:
    for place in ("postgresql://u@h/d?data=/tmp/x", "/proc/dev"):
        with pytest.raises(WarehouseError, match="C1907"):
            make_branch(house, place)  # type: ignore[arg-type]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    with pytest.raises(WarehouseError, match="C0960"):
        make_branch(house, tmp_path / "full")


def test_a_warehouse_that_is_no_branch_has_no_origin(house: House) -> None:
    assert house.db._store is not None
    with pytest.raises(WarehouseError, match="C1908"):
        origin_of(house.db._store.warehouse.catalog)
