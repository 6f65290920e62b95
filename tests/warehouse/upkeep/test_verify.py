"""Verification finds every kind of damage, and repair makes anew what can be made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import from_python
from corollary.database.upkeep.checked_reads import FindingKind, VerifyFinding
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import repair, verify
from corollary.errors import WarehouseError
from corollary.warehouse import warehouse
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.files import durable_files
from corollary.warehouse.warehouse import RelationDelta
from support.selection import examples
from support.warehouse_history import PROGRAM, House, state


def made(place: Path) -> House:
    """Return a warehouse with a past, a fold, and changes since, closed."""
    found = House(str(place), 3)
    found.change(7)
    found.fold()
    found.change(4)
    found.db.publish()
    found.close()
    return found


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, House]:
    """Warehouses to be copied: changes stand in files, or in the catalog."""
    root = tmp_path_factory.mktemp("templates")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warehouse, "INLINE_BYTES", 1)
        in_files = made(root / "files")
    return {"files": in_files, "inline": made(root / "inline")}


def copied(template: House, root: Path) -> House:
    shutil.copytree(template.place, root / "warehouse")
    found = House(str(root / "warehouse"))
    found.seen, found.changes = dict(template.seen), dict(template.changes)
    return found


@pytest.fixture
def inline(templates: dict[str, House], tmp_path: Path) -> Iterator[House]:
    """A warehouse whose changes stand in the catalog."""
    found = copied(templates["inline"], tmp_path)
    yield found
    found.close()


@pytest.fixture
def house(
    templates: dict[str, House], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """A warehouse whose changes stand in files."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    found = copied(templates["files"], tmp_path)
    yield found
    found.close()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def run(house: House, statement: str, *values: Any) -> None:
    with house.warehouse.catalog.write_transaction() as connection:
        connection.execute(statement, *values)


def damage(house: House, relation: str, commit: int, harm: Callable[[Path], object]) -> None:
    """Damage what a commit says of a relation, in its file or in the catalog."""
    changes = house.warehouse.catalog.changes(commit - 1, commit, relation)
    ((_, stored),) = changes
    if stored.path is not None:
        harm(house.root / stored.path)
        return
    assert stored.inline is not None
    run(
        house,
        "UPDATE corollary_changes SET inline = ? WHERE commit_number = ? AND relation = ?",
        stored.inline[:-9] + b"x" * 9,
        commit,
        relation,
    )


def commits_of(house: House, relation: str) -> list[int]:
    last = house.db.commits
    return [number for number, _ in house.warehouse.catalog.changes(0, last, relation)]


def found(house: House) -> list[VerifyFinding]:
    return verify(house.warehouse).findings


def demand_mended(house: House, *kinds: FindingKind) -> None:
    """Demand that these kinds of damage are found, mended, and everything is as it was."""
    report = repair(house.warehouse)
    assert not report.findings, "\n".join(map(str, report.findings))
    assert {each.kind for each in report.repaired} == set(kinds)
    collect(house.warehouse)
    with corollary.open(house.place) as fresh:
        assert state(fresh) == house.seen[max(house.seen)]
        for number in sorted(house.seen)[:: examples(3, 1)]:
            assert state(fresh.at(number)) == house.seen[number], number
        with fresh.transaction() as tx:
            tx.insert("edge", [("a", "zz"), ("zz", "b")])
            tx.delete("edge", [("a", "b")])
    house.db.refresh()
    assert not found(house)


def test_a_sound_one(house: House) -> None:
    report = verify(house.warehouse)
    assert not report.findings
    assert report.has_recomputed
    assert report.as_json()["sound"]
    assert report.commits == house.db.commits
    assert report.changes
    assert report.snapshots
    assert report.index_files
    assert report.tables == 1
    assert report.tuples
    assert report.bytes


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("harm", [flip, truncate, Path.unlink])
def test_index_files(house: House, harm: Callable[[Path], object]) -> None:
    index = sorted(house.root.glob("data/*/index-*"))
    harm(index[0])
    harm(index[-1])
    assert {each.kind for each in found(house)} == {FindingKind.INDEX}
    demand_mended(house, FindingKind.INDEX)


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("harm", [flip, truncate, Path.unlink])
def test_snapshots(house: House, harm: Callable[[Path], object]) -> None:
    for snapshot in house.root.glob("data/*/snapshot-*"):
        harm(snapshot)
    findings = found(house)
    assert {each.kind for each in findings} >= {FindingKind.SNAPSHOT}
    assert all(each.is_repairable for each in findings)
    kinds = {each.kind for each in findings}
    demand_mended(house, *kinds)


@pytest.mark.slow
def test_snapshots_without_the_changes_before_them(house: House) -> None:
    """The index of the same commit is a second copy."""
    collect(house.warehouse, Retention(commits=6))
    oldest = int(house.warehouse.catalog.meta("oldest"))
    house.seen = {number: seen for number, seen in house.seen.items() if number >= oldest}
    for snapshot in house.root.glob("data/*/snapshot-*"):
        flip(snapshot)
    demand_mended(house, *{each.kind for each in found(house)})


@pytest.mark.slow
def test_snapshot_and_part_of_the_index(house: House) -> None:
    """The files of other relations in a damaged index still help."""
    collect(house.warehouse, Retention(commits=2))
    oldest = int(house.warehouse.catalog.meta("oldest"))
    house.seen = {number: seen for number, seen in house.seen.items() if number >= oldest}
    stored = house.warehouse.catalog.latest_snapshots(house.db.commits)
    (house.root / stored["node"].path).unlink()
    index = sorted(house.root.glob("data/*/index-*.tuples"))
    names = {file: name for file in index for name in stored if f'index of {name}"' in text(file)}
    flip(next(file for file, name in names.items() if name == "path"))
    demand_mended(house, *{each.kind for each in found(house)})


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_what_is_lost_altogether(house: House) -> None:
    """Both copies of a base relation are gone; nothing else is made worse."""
    collect(house.warehouse, Retention(commits=2))
    stored = house.warehouse.catalog.latest_snapshots(house.db.commits)["node"]
    (house.root / stored.path).unlink()
    for index in house.root.glob("data/*/index-dictionary"):
        index.unlink()
    report = repair(house.warehouse)
    assert [each.relation for each in report.findings if not each.is_repairable] == ["node"]
    assert "restore the warehouse from a backup" in str(report.findings[0])


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("relation", ["path", "fan", "lone", "edge", "edge•text", "path•rank"])
def test_changes_of_what_is_made_of_others(house: House, relation: str) -> None:
    for commit in commits_of(house, relation)[-2:]:
        damage(house, relation, commit, flip)
    kinds = {each.kind for each in found(house)}
    assert FindingKind.CHANGE in kinds
    demand_mended(house, *kinds)


@pytest.mark.parametrize("field", ["relation", "added", "removed", "is_full", "inline"])
def test_rows_of_changes_in_the_catalog(tmp_path: Path, field: str) -> None:
    """Also where a change has no columns, so that its row is all that it says."""
    house = House(str(tmp_path / "warehouse"))
    house.db.load(text=f"{PROGRAM}.decl flag()\n.decl other()\n")
    with house.db.transaction() as tx:
        tx.insert("flag", [()])
    commit = house.db.commits
    ((_, stored),) = house.warehouse.catalog.changes(commit - 1, commit, "flag")
    assert stored.inline is not None
    values: dict[str, Any] = {
        "relation": "other",
        "added": 0,
        "removed": 1,
        "is_full": not stored.is_full,
        "inline": stored.inline[:20] + b"x" + stored.inline[21:],
    }
    statement = f"UPDATE corollary_changes SET {field} = ? WHERE commit_number = ? AND relation = ?"
    run(house, statement, values[field], commit, "flag")
    assert [(each.kind, each.code) for each in found(house)] == [(FindingKind.CHANGE, "C0934")]
    with pytest.raises(WarehouseError, match="C0934"):
        corollary.open(house.place)
    house.close()


@pytest.mark.slow
def test_changes_in_the_catalog(inline: House) -> None:
    for relation in ("path", "edge", "path•rank"):
        damage(inline, relation, commits_of(inline, relation)[-1], flip)
    assert all(
        each.file == "the catalog" for each in found(inline) if each.kind is FindingKind.CHANGE
    )
    demand_mended(inline, *{each.kind for each in found(inline)})


@pytest.mark.parametrize("harm", [flip, Path.unlink])
def test_a_lost_change_of_a_base_relation(house: House, harm: Callable[[Path], object]) -> None:
    commit = commits_of(house, "node")[-1]
    damage(house, "node", commit, harm)
    report = repair(house.warehouse)
    assert not report.repaired
    assert not report.has_recomputed
    (finding,) = (each for each in report.findings if each.relation == "node")
    assert not finding.is_repairable
    assert "restore the warehouse from a backup" in str(finding)
    assert finding.commit == commit


@pytest.mark.slow
def test_a_lost_change_before_a_snapshot(house: House) -> None:
    """What is since the next snapshot is sound, and gc gives up what was before."""
    commit = commits_of(house, "edge•manual")[2]
    damage(house, "edge•manual", commit, flip)
    (finding,) = found(house)
    assert not finding.is_repairable
    assert "gc --keep-commits" in finding.cure
    last = house.db.commits
    collect(house.warehouse, Retention(commits=last - finding.sound_from + 1))
    assert not found(house)
    house.demand_past(finding.sound_from)


@pytest.mark.slow
def test_a_change_that_does_not_fit(house: House) -> None:
    """It adds what is there and removes what is not."""
    rows = from_python([("nobody", "no one")], house.db._state.loaded.normal.relations["path"])
    latest = house.warehouse.commit_at()
    assert latest is not None
    new = NewCommit(latest.number, latest.payload, {})
    house.warehouse.commit(new, {"path": RelationDelta(rows.slice(0, 0), rows)})
    house.seen[latest.number + 1] = house.seen[latest.number]
    findings = found(house)
    assert [each.kind for each in findings] == [FindingKind.CHANGE]
    assert "removes some that were not" in findings[0].message
    demand_mended(house, FindingKind.CHANGE)


@pytest.mark.slow
def test_a_derived_relation_that_is_wrong(house: House) -> None:
    rows = from_python([("nobody", "no one")], house.db._state.loaded.normal.relations["path"])
    latest = house.warehouse.commit_at()
    assert latest is not None
    new = NewCommit(latest.number, latest.payload, {})
    house.warehouse.commit(new, {"path": RelationDelta(rows, rows.slice(0, 0))})
    findings = found(house)
    assert [each.kind for each in findings] == [FindingKind.STATE]
    assert "has 1 that it should not have" in findings[0].message
    report = repair(house.warehouse)
    assert not report.findings
    house.db.refresh()
    assert state(house.db) == house.seen[latest.number]
    house.change(3)
    house.demand_sound()


@pytest.mark.slow
def test_a_base_relation_that_is_not_the_union_of_its_parts(house: House) -> None:
    rows = from_python([("nobody", "no one")], house.db._state.loaded.normal.relations["edge"])
    latest = house.warehouse.commit_at()
    assert latest is not None
    new = NewCommit(latest.number, latest.payload, {})
    empty = rows.slice(0, 0)
    house.warehouse.commit(
        new, {name: RelationDelta(rows, empty) for name in ("edge", "edge•text")}
    )
    assert {each.relation for each in found(house)} == {"edge", "edge•text", "path"} - {"path"}
    assert not repair(house.warehouse).findings
    house.db.refresh()
    assert state(house.db) == house.seen[latest.number]


def test_counts_of_rows(house: House) -> None:
    run(house, "UPDATE corollary_changes SET added = added + 1 WHERE relation = 'node'")
    assert {each.relation for each in found(house)} >= {"node"}


def test_a_commit_is_missing(house: House) -> None:
    last = house.db.commits
    for table in ("corollary_changes", "corollary_indexes", "corollary_snapshots"):
        run(house, f"DELETE FROM {table} WHERE commit_number = ?", last - 2)
    run(house, "DELETE FROM corollary_commits WHERE number = ?", last - 2)
    assert FindingKind.CATALOG in {each.kind for each in found(house)}


def flip_first_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(each ^ 0xFF for each in data[4:40])
    path.write_bytes(bytes(data))


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("harm", [flip_first_page, truncate, Path.unlink])
def test_a_published_table(house: House, harm: Callable[[Path], object]) -> None:
    for file in (house.root / "tables" / "path").glob("*.parquet"):
        harm(file)
    assert {each.kind for each in found(house)} == {FindingKind.TABLE}
    demand_mended(house, FindingKind.TABLE)


def test_a_damaged_catalog(house: House) -> None:
    house.close()
    path = house.root / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    for at in range(8 * 4096, len(data), 4096):
        data[at : at + 64] = b"\xff" * 64
    path.write_bytes(bytes(data))
    with pytest.raises(WarehouseError, match="restore the warehouse from a backup"):
        verify(warehouse.Warehouse.open(house.place, create=False))


def test_orphans_are_no_finding(house: House) -> None:
    durable_files.write(house.root, "data/nobody/0.parquet", b"loose")
    assert not found(house)


def test_while_gc_takes_things_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    real, once = durable_files.memory_map, [True]

    def meanwhile(path: Path) -> Any:
        if once:
            once.clear()
            collect(house.warehouse, Retention(commits=1))
        return real(path)

    monkeypatch.setattr(durable_files, "memory_map", meanwhile)
    assert not found(house)
    assert not once


def test_without_a_commit(place: str) -> None:
    with corollary.open(place) as db:
        assert db._store is not None
        assert not verify(db._store.warehouse).findings


@pytest.mark.slow
def test_on_either_catalog(place: str) -> None:
    either = House(place, 5)
    either.change(5)
    either.fold()
    either.change(5)
    either.demand_sound()
    for index in either.root.glob("data/*/index-*"):
        flip(index)
    for snapshot in either.root.glob("data/*/snapshot-*"):
        snapshot.unlink()
    for commit in commits_of(either, "path")[-2:]:
        run(
            either,
            "UPDATE corollary_changes SET checksum = '0'"
            " WHERE commit_number = ? AND relation = 'path'",
            commit,
        )
    report = repair(either.warehouse)
    assert not report.findings
    assert {each.kind for each in report.repaired} >= {
        FindingKind.INDEX,
        FindingKind.SNAPSHOT,
        FindingKind.CHANGE,
    }
    with corollary.open(place) as fresh:
        for number, seen in either.seen.items():
            assert state(fresh.at(number)) == seen
    either.close()


@pytest.mark.slow
def test_every_row_that_names_a_file_is_checked(house: House) -> None:
    """Whatever file is lost, something is found."""
    house.close()
    good = house.root.with_name("good")
    house.root.rename(good)
    with warehouse.Warehouse.open(good, create=False).catalog.read_transaction() as connection:
        tables = ("corollary_changes", "corollary_snapshots", "corollary_indexes")
        rows = [connection.column(f"SELECT path FROM {each}") for each in tables]
    named = sorted({path for listed in rows for path in listed if path})
    for path in named[:: max(1, len(named) // 8)]:
        shutil.copytree(good, house.root)
        (house.root / path).unlink()
        opened = warehouse.Warehouse.open(house.place, create=False)
        assert verify(opened).findings
        opened.close()
        shutil.rmtree(house.root)
    house.db = corollary.open(str(good))
