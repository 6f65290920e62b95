"""`format("corollary")` in a session: found without registration, read and written by tasks."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.database.database import Database, warehouse_of
from corollary.serve.tokens import TokenStore
from support.paths import TESTS
from support.serve.server_process import server_process
from support.spark.source_matrix import check_matrix

PROGRAM = """
.type Pair = [a: number, b: unsigned]
.type Shape = Line {length: number} | Dot {}
.decl edge(x: number, y: symbol?) key(x)
.decl far(x: number, y: symbol?)
far(x, y) :- edge(x, y), x > 1.
.decl seen(x: number) virtual
seen(x) :- edge(x, _).
.decl copies(x: number) bag
.decl records(x: number, pair: Pair, shape: Shape)
.decl open()
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with corollary.open(tmp_path / "w", engine="local") as found:
        found.load(text=PROGRAM)
        with found.transaction() as tx:
            tx.insert("edge", [(1, "a"), (2, "b"), (3, None)])
            tx.insert("copies", [(1,), (1,), (2,)])
            tx.insert("records", [(1, (7, 2**64 - 1), ("Line", 3)), (2, (8, 0), ("Dot",))])
            tx.insert("open", [()])
        with found.transaction() as tx:
            tx.delete("edge", [(1, "a")])
            tx.insert("edge", [(1, "c"), (4, "d")])
            tx.delete("copies", [(1,)])
        yield found


def load(spark: Any, db: Database, **options: Any) -> Any:
    return spark.read.format("corollary").options(**options).load(path_of(db))


def path_of(db: Database) -> str:
    assert db._store.open_arguments is not None
    return str(db._store.open_arguments.location)


def rows(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


@pytest.mark.oldest
def test_relations_versions_and_questions(spark: Any, db: Database) -> None:
    for name in ("edge", "far", "seen", "copies"):
        assert rows(load(spark, db, relation=name)) == Counter(db.relation(name).rows()), name
    assert rows(load(spark, db, relation="open")) == Counter([(True,)])
    earlier = Counter(db.at(2).relation("edge").rows())
    assert rows(load(spark, db, relation="edge", versionAsOf=2)) == earlier
    assert rows(load(spark, db, query="far(x, y), x > 3")) == Counter([(4, "d")])
    counted = load(spark, db, query="SELECT COUNT(*) AS n FROM edge")
    assert (counted.columns, counted.collect()[0].n) == (["n"], 4)
    one, two = load(spark, db, relation="records").orderBy("x").collect()
    assert (one.pair.a, int(one.pair.b), one.shape.branch, one.shape.Line.length) == (
        7,
        2**64 - 1,
        "Line",
        3,
    )
    assert (two.shape.branch, two.shape.Line) == ("Dot", None)
    for options, text in (
        ({"relation": "edges"}, "did you mean `edge`?"),
        ({"relatoin": "edge"}, "did you mean `relation`?"),
    ):
        with pytest.raises(Exception, match=r"C0916|C1570") as raised:
            load(spark, db, **options)
        assert text in str(raised.value)


@pytest.mark.oldest
def test_changes_as_a_batch_and_as_a_stream(spark: Any, db: Database, tmp_path: Path) -> None:
    options = {"relation": "edge", "readChangeFeed": "true", "startingVersion": 0}
    changes = rows(load(spark, db, **options).select("x", "y", "_change_type", "_commit_version"))
    assert changes == Counter(
        [
            *((x, y, "insert", 2) for x, y in ((1, "a"), (2, "b"), (3, None))),
            (1, "a", "update_preimage", 3),
            (1, "c", "update_postimage", 3),
            (4, "d", "insert", 3),
        ]
    )
    stream = spark.readStream.format("corollary").options(**options, maxRowsPerTrigger=1)
    query = (
        stream.load(path_of(db))
        .writeStream.format("memory")
        .queryName("streamed")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    streamed = spark.table("streamed").select("x", "y", "_change_type", "_commit_version")
    assert rows(streamed) == changes
    batches = [each for each in query.recentProgress if each.numInputRows]
    is_bounded = find_spec("pyspark.sql.streaming.datasource") is not None  # from 4.2 on
    assert len(batches) == 1 + is_bounded


@pytest.mark.oldest
def test_frames_are_written(spark: Any, db: Database) -> None:
    frame = spark.createDataFrame([(9, "z", "+"), (4, "d", "-")], "x long, y string, op string")
    save = frame.repartition(2).write.format("corollary").mode("append")
    save.options(relation="edge", op="op").save(path_of(db))
    assert Counter(db.relation("edge").rows()) == Counter([(1, "c"), (2, "b"), (3, None), (9, "z")])
    assert db.commits == 4
    spark.createDataFrame([(2, "b")], "x long, y string").write.format("corollary").mode(
        "overwrite"
    ).options(relation="edge").save(path_of(db))
    assert db.relation("far").rows() == [(2, "b")]
    with pytest.raises(Exception, match="C0937"):
        spark.createDataFrame([(2, "x")], "x long, y string").write.format("corollary").mode(
            "append"
        ).options(relation="edge").save(path_of(db))
    assert db.relation("edge").rows() == [(2, "b")]


@pytest.mark.oldest
def test_a_stream_is_written_once(spark: Any, db: Database, tmp_path: Path) -> None:
    """Spark does a batch again that its checkpoint does not list as done."""
    arrivals, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    arrivals.mkdir()

    def run() -> None:
        frame = spark.readStream.schema("x long").json(str(arrivals))
        writer = frame.writeStream.format("corollary").trigger(availableNow=True)
        writer = writer.options(relation="copies", checkpointLocation=str(checkpoint))
        writer.start(path_of(db)).awaitTermination()

    for number in range(2):
        (arrivals / f"{number}.json").write_text(json.dumps({"x": 10 + number}))
        run()
    wanted = Counter([(1,), (2,), (10,), (11,)])
    assert Counter(db.relation("copies").rows()) == wanted
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    assert Counter(db.relation("copies").rows()) == wanted
    assert db.commits == 5


def test_a_server_has_the_warehouse_open(spark: Any, db: Database, tmp_path: Path) -> None:
    """It commits at the same time, and its subscribers hear of what Spark has written."""
    warehouse = warehouse_of(db)
    assert warehouse is not None
    token = TokenStore(warehouse.catalog).add("boss", AccessRole.ADMIN)
    is_written, applied = Event(), count(100)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text(json.dumps({"x": 60}))
    state = Counter(row for (row,) in db.relation("copies").rows())
    with server_process(Path(path_of(db))) as server:

        def call(path: str, body: bytes | None = None) -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"{server.url}/v1/{path}", body, headers)
            return urllib.request.urlopen(request, timeout=600)

        def apply_until_written() -> None:
            while not is_written.wait(0.2):
                change = {"op": "insert", "relation": "copies", "row": [next(applied)]}
                call("apply", json.dumps(change).encode()).close()

        with ThreadPoolExecutor(1) as threads, call("events?relation=copies&since=3") as events:
            applying = threads.submit(apply_until_written)
            try:
                frame = spark.createDataFrame([(50,), (50,)], "x long").repartition(2)
                save = frame.write.format("corollary").mode("append")
                save.options(relation="copies").save(path_of(db))
                stream = spark.readStream.schema("x long").json(str(tmp_path / "in"))
                writer = stream.writeStream.format("corollary").trigger(availableNow=True)
                writer = writer.options(relation="copies", checkpointLocation=str(tmp_path / "at"))
                writer.start(path_of(db)).awaitTermination()
            finally:
                is_written.set()
            applying.result()
            wanted = state + Counter([50, 50, 60, *range(100, next(applied))])
            assert rows(load(spark, db, relation="copies")) == Counter(
                {(x,): each for x, each in wanted.items()}
            )
            with call("query", json.dumps({"goal": "copies(x), x < 100"}).encode()) as answer:
                assert {x for (x,) in json.load(answer)["rows"]} == {1, 2, 50, 60}
            for line in events:
                if line.startswith(b"data: "):
                    change = json.loads(line.removeprefix(b"data: "))
                    state.update(x for (x,) in change["added"])
                if state == wanted:
                    break


@pytest.mark.oldest
def test_a_warehouse_is_attached(spark: Any, db: Database) -> None:
    db.grant("ann", "far")
    assert corollary.spark.attach(spark, path_of(db), "ann_", reader="ann") == ["ann_far"]
    views = corollary.spark.attach(spark, path_of(db), prefix="rail_")
    assert views == [
        f"rail_{name}" for name in ("edge", "far", "seen", "copies", "records", "open")
    ]
    for name in ("edge", "far", "seen", "copies"):
        assert rows(spark.table(f"rail_{name}")) == Counter(db.relation(name).rows()), name
    assert spark.table("rail_records").schema == load(spark, db, relation="records").schema
    joined = spark.sql("SELECT e.x FROM rail_edge e JOIN ann_far f ON e.x = f.x")
    assert rows(joined) == Counter([(2,), (3,), (4,)])
    asked = f"SELECT * FROM corollary_query('{path_of(db)}', 'far(x, y), x < 4')"
    assert rows(spark.sql(asked)) == Counter([(2, "b"), (3, None)])
    with db.transaction() as tx:
        tx.insert("edge", [(50, "new")])
    assert rows(spark.sql("SELECT x FROM rail_far WHERE x > 9")) == Counter([(50,)])
    db.revoke("ann", "far")
    with pytest.raises(Exception, match="C1040"):
        spark.sql("SELECT * FROM ann_far")


def test_rows_of_all_kinds(spark: Any, tmp_path: Path) -> None:
    check_matrix(spark, tmp_path)


@pytest.mark.parametrize("where", ["connect", pytest.param("cluster", marks=pytest.mark.long)])
def test_all_of_it_works_elsewhere(where: str) -> None:
    if where == "connect":
        pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    script = TESTS / "support" / "processes" / f"spark_{where}.py"
    found = subprocess.run(
        [sys.executable, str(script), "source"],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.splitlines()[-1] == "right"
