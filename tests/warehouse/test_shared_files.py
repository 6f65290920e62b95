"""Machines that share an object store and no directory: what tasks hand to one another is there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.upkeep import retention
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.engines import scratch_directory
from corollary.engines.spark import resources, stratum
from corollary.engines.spark.jobs import Requests, Task
from corollary.engines.spark.relation import (
    change_files,
    handle,
    open_partition,
    shared_files,
    source,
)
from corollary.engines.spark.relation import files as partition_files
from corollary.warehouse.files.object_path import ObjectPath
from support.postgresql_server import Server
from support.processes.object_store_server import ObjectStoreServer
from support.spark.in_process_partitions import InProcess, run_here, share_out
from support.warehouse_scenarios import store_of

pytestmark = pytest.mark.integration

PROGRAM = """
.decl edge(x: number, y: number)
.decl name(x: number, text: symbol)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl reached(text: symbol, n: number)
reached(t, n) :- name(x, t), n = count : { reach(x, _) }.
"""
RELATIONS = ("edge", "name", "reach", "reached")
EDGES = [(n, n + 1) for n in range(12)] + [(n, n // 2) for n in range(0, 12, 5)]
CHANGES: list[tuple[list[Any], list[Any]]] = [
    ([(3, 9)], [EDGES[4], EDGES[8]]),
    ([EDGES[4]], [(3, 9), EDGES[2]]),
]


class Machines:
    """A driver and two machines for its tasks; who works sees the directory of no other.

    Attributes:
        here: a database of the local engine.
        tasks: how many tasks each machine has run.
    """

    def __init__(self, place: Path) -> None:
        self.here = corollary.open(None, engine="local")
        self._paths = {each: place / each for each in ("driver", "first", "second")}
        self._states: dict[str, Any] = {each: ({}, {}, {}) for each in ("first", "second")}
        self.tasks = dict.fromkeys(self._states, 0)
        for each in self._paths.values():
            each.mkdir()

    def run(self, task: Task, requests: Requests, title: str) -> list[bytes]:
        """Run tasks on one machine and the other."""
        found = []
        for number in requests:
            machine = ("first", "second")[(number + sum(self.tasks.values())) % 2]
            self.tasks[machine] += 1
            with self._on(machine):
                found += run_here(task, {number: requests[number]}, title)
        return found

    @contextmanager
    def _on(self, machine: str) -> Iterator[None]:
        """Be on a machine: with what it knows, and without what others have open or on disk."""
        others = [path for name, path in self._paths.items() if name != machine]
        with pytest.MonkeyPatch.context() as patch:
            names = ("_directories", "_origins", "_unchecked")
            for name, known in zip(names, self._states[machine], strict=True):
                patch.setattr(shared_files, name, known)
            patch.setattr(open_partition, "_open", type(open_partition._open)())
            patch.setattr(tempfile, "tempdir", str(self._paths[machine]))
            patch.setenv("SPARK_LOCAL_DIRS", str(self._paths[machine]))
            change_files._read_changes.cache_clear()
            for each in others:
                each.rename(each.with_suffix(".hidden"))
            try:
                yield
            finally:
                for each in others:
                    each.with_suffix(".hidden").rename(each)
                change_files._read_changes.cache_clear()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines(tmp_path)
    share_out(monkeypatch, shares=2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "driver"))
    monkeypatch.setattr(InProcess, "_run_tasks", lambda _, *given: made.run(*given))
    monkeypatch.setattr(resources, "may_leave_machine", lambda _: True)
    for module, name in (
        (handle, "DISTRIBUTED_MIN_TUPLES"),
        (stratum, "INLINE_MAX_TUPLES"),
        (source, "BUILD_MIN_TUPLES"),
        (partition_files, "FOLD_MIN_TUPLES"),
    ):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(partition_files, "MERGE_MIN_FILES", 3)
    return made


def change(database: Any, added: list[Any], removed: list[Any]) -> None:
    with database.transaction() as tx:
        tx.delete("edge", removed)
        tx.insert("edge", added)


def compare(there: Any, here: Any) -> None:
    for name in RELATIONS:
        one, two = (sorted(each.relation(name).rows()) for each in (there, here))
        assert one == two, name


def scratch_objects(database: Any) -> list[ObjectPath]:
    root = store_of(database).warehouse.root
    return [path for path, _ in (root / "scratch").entries()]


def test_machines_share_the_store_only(
    machines: Machines, server: Server, object_store_server: ObjectStoreServer
) -> None:
    place = server.place(object_store_server.place())
    here = machines.here
    with corollary.open(place) as there:
        for database in (there, here):
            database.load(text=PROGRAM)
            with database.transaction() as tx:
                tx.insert("name", [(n, f"node {n}") for n in range(13)])
            change(database, EDGES, [])
        compare(there, here)
        store_of(there).fold(there._state)
        for each in CHANGES:
            for database in (there, here):
                change(database, *each)
            compare(there, here)
        before = len(scratch_objects(there))
        for _ in range(4):  # files that were merged or folded go from the store as well
            change(there, [(50, 51)], [])
            change(there, [], [(50, 51)])
        assert len(scratch_objects(there)) <= before + 8
        compare(there, here)
    with corollary.open(place) as there:  # the index has files that tasks fetch
        compare(there, here)
        for database in (there, here):
            change(database, [(12, 5)], CHANGES[0][1])
        compare(there, here)
        store_of(there).fold(there._state)
        assert not verify(store_of(there).warehouse).findings
        assert scratch_objects(there)
    with corollary.open(place) as there:
        compare(there, here)
    assert min(machines.tasks.values()) > 20
    assert not scratch_objects(there)


def test_what_a_killed_process_leaves(
    machines: Machines,
    server: Server,
    object_store_server: ObjectStoreServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`gc` removes it after a day in which nobody has written there."""
    place = server.place(object_store_server.place())
    monkeypatch.setattr(scratch_directory, "_remove_objects", lambda *_: None)
    with corollary.open(place) as there:
        there.load(text=PROGRAM)
        change(there, EDGES, [])
    with corollary.open(place, engine="local") as there:
        warehouse = store_of(there).warehouse
        collect(warehouse, Retention())
        assert scratch_objects(there)
        monkeypatch.setattr(retention, "DAY_SECONDS", -60.0)
        collect(warehouse, Retention())
        assert not scratch_objects(there)
        assert len(there.relation("edge")) == len(EDGES)
