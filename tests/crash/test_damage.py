"""Files that are torn, cut or altered: an error that names them, or the right answer."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from errno import EPERM
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.upkeep.retention import Retention, collect
from corollary.errors import CorollaryError, WarehouseError
from corollary.warehouse import warehouse
from support.figures import FIGURES
from support.maintained_database import apply, closure, delete, insert, opened
from support.selection import examples
from support.warehouse_scenarios import Seen, loose_files, store_of, stored

TEXT = f"""{closure(type_="number")}
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : {{ edge(x, _) }}.
.decl name(x: number, s: symbol)
"""
NEXT = ({"edge": [(3, 90), (90, 91)]}, {"edge": [(5, 6)]})
OTHER_NAMES = ("in the catalog", "The warehouse has format", "index of ", "dictionary")
"""What is said of rows of the catalog, and of an index that is found to be damaged later on."""
KINDS = {"changes": "[0-9]*.parquet", "snapshots": "snapshot-*.parquet", "index": "index-*"}

DAMAGED = examples(8, 25)
"""So many files of a kind are damaged, one at a time."""


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def zeroed(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data)) // 512 * 512
    return data[:at] + bytes(len(data[at : at + 512])) + data[at + 512 :]


def emptied(data: bytes, chance: random.Random) -> bytes:
    return b""


def swollen(data: bytes, chance: random.Random) -> bytes:
    return data + data[:100]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    cut,
    flip,
    flip,
    flip,
    zeroed,
    emptied,
    swollen,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Seen, Seen]:
    """A warehouse with files of all kinds, what it holds, and what it holds after one step more."""
    root = tmp_path_factory.mktemp("sound") / "warehouse"
    before, warehouse.INLINE_BYTES = warehouse.INLINE_BYTES, 1
    try:
        with opened(TEXT, place=str(root)) as db:
            insert(db, "edge", [(at, at + 1) for at in range(39)])
            insert(db, "edge", [(39, 40)])  # a change that is not all, so not a snapshot
            insert(db, "name", [(at, f"node {at}") for at in range(40)])
            store_of(db).fold(db._state)
            delete(db, "edge", [(20, 21)])
            insert(db, "name", [(41, "last")])
            holds = stored(db)
    finally:
        warehouse.INLINE_BYTES = before
    copy = root.with_name("after")
    shutil.copytree(root, copy)
    with corollary.open(copy) as db:
        apply(db, NEXT)
        return root, holds, stored(db)


def outcome(root: Path, sound: tuple[Path, Seen, Seen], names: tuple[str, ...]) -> str:
    """Open a warehouse, read everything, commit; return what came of it, unless it is wrong."""
    stage = "open"
    db = None
    try:
        db = corollary.open(root)
        stage = "read"
        assert stored(db) == sound[1], f"wrong tuples\n{root}"
        stage = "commit"
        apply(db, NEXT)
        assert stored(db) == sound[2], f"wrong tuples after a commit\n{root}"
    except CorollaryError as error:
        if isinstance(error, WarehouseError) and any(name in str(error) for name in names):
            return f"named at {stage}"
        raise
    finally:
        if db is not None:
            db.close()
    return "right"


def damaged(
    sound: tuple[Path, Seen, Seen], directory: Path, pattern: str, count: int, seed: int
) -> Counter[str]:
    """Damage one file at a time; return what came of it."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for number in range(count):
        root = directory / str(number)
        shutil.copytree(sound[0], root)
        file = chance.choice(sorted(root.rglob(pattern)))
        file.write_bytes(chance.choice(DAMAGES)(file.read_bytes(), chance))
        names = (str(file.relative_to(root)), f"{root}/data/", *OTHER_NAMES)
        counts[outcome(root, sound, names)] += 1
        FIGURES["damaged files"] += 1
        shutil.rmtree(root)
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file(kind: str, sound: Any, tmp_path: Path) -> None:
    assert damaged(sound, tmp_path, KINDS[kind], DAMAGED, 1).total() == DAMAGED


def test_a_damaged_catalog(sound: Any, tmp_path: Path) -> None:
    assert damaged(sound, tmp_path, "catalog.sqlite", DAMAGED, 2).total() == DAMAGED


@pytest.mark.parametrize("pattern", [KINDS["changes"], "catalog.sqlite"])
def test_an_emptied_file(pattern: str, sound: Any, tmp_path: Path) -> None:
    """Among the files of changes are some that nothing needs after the fold, but not all."""
    found: Counter[str] = Counter()
    for number, name in enumerate(sorted(sound[0].rglob(pattern))):
        root = tmp_path / str(number)
        shutil.copytree(sound[0], root)
        file = root / name.relative_to(sound[0])
        file.write_bytes(b"")
        found[outcome(root, sound, (str(file.relative_to(root)),))] += 1
    assert found["named at open"]
    assert set(found) <= {"named at open", "right"}


@pytest.mark.crash
@pytest.mark.parametrize("pattern", [*KINDS.values(), "catalog.sqlite"])
def test_damage_of_all_kinds(pattern: str, sound: Any, tmp_path: Path) -> None:
    damaged(sound, tmp_path, pattern, 1_000, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file(kind: str, sound: Any, tmp_path: Path) -> None:
    """Index files are made anew; without the others nothing is said at all."""
    for number, _ in enumerate(sorted(sound[0].rglob(KINDS[kind]))):
        root = tmp_path / str(number)
        shutil.copytree(sound[0], root)
        file = sorted(root.rglob(KINDS[kind]))[number]
        file.unlink()
        found = outcome(root, sound, (file.name,))
        assert found == "right" if kind == "index" else found in ("right", "named at open")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_catalog_that_is_lost(is_there: bool, sound: Any, tmp_path: Path) -> None:
    """An empty warehouse is not what somebody who has data files wants to see."""
    root = tmp_path / "warehouse"
    shutil.copytree(sound[0], root)
    for file in root.glob("catalog.sqlite*"):
        file.unlink()
    if is_there:
        (root / "catalog.sqlite").touch()
    assert outcome(root, sound, ("catalog.sqlite",)) == "named at open"
    for file in root.rglob("*.parquet"):
        assert file.stat().st_size


def test_a_change_that_cannot_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that cannot catch up stays where it is, as a whole."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    one = opened(TEXT, place=str(tmp_path))
    insert(one, "edge", [(1, 2), (2, 3)])
    other = corollary.open(tmp_path)
    before = stored(other), other.commits
    known = set(tmp_path.rglob("*.parquet"))
    apply(one, ({"edge": [(3, 4)]}, {"edge": [(1, 2)]}))
    new = sorted(set(tmp_path.rglob("*.parquet")) - known)
    assert len(new) > 2
    for file in new:
        data = file.read_bytes()
        file.write_bytes(data[:-9])
        with pytest.raises(WarehouseError, match=file.name):
            other.refresh()
        assert (stored(other), other.commits) == before, file.name
        file.write_bytes(data)
    other.refresh()
    assert stored(other) == stored(one)
    for db in (one, other):
        db.close()


def test_a_catalog_without_its_format(sound: Any, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    shutil.copytree(sound[0], root)
    with closing(sqlite3.connect(root / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("update corollary_meta set name = 'gormat' where name = 'format'")
    with pytest.raises(WarehouseError, match="C0934"):
        corollary.open(root)


def test_a_file_that_cannot_be_removed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(EPERM, "not permitted", str(path))

    with opened(TEXT, place=str(tmp_path / "warehouse")) as db:
        for at in range(4):
            insert(db, "edge", [(at, at + 1)])
            with monkeypatch.context() as patch:
                patch.setattr(Path, "unlink", refused)
                store_of(db).fold(db._state)
        assert loose_files(db)
        collect(store_of(db).warehouse, Retention(commits=1))
        assert not loose_files(db)
