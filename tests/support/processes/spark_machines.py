"""A cluster whose machines share an object store and no disk, and come and go; run as a program.

`PYTHONPATH=tests python -m support.processes.spark_machines` maintains a warehouse in an object
store on a standalone master with workers that have their own mounts: at the path of the driver's
temporary files each of them has a disk of its own. All is compared with what the local engine
gives, while workers are killed with their executors, and others are started.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.upkeep.verify import verify
from corollary.engines.spark import stratum
from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, source
from corollary.warehouse.files.object_path import ObjectPath
from support.postgresql_server import postgresql
from support.processes.object_store_server import environment, object_store_server
from support.spark.standalone_cluster import standalone_cluster
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl edge(x: number, y: number)
.decl weight(x: number, w: number)
.input weight(filename="{weights}", format=jsonl)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl total(x: number, n: number)
total(x, n) :- edge(x, _), n = sum w : {{ reach(x, y), weight(y, w) }}.
.output total
"""
RELATIONS = ("edge", "weight", "reach", "total")
NODES = 30
EDGES = [(n, n + 1) for n in range(NODES)] + [(n, n // 2) for n in range(0, NODES, 7)]
COMMIT_MAX_SECONDS = 180
"""No commit waits longer for executors that were lost; Spark notices within seconds."""


def change(database: Any, added: Any, removed: Any) -> float:
    """Commit a change of the edges; return how many seconds that took."""
    start = time.monotonic()
    with database.transaction() as transaction:
        transaction.delete("edge", removed)
        transaction.insert("edge", added)
    return time.monotonic() - start


def compare(there: Any, here: Any) -> None:
    """Hold all relations of two databases against each other."""
    for name in RELATIONS:
        one, two = (sorted(each.relation(name).rows()) for each in (there, here))
        assert one == two, name


def run(machine: Path) -> None:
    """Do everything; print how long the slowest commit took."""
    with object_store_server() as store, postgresql() as server:
        weights = "".join(f"[{n}, {n % 5}]\n" for n in range(NODES + 1)).encode()
        source_file = f"{store.place()}/weight.jsonl"
        bucket, _, key = source_file.removeprefix("s3://").partition("/")
        ObjectPath(f"s3://{bucket}", key).write_bytes(weights)
        place, text = server.place(store.place()), PROGRAM.format(weights=source_file)
        here = corollary.open(None, engine="local")
        os.environ |= {"TMPDIR": str(machine), "SPARK_LOCAL_DIRS": str(machine)}
        secrets = {f"spark.executorEnv.{k}": v for k, v in environment(store.url).items()}
        with (
            standalone_cluster(machine=machine) as cluster,
            cluster.session(**secrets) as spark,
        ):
            tempfile.tempdir = str(machine)
            steps = [
                (lambda: None, [(NODES, 3)], [EDGES[20]]),
                (cluster.kill_worker, [EDGES[20]], [EDGES[5], (NODES, 3)]),
                (cluster.add_worker, [EDGES[5]], [EDGES[11]]),
                (cluster.kill_worker, [EDGES[11]], [EDGES[25]]),
            ]
            with corollary.open(place, spark=spark, placement="partitions") as there:
                for database in (there, here):
                    database.load(text=text)
                change(there, spark.createDataFrame(EDGES, "x bigint, y bigint"), [])
                change(here, EDGES, [])
                compare(there, here)
                slowest = 0.0
                for happen, added, removed in steps:
                    happen()
                    slowest = max(slowest, change(there, added, removed))
                    change(here, added, removed)
                    compare(there, here)
                there.publish()
                root = store_of(there).warehouse.root
                assert next((root / "scratch").entries(1), None)
            with corollary.open(place, spark=spark, placement="partitions") as there:
                compare(there, here)
                assert not verify(store_of(there).warehouse).findings
            assert not next((root / "scratch").entries(1), None)
            (disk_of_last,) = [*Path(cluster._directory).glob("disk-2")]
            assert [*disk_of_last.rglob("corollary-*")], "its tasks have files on their own disk"
            assert slowest < COMMIT_MAX_SECONDS
        print(f"right, {slowest:.0f} s at most")


def main() -> None:
    """Let few tuples be treated as many are."""
    patch = pytest.MonkeyPatch()
    for module, name in (
        (handle, "DISTRIBUTED_MIN_TUPLES"),
        (stratum, "INLINE_MAX_TUPLES"),
        (source, "BUILD_MIN_TUPLES"),
        (partition_files, "FOLD_MIN_TUPLES"),
    ):
        patch.setattr(module, name, 1)
    with tempfile.TemporaryDirectory(prefix="corollary-machine-") as machine:
        run(Path(machine))


if __name__ == "__main__":
    main()
