"""Loads that do not pass the driver: read, partitioned, stored and restored by tasks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.database import warehouse_store
from corollary.database.upkeep.verify import verify
from corollary.database.writing import bag_operations
from corollary.engines.spark.relation import contents, handle
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.source import PartitionSource
from corollary.errors import ConstraintError, InputError
from corollary.warehouse.files import multi_file_table
from corollary.warehouse.publishing import published_files
from support.spark.in_process_partitions import forbid_collecting, share_out
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl sale(id: number, shop: symbol, amount: number) key(id)
.input sale(filename="sales", format="csv", delimiter=",", rfc4180=true)
.decl total(shop: symbol, amount: number)
total(s, t) :- sale(_, s, _), t = sum a : { sale(_, s, a) }.
.output sale
.output total
"""

REFUSED = """
.decl bad(id: number)
bad(i) :- +sale(i, _, 5).
.abort bad "no {id}"
"""


@pytest.fixture(autouse=True)
def partitioned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all relations be partitioned, and no tuple of a large one be fetched."""
    share_out(monkeypatch, "partitions")
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)


def write(place: Path, name: str, rows: list[tuple[int, str, int]]) -> None:
    (place / "sales").mkdir(exist_ok=True)
    text = "".join(f"{id_},{shop},{amount}\n" for id_, shop, amount in rows)
    (place / "sales" / name).write_text(text)


def totals(rows: list[tuple[int, str, int]]) -> set[tuple[str, int]]:
    return {(shop, sum(a for _, s, a in rows if s == shop)) for _, shop, _ in rows}


ROWS = [(n, f"shop {n % 7}", n % 13) for n in range(300)]


def published_copies(place: Path, name: str) -> list[tuple[Any, ...]]:
    return sorted(to_python(DeltaTable(str(place / "tables" / name)).to_pyarrow_table()))


def published(place: Path, name: str) -> set[tuple[Any, ...]]:
    return set(published_copies(place, name))


@pytest.mark.slow
def test_a_first_load_and_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS[:200])
    write(tmp_path, "b.csv", ROWS[200:])
    place = tmp_path / "w"
    with corollary.open(place) as db:
        run = db.run(program, facts=tmp_path)
        assert run.changes["sale"].counts == (300, 0)
        with monkeypatch.context() as patch:
            patch.setattr(PartitionSource, "read", None)
            assert len(db.relation("sale")) == 300
        files = db._state.engine.partitioned_files("sale")
        assert isinstance(files, PartitionedFiles)
        assert files.size == 300
        assert set(db.relation("sale").rows()) == set(ROWS)
        assert set(db.relation("total").rows()) == totals(ROWS)
        store_of(db).fold(db._state)
    assert {each.name for each in place.iterdir()} == {"catalog.sqlite", "data", "tables"}
    assert published(place, "sale") == set(ROWS)
    assert published(place, "total") == totals(ROWS)
    now = [*ROWS[1:], (1000, "new", 5), (1001, "shop 1", 7)]
    write(tmp_path, "a.csv", now[:199])
    write(tmp_path, "c.csv", now[-2:])
    with corollary.open(place) as db:
        assert db._state.engine.partitioned_files("sale") is not None
        run = db.run(program, facts=tmp_path)
        assert run.changes["sale"].counts == (2, 1)
        assert set(db.relation("sale").rows()) == set(now)
        assert set(db.relation("total").rows()) == totals(now)
    assert published(place, "sale") == set(now)
    with corollary.open(place) as db:
        assert set(db.relation("sale").rows()) == set(now)
        assert not verify(store_of(db).warehouse).findings
    with corollary.open(place, engine="local") as db:
        assert set(db.relation("total").rows()) == totals(now)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_first_load_of_copies(
    parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks count the copies of a bag; later changes bring counts of the rows that change."""
    program = tmp_path / "p.dl"
    text = "\n".join([*PROGRAM.splitlines()[:3], ".output sale\n"]).replace(" key(id)", " bag")
    if parts > 1:
        text += '.input sale(filename="more.csv", format="csv", delimiter=",", rfc4180=true)\n'
        (tmp_path / "more.csv").write_text("")
    program.write_text(text)
    rows = [(n % 40, f"shop {n % 7}", n % 2) for n in range(300)]
    write(tmp_path, "a.csv", rows[:200])
    write(tmp_path, "b.csv", rows[200:])
    with corollary.open(tmp_path / "w") as db:
        with monkeypatch.context() as patch:
            forbid_collecting(patch, 0)
            patch.setattr(bag_operations, "counted_table", None)
            run = db.run(program, facts=tmp_path)
        assert run.changes["sale"].counts == (300, 0)
        assert sorted(db.relation("sale").rows()) == sorted(rows)
        assert isinstance(db._state.engine.partitioned_files("sale.rows"), PartitionedFiles)
    assert published_copies(tmp_path / "w", "sale") == sorted(rows)
    now = [*rows[50:], (1000, "new", 5), (1000, "new", 5), *rows[60:65]]
    write(tmp_path, "a.csv", now[:150])
    write(tmp_path, "c.csv", now[250:])
    if parts > 1:
        (tmp_path / "more.csv").write_text("1000,new,5\n")
        now.append((1000, "new", 5))
    with corollary.open(tmp_path / "w") as db:
        run = db.run(program, facts=tmp_path)
        assert sorted(db.relation("sale").rows()) == sorted(now)
        before, after = Counter(rows), Counter(now)
        came, went = after - before, before - after
        assert run.changes["sale"].counts == (came.total(), went.total())
        assert not db.run(program, facts=tmp_path).changes
    assert published_copies(tmp_path / "w", "sale") == sorted(now)
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert sorted(db.relation("sale").rows()) == sorted(now)
        assert not verify(store_of(db).warehouse).findings


def test_tasks_rewrite_published_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was published of a large relation is altered where its tuples are."""
    monkeypatch.setattr(contents, "is_distributed", lambda _: False)  # its change is small
    monkeypatch.setattr(published_files, "REWRITTEN_MIN_FILES", 2)
    monkeypatch.setattr(published_files, "FILE_MAX_ROWS", 20)
    monkeypatch.setattr(multi_file_table, "FILE_MAX_ROWS", 20)
    used: list[int] = []
    really = published_files.FileRewriter.__call__

    def note(self: Any, sought: Any) -> Any:
        used.append(1)
        return really(self, sought)

    monkeypatch.setattr(published_files.FileRewriter, "__call__", note)
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS)
    place = tmp_path / "w"
    with corollary.open(place) as db:
        db.run(program, facts=tmp_path)
        assert published(place, "sale") == set(ROWS)
        now = [row for row in ROWS if row[0] % 25]
        write(tmp_path, "a.csv", now)
        db.run(program, facts=tmp_path)
        assert len(used) > 5
    assert published(place, "sale") == set(now)


@pytest.mark.slow
def test_parts_that_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second writer, what was loaded is both the relation and the part of its source."""
    monkeypatch.setattr(warehouse_store, "FOLD_MIN_TUPLES", 100)
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS)
    rows = [*ROWS]
    place = tmp_path / "w"
    with corollary.open(place) as db:
        db.run(program, facts=tmp_path)
        for number in range(3):
            more = [(1000 * (number + 1) + n, "by hand", n) for n in range(5)]
            with db.transaction() as tx:
                tx.insert("sale", more)
            rows += more
            is_folded = store_of(db)._folded == db.commits
            assert is_folded == (number == 0)  # the parts are new then
        assert set(db.relation("sale").rows()) == set(rows)
    write(tmp_path, "a.csv", ROWS[1:])
    with corollary.open(place) as db:
        assert set(db.relation("total").rows()) == totals(rows)
        run = db.run(program, facts=tmp_path)
        assert run.changes["sale"].counts == (0, 1)
        assert set(db.relation("sale").rows()) == set(rows[1:])
        assert not verify(store_of(db).warehouse).findings


@pytest.mark.slow
def test_without_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot is partitioned again, and later changes are applied to it there."""
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS)
    place = tmp_path / "w"
    now = [*ROWS]
    for number in range(3):
        with monkeypatch.context() as patch:
            forbid_collecting(patch)
            with corollary.open(place) as db:
                assert store_of(db)._folded == 0
        with corollary.open(place) as db:
            run = db.run(program, facts=tmp_path)
            assert run.changes["sale"].counts == ((1, 2) if number else (300, 0))
            assert set(db.relation("sale").rows()) == set(now)
            assert set(db.relation("total").rows()) == totals(now)
        now = [*now[2:], (2000 + number, "new", 1)]
        write(tmp_path, "a.csv", now)


def test_an_index_that_was_lost(tmp_path: Path) -> None:
    """What was committed since the snapshot is there, although the index was newer."""
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS)
    place = tmp_path / "w"
    with corollary.open(place) as db:
        db.run(program, facts=tmp_path)
        store_of(db).fold(db._state)
        for now in (ROWS[1:], [*ROWS[2:], (1000, "new", 1)]):
            write(tmp_path, "a.csv", now)
            db.run(program, facts=tmp_path)
    for file in place.glob("data/*/index-*"):
        file.unlink()
    with corollary.open(place) as db:
        assert set(db.relation("sale").rows()) == set(now)
        assert set(db.relation("total").rows()) == totals(now)


def test_a_load_that_violates_a_key_changes_nothing(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    write(tmp_path, "a.csv", ROWS)
    write(tmp_path, "b.csv", [(7, "elsewhere", 1)])
    with corollary.open(tmp_path / "w") as db:
        with pytest.raises(ConstraintError, match="C0954"):
            db.run(program, facts=tmp_path)
        assert not db.commits
        write(tmp_path, "b.csv", [])
        db.run(program, facts=tmp_path)
        assert set(db.relation("sale").rows()) == set(ROWS)


def test_a_load_that_fails_later_is_undone(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(
        PROGRAM + '.decl bad(id: number)\nbad(i) :- +sale(i, _, 5).\n.abort bad "no {id}"\n'
    )
    write(tmp_path, "a.csv", ROWS)
    with corollary.open(tmp_path / "w") as db:
        with pytest.raises(InputError, match="no "):
            db.run(program, facts=tmp_path)
        assert not db.commits
        rows = [(id_, shop, 6) for id_, shop, _ in ROWS]
        write(tmp_path, "a.csv", rows)
        db.run(program, facts=tmp_path)
        assert set(db.relation("total").rows()) == totals(rows)
