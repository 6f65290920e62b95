"""Python workers that are killed in the middle of a load, a change, a fold and a publication."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import state_of
from corollary.database.upkeep.verify import verify
from corollary.engines.spark.jobs import Requests, Task
from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, source
from support.warehouse_scenarios import store_of

pytestmark = pytest.mark.spark

PROGRAM = """
.decl sale(id: unsigned, shop: symbol)
.decl sold(shop: symbol, n: number)
sold(s, n) :- sale(_, s), n = count : { sale(_, s) }.
.output sale
"""
SALES = [(n, f"shop {n % 7}") for n in range(300)]


def mortal(task: Task, marker: Path) -> Task:
    """Return a task that kills its process when its work is done, the first time."""

    def run(request: bytes) -> bytes:
        result = task(request)
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return result
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return run


def test_workers_are_lost(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have written is written again by others: nothing is lost, nothing doubled."""
    for module, name in (
        (handle, "DISTRIBUTED_MIN_TUPLES"),
        (source, "BUILD_MIN_TUPLES"),
        (partition_files, "FOLD_MIN_TUPLES"),
    ):
        monkeypatch.setattr(module, name, 1)
    marker = tmp_path / "idle"
    marker.touch()
    with corollary.open(tmp_path / "w", spark=spark, placement="partitions") as db:
        engine: Any = state_of(db).engine
        run_tasks = engine._run_tasks

        def run_mortal(task: Task, some: Requests, title: str) -> list[bytes]:
            return run_tasks(mortal(task, marker), some, title)

        monkeypatch.setattr(engine, "_run_tasks", run_mortal)
        db.load(text=PROGRAM)

        def insert() -> None:
            with db.transaction() as tx:
                tx.insert("sale", SALES[:-1])

        def change() -> None:
            with db.transaction() as tx:
                tx.insert("sale", SALES[-1:])
                tx.delete("sale", SALES[:2])

        def fold() -> None:
            store_of(db).fold(db._state)

        every = {"load": insert, "publish": db.publish, "change": change, "fold": fold}
        for name, work in every.items():
            marker = tmp_path / name
            work()
            assert marker.exists(), f"no worker was lost: {name}"
        assert sorted(db.relation("sale").rows()) == SALES[2:]
        db.publish()
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert sorted(db.relation("sale").rows()) == SALES[2:]
        assert sum(n for _, n in db.relation("sold").rows()) == len(SALES) - 2
        assert not verify(store_of(db).warehouse).findings
    published = to_python(DeltaTable(str(tmp_path / "w/tables/sale")).to_pyarrow_table())
    assert sorted(published) == SALES[2:]
