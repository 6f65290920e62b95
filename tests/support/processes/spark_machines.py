"""A cluster whose machines share an object store and no disk, and come and go; run as a program.

`PYTHONPATH=tests python -m support.processes.spark_machines` maintains a warehouse in an object
store on a standalone master with workers that have their own mounts: at the path of the driver's
temporary files each of them has a disk of its own. All is compared with what the local engine
gives, while workers are killed with their executors, one of them by a task in the middle of a
change, and others are started, which get tasks. A stream reads the changes of a relation and is
written into another one.
"""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
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
from support.spark.standalone_cluster import StandaloneCluster, standalone_cluster
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl edge(x: number, y: number)
.decl weight(x: number, w: number)
.input weight(filename="weight.jsonl", format=jsonl)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl total(x: number, n: number)
total(x, n) :- edge(x, _), n = sum w : { reach(x, y), weight(y, w) }.
.output total
"""
RELATIONS = ("edge", "weight", "reach", "total")
NODES = 30
EDGES = [(n, n + 1) for n in range(NODES)] + [(n, n // 2) for n in range(0, NODES, 7)]
WEIGHTS = [(n, n % 5) for n in range(NODES + 1)]
EDGES_OF_STREAM = [(n, w + 100) for n, w in WEIGHTS]
PLANS = "corollary.engines.spark.stratum:RunStratum.run"
"""In the middle of this, a task kills the worker that it runs on."""
COMMIT_MAX_SECONDS = 180
"""No commit waits longer for executors that were lost; Spark notices within seconds."""


def change(database: Any, added: Any, removed: Any) -> float:
    """Commit a change of the edges; return how many seconds that took."""
    start = time.monotonic()
    with database.transaction() as transaction:
        transaction.delete("edge", removed)
        transaction.insert("edge", added)
    return time.monotonic() - start


def add_worker(cluster: StandaloneCluster, spark: Any) -> None:
    """Start one more worker, and wait until the driver knows its executor beside the other one."""
    cluster.add_worker()
    status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    last = time.monotonic() + COMMIT_MAX_SECONDS
    while status().size() != 3:  # the driver is one of them
        assert time.monotonic() < last, status().keySet().mkString(" ")
        time.sleep(0.1)


def follow(spark: Any, database: Any, place: str, checkpoint: Path) -> None:
    """Make edges of the weights, by a stream of tasks; its checkpoint is on the driver's disk."""
    options = {"relation": "weight", "readChangeFeed": "true", "startingVersion": 0}
    changes = spark.readStream.format("corollary").options(**options).load(place)
    frame = changes.selectExpr("x", "w + 100 AS y")
    once = {"availableNow": True}
    query = database.stream(frame, into="edge", checkpoint=checkpoint, trigger=once)
    query.awaitTermination()


def compare(there: Any, here: Any) -> None:
    """Hold all relations of two databases against each other."""
    for name in RELATIONS:
        one, two = (sorted(each.relation(name).rows()) for each in (there, here))
        assert one == two, (name, {*one} ^ {*two})
        assert one, name


def run(machine: Path) -> None:
    """Do everything; print how long the slowest commit took."""
    with object_store_server() as store, postgresql() as server:
        weights = "".join(f"[{n}, {w}]\n" for n, w in WEIGHTS).encode()
        place, facts = server.place(store.place()), store.place()
        bucket, _, key = facts.removeprefix("s3://").partition("/")
        ObjectPath(f"s3://{bucket}", f"{key}/weight.jsonl").write_bytes(weights)
        here = corollary.open(None, engine="local")
        os.environ |= {"TMPDIR": str(machine), "SPARK_LOCAL_DIRS": str(machine)}
        secrets = {f"spark.executorEnv.{k}": v for k, v in environment(store.url).items()}
        with (
            standalone_cluster(machine=machine, points=[PLANS]) as cluster,
            cluster.session(**secrets) as spark,
        ):
            tempfile.tempdir = str(machine)
            kill_in_the_middle = partial(cluster.kill_in, PLANS, with_worker=True)
            add = partial(add_worker, cluster, spark)
            steps = [
                (lambda: None, [(NODES, 3)], [EDGES[20]]),
                (kill_in_the_middle, [EDGES[20]], [EDGES[5], (NODES, 3)]),
                (add, [EDGES[5]], [EDGES[11]]),
                (cluster.kill_worker, [EDGES[11]], [EDGES[25]]),
            ]
            with corollary.open(place, spark=spark, placement="partitions") as there:
                program = machine / "program.dl"
                program.write_text(PROGRAM)
                there.run(program, facts=facts)
                here.load(text=PROGRAM)
                with here.transaction() as transaction:
                    transaction.insert("weight", WEIGHTS)
                change(there, spark.createDataFrame(EDGES, "x bigint, y bigint"), [])
                change(here, EDGES, [])
                compare(there, here)
                slowest = 0.0
                for happen, added, removed in steps:
                    happen()
                    slowest = max(slowest, change(there, added, removed))
                    assert not cluster.is_waiting, "no task came to the point"
                    change(here, added, removed)
                    compare(there, here)
                    if happen is add:
                        disk = Path(cluster._directory, "disk-2")
                        assert [*disk.rglob("corollary-*")], "the new one has tasks"
                follow(spark, there, place, machine / "checkpoint")
                change(here, EDGES_OF_STREAM, [])
                compare(there, here)
                there.publish()
                root = store_of(there).warehouse.root
                assert next((root / "scratch").entries(1), None)
            with corollary.open(place, spark=spark, placement="partitions") as there:
                compare(there, here)
                assert not verify(store_of(there).warehouse).findings
            assert not next((root / "scratch").entries(1), None)
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
