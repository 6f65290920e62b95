"""Replicas, whatever they are: positions, changes of definitions, lost history, retries, lag.

The replica here is a file of rows and a position that are replaced at once.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.analysis.replicas import ReplicaSpec
from corollary.core.program import Relation
from corollary.database.database import Database, warehouse_of
from corollary.database.publishing import PublishSchedule, PublishTime
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import ReplicaState, status
from corollary.warehouse.publishing import outputs, replica_outputs
from corollary.warehouse.publishing.replica import ReplicaPosition, unreachable_replica
from corollary.warehouse.warehouse import RelationDelta
from support.command_line import INPUT, cli, put

PROGRAM = """
.decl edge(x: number, y: number)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, y) :- reach(x, z), edge(z, y).
.output reach(IO=postgresql, connection=shop)
"""
Rows = Counter[tuple[Any, ...]]


class FileReplica:
    """Rows and a position in a file; every use is noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_down = False
        self.uses: list[str] = []

    def _held(self) -> tuple[Rows, ReplicaPosition] | None:
        return pickle.loads(self.path.read_bytes()) if self.path.exists() else None

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        held = self._held()
        return [] if held is None else sorted(held[0].elements())

    @contextmanager
    def open(self) -> Iterator[FileReplica]:
        if self.is_down:
            raise unreachable_replica("it", "no route")
        yield self

    def position(self, recorded: ReplicaPosition | None) -> ReplicaPosition | None:
        held = self._held()
        return None if held is None else held[1]

    def apply(self, change: RelationDelta, position: ReplicaPosition) -> None:
        held = self._held()
        assert held is not None
        rows = held[0]
        rows.subtract(_rows(change.removed))
        assert min(rows.values(), default=0) >= 0
        rows.update(_rows(change.added))
        self._write(rows, position)
        self.uses.append(f"apply +{change.added.num_rows} -{change.removed.num_rows}")

    def refresh(self, rows: pa.Table, position: ReplicaPosition) -> tuple[int, int]:
        self._write(Counter(_rows(rows)), position)
        self.uses.append(f"refresh {rows.num_rows}")
        return rows.num_rows, 0

    def _write(self, rows: Rows, position: ReplicaPosition) -> None:
        assert position.rows == rows.total()
        self.path.write_bytes(pickle.dumps((rows, position)))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(each.to_pylist() for each in table.columns), strict=True))


@pytest.fixture
def replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileReplica:
    made = FileReplica(tmp_path / "replica")

    def replica_of(relation: Relation, spec: ReplicaSpec, warehouse: str) -> FileReplica:
        assert (relation.name, str(spec)) == ("reach", "postgresql shop reach"), warehouse
        return made

    monkeypatch.setattr(replica_outputs, "_replica_of", replica_of)
    return made


@pytest.fixture
def db(tmp_path: Path, replica: FileReplica) -> Iterator[Database]:
    found = corollary.open(tmp_path / "w", engine="local", publish="commit")
    found.load(text=PROGRAM)
    replica.uses.clear()
    yield found
    found.close()


def change(db: Database, added: str = "", removed: str = "") -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(int(a), int(b)) for a, b in added.split()])
        tx.delete("edge", [(int(a), int(b)) for a, b in removed.split()])


def state(db: Database) -> ReplicaState:
    found = warehouse_of(db)
    assert found is not None
    (only,) = status(found).replicas
    return only


def cut_history(db: Database) -> None:
    found = warehouse_of(db)
    assert found is not None
    collect(found, Retention(commits=1))


def test_a_replica_follows_commits_and_has_no_table_of_its_own(
    db: Database, replica: FileReplica, tmp_path: Path
) -> None:
    change(db, "12 23")
    change(db, "34", "12")
    assert replica.rows == [(2, 3), (2, 4), (3, 4)]
    assert replica.uses == ["apply +3 -0", "apply +2 -2"]
    assert state(db) == ReplicaState("reach", "postgresql shop reach", 3, 0, is_output=True)
    assert not (tmp_path / "w" / "tables" / "reach").exists()


def test_a_view_with_another_definition_says_what_goes(db: Database, replica: FileReplica) -> None:
    change(db, "12 23")
    db.load(text=PROGRAM.replace("reach(x, y) :- reach(x, z), edge(z, y).", ""))
    db.load(text=PROGRAM.replace("reach(x, y) :- edge(x, y).", "reach(y, x) :- edge(x, y)."))
    assert replica.uses == ["apply +3 -0", "apply +0 -1", "apply +4 -1"]
    assert replica.rows == [(2, 1), (2, 2), (2, 3), (3, 2), (3, 3)]


def test_a_view_that_was_dropped_for_a_while_says_what_goes(
    db: Database, replica: FileReplica
) -> None:
    """It is recorded in full then: the contents before and after are compared."""
    change(db, "12 23")
    facts = PROGRAM.partition(".decl reach")[0]
    db.load(text=facts)
    change(db, "34", "12")
    db.load(text=PROGRAM)
    assert replica.uses == ["apply +3 -0", "apply +2 -2"]
    assert replica.rows == [(2, 3), (2, 4), (3, 4)]


def test_other_columns_and_a_commit_that_is_gone_refresh(
    db: Database, replica: FileReplica, tmp_path: Path
) -> None:
    change(db, "12")
    db.load(text=PROGRAM.replace("reach(x: number, y: number)", "reach(x: number, z: number)"))
    assert replica.uses == ["apply +1 -0", "refresh 1"]
    change(db, "23")
    db.close()
    with corollary.open(tmp_path / "v", engine="local") as other:
        other.load(text=PROGRAM)
        result = other.publish()
        assert result is not None
        assert [each.code for each in result.problems] == ["C0979"]


def test_history_that_is_gone_refreshes_what_lacks_it_only(
    db: Database, replica: FileReplica
) -> None:
    change(db, "12")
    db.load(text=PROGRAM + ".decl other(x: number)")
    with db.transaction() as tx:
        tx.insert("other", [(1,)])
    cut_history(db)
    db.publish()
    change(db, "23")
    assert replica.uses == ["apply +1 -0", "apply +2 -0"]
    replica.is_down = True
    change(db, "34")
    change(db, "45")
    cut_history(db)
    replica.is_down = False
    with corollary.open(warehouse_of(db).root, engine="local") as again:  # type: ignore[union-attr]
        result = again.publish()
    assert result is not None
    assert [each.reason for each in result.published] == [
        "the changes after commit 5 are not kept any more"
    ]
    assert replica.uses[2:] == ["refresh 10"]
    assert replica.rows == sorted(db.relation("reach").rows())


def test_what_cannot_be_reached_is_tried_later_and_catches_up(
    db: Database, replica: FileReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(outputs.time, "monotonic", lambda: now[0])
    replica.is_down = True
    change(db, "12")
    result = db.publish()
    assert result is not None
    assert (result.problems, result.retry_seconds) == ((), 1.0)  # left alone
    found = state(db)
    assert (found.commit, found.lag) == (1, 1)
    assert found.error == "`it` cannot be brought forward: no route."
    waits = []
    for _ in range(8):
        now[0] += result.retry_seconds or 0.0
        result = db.publish()
        assert result is not None
        assert [each.code for each in result.problems] == ["C0949"]
        waits.append(result.retry_seconds)
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    replica.is_down = False
    now[0] += 60.0
    change(db, "23")
    assert replica.rows == [(1, 2), (1, 3), (2, 3)]
    assert replica.uses == ["apply +3 -0"]
    assert (state(db).lag, state(db).error) == (0, None)


def test_a_server_tries_again_without_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("corollary.database.publishing.time.monotonic", lambda: now[0])
    schedule = PublishSchedule(PublishTime.SECOND)
    schedule.note_published(8.0)
    assert schedule.wait == 8.0
    schedule.is_behind = True  # other outputs do not wait for the one that is down
    assert schedule.wait == 1.0
    schedule.note_published(None)
    assert schedule.wait is None


def test_rows_with_copies(tmp_path: Path, replica: FileReplica) -> None:
    with corollary.open(tmp_path / "w", engine="local", publish="commit") as db:
        db.sql("CREATE TABLE edge (x BIGINT NOT NULL)")
        db.sql(
            "CREATE MATERIALIZED VIEW reach TBLPROPERTIES ('corollary.io' = 'postgresql', "
            "'corollary.connection' = 'shop') AS SELECT x FROM edge"
        )
        db.sql("INSERT INTO edge VALUES (1), (1), (2)")
        db.sql("DELETE FROM edge WHERE x = 1")
        db.sql("INSERT INTO edge VALUES (2)")
    assert replica.rows == [(2,), (2,)]


def test_a_run_without_a_warehouse_is_refused(tmp_path: Path) -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=PROGRAM)  # in memory there is nothing to follow
        assert db.publish() is None
    program = put(f"{tmp_path}/p.dl", PROGRAM.replace(".output reach", ".input edge .output reach"))
    put(f"{tmp_path}/edge.facts", "1\t2\n")
    result = cli("run", str(program), "-F", str(tmp_path))
    assert result.exit_code == INPUT
    assert "C0998" in result.stderr


def test_a_connection_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.load(text=PROGRAM)
        result = db.publish()
        assert result is not None
        (problem,) = result.problems
        assert (problem.code, problem.severity) == ("C0978", "warning")
        assert "COROLLARY_CONNECTION_SHOP" in problem.message
