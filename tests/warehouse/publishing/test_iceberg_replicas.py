"""Replicas in Iceberg, with a catalog in SQLite: values, snapshots, files, kills."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config

import corollary
from corollary.database.database import Database
from corollary.warehouse.publishing import iceberg_replica
from support.processes.replica_writer import start_replica_writer

pytestmark = pytest.mark.integration

EDGES = """
.decl edge(x: number, y: symbol)
.decl done(number: number)
.decl shown(x: number, y: symbol)
shown(x, y) :- edge(x, y).
.output shown(IO=iceberg, catalog=lake, table="graph.shown")
"""
BATCHES, ROWS = 12, 6000
"""12 batches of 6,000 rows that come, and half of which go: 105,000 changes."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """The catalog `lake`, as pyiceberg is configured for it."""
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.sqlite")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{tmp_path}/lake")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # read once for each process
    return load_catalog("lake")


def opened(tmp_path: Path, program: str) -> Database:
    db = corollary.open(tmp_path / "w", engine="local", publish="commit")
    db.load(text=program)
    return db


def write(db: Database, relation: str, added: Any = (), removed: Any = ()) -> list[str]:
    """Commit a change; return the codes of problems."""
    with db.transaction() as tx:
        tx.delete(relation, list(removed))
        tx.insert(relation, list(added))
    assert tx.published is not None
    return [each.code for each in tx.published.problems]


def rows_of(lake: Catalog, name: str = "graph.shown") -> list[tuple[Any, ...]]:
    found = lake.load_table(name).scan().to_arrow().to_pylist()
    return [tuple(each.values()) for each in found]


def files_of(lake: Catalog, name: str = "graph.shown") -> set[str]:
    return {each.file.file_path for each in lake.load_table(name).scan().plan_files()}


@pytest.mark.smoke
def test_values_of_all_types(lake: Catalog, tmp_path: Path) -> None:
    program = """
.decl t(a: symbol, b: symbol?, n: number, u: unsigned, f: float, d: decimal(12,3), k: bool,
        day: date, at: timestamp?, tags: [symbol], s: {p: number, q: symbol?}, raw: binary?)
.output t(IO=iceberg, catalog=lake)
"""
    at = datetime(2026, 11, 15, 8, 0, 0, 123456, UTC)
    one = (
        *("a", "", -(2**63), 2**64 - 1, 0.1, Decimal("-123456789.125"), True),
        *(date(2026, 2, 28), at, ["x", "y"], {"p": 7, "q": None}, b"\x00\xff"),
    )
    two = (
        *("", None, 0, 0, float("inf"), Decimal("0.000"), False),
        *(date(1, 1, 1), None, [], {"p": -1, "q": "ä"}, None),
    )
    with opened(tmp_path, program) as db:
        assert write(db, "t", [one, two]) == []
        assert sorted(rows_of(lake, "default.t"), key=repr) == sorted([one, two], key=repr)
        assert write(db, "t", [], [one]) == []
        assert rows_of(lake, "default.t") == [two]


def test_a_change_is_one_snapshot_and_leaves_other_files(lake: Catalog, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        for first in (0, 1000, 2000):
            write(db, "edge", [(first + at, "a") for at in range(100)])
        before = files_of(lake)
        assert len(before) == 3
        write(db, "edge", [(5000, "b")], [(1007, "a")])
        after = files_of(lake)
        assert len(before & after) == 2
        table = lake.load_table("graph.shown")
        summary = table.current_snapshot().summary  # type: ignore[union-attr]
        assert summary is not None
        assert summary["corollary.commit"] == str(db.commits)
        assert summary["corollary.rows"] == "300"
        assert len(table.snapshots()) == 5  # the table began empty
        assert Counter(rows_of(lake)) == Counter(db.relation("shown").rows())


def test_small_files_are_merged(
    lake: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_replica, "SMALL_FILES_MAX", 2)
    with opened(tmp_path, EDGES) as db:
        for at in range(5):
            write(db, "edge", [(at, "a")])
        assert len(files_of(lake)) == 2
        assert Counter(rows_of(lake)) == Counter(db.relation("shown").rows())


def test_what_others_write_is_not_overwritten(lake: Catalog, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        table = lake.load_table("graph.shown")
        mine = pa.table({"x": [7], "y": ["mine"]}).cast(table.schema().as_arrow())
        table.append(mine)
        assert write(db, "edge", [(2, "b")]) == ["C0979"]
        assert sorted(rows_of(lake)) == [(1, "a"), (7, "mine")]
        lake.drop_table("graph.shown")
        db.publish()
        assert sorted(rows_of(lake)) == [(1, "a"), (2, "b")]


def test_other_columns_make_a_new_table(lake: Catalog, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        new = EDGES.replace("shown(x: number, y: symbol)", "shown(x: number)")
        db.load(text=new.replace("shown(x, y) :-", "shown(x) :-"))
        assert rows_of(lake) == [(1,)]


def test_100_000_changes_with_kills(lake: Catalog, tmp_path: Path) -> None:
    """Our process dies twice, after a publication and anywhere."""
    opened(tmp_path, EDGES).close()
    faults = ["after_publish:3", ""]
    for number, fault in enumerate([*faults, ""]):
        process = start_replica_writer(tmp_path / "w", BATCHES, ROWS, fault)
        assert process.stdout is not None
        if not fault and number < len(faults):
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        assert process.returncode == (0 if number == len(faults) else -signal.SIGKILL)
    with corollary.open(tmp_path / "w", engine="local") as db:
        result = db.publish()
        assert result is not None
        assert result.problems == ()
        assert Counter(rows_of(lake)) == Counter(db.relation("shown").rows())
        assert len(rows_of(lake)) == BATCHES * ROWS - (BATCHES - 1) * ROWS // 2
