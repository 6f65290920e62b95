"""Streams: every micro-batch is one transaction, made once."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError

import corollary
from corollary.core.program import Directive, RowBound
from corollary.database.database import Database
from corollary.database.intake.source_guards import HALF, SourceGuards
from corollary.database.writing.events import join_events
from corollary.errors import ConstraintError, InputError
from corollary.streaming import batches, stream
from corollary.streaming.batches import BatchProcessor, FolderReader, StreamBatch
from corollary.streaming.frames import FrameReader
from corollary.warehouse.sources.quarantine import BadRowPolicy
from support.command_line import INPUT, OK, cli, put
from support.streaming.stream_frames import PROGRAM, Frame, arrive, checkpoint, closure, frame


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with corollary.open(tmp_path / "w", engine="local") as found:
        found.load(text=PROGRAM)
        yield found


def links(db: Database, relation: str = "direct_link") -> set[tuple[Any, ...]]:
    return set(db.relation(relation).rows())


def micro_batches(db: Database, tmp_path: Path, **more: Any) -> BatchProcessor:
    """What Spark would call, where the database is open."""
    assert db._store.open_arguments is not None
    op, order = more.pop("op", None), more.pop("order", None)
    batches.process_streams.open["here"] = db
    place = more.pop("checkpoint", None) or checkpoint(tmp_path / "checkpoint")
    reader = FrameReader(op, order)
    return BatchProcessor(
        db._store.open_arguments,
        more.pop("token", "here"),
        "direct_link",
        "direct_link < s",
        reader,
        place,
        **more,
    )


# ---------------------------------------------------------------------------------- without Spark


@pytest.mark.oldest
def test_a_batch_is_a_transaction_and_is_made_once(db: Database, tmp_path: Path) -> None:
    seen: list[StreamBatch] = []
    apply = micro_batches(db, tmp_path, on_batch=seen.append)
    apply(frame(("a", "b"), ("b", "c")), 0)
    apply(frame(("c", "d"), ("a", "b")), 1)
    apply(frame(("c", "d"), ("a", "b")), 1)
    assert links(db, "link") == closure({("a", "b"), ("b", "c"), ("c", "d")})
    assert [each.transaction.commit_number for each in seen] == [2, 3, 3]
    assert [each.transaction.is_repeated for each in seen] == [False, False, True]
    assert db.commits == 3
    assert [each.version for each in seen[1].published.published] == [1]  # type: ignore[union-attr]


ACTIVE = """
lost(x, y) :- -link(x, y).
.alert lost "lost {x} -> {y}" (IO=jsonlines, filename="lost.jsonl")
.decl seen(x: symbol)
+seen(x) :- +direct_link(x, _).
loop(x) :- +link(x, x).
.abort loop "{x} reaches itself"
"""


def test_active_rules_react_to_batches(db: Database, tmp_path: Path) -> None:
    db.load(text=PROGRAM + ACTIVE)
    apply = micro_batches(db, tmp_path, op="op")
    apply(frame(("a", "b", "+"), ("b", "c", "+"), names=("src", "dst", "op")), 0)
    assert set(db.relation("seen").rows()) == {("a",), ("b",)}
    gone = frame(("b", "c", "-"), names=("src", "dst", "op"))
    apply(gone, 1)
    apply(gone, 1)
    told = (tmp_path / "w/alerts/lost.jsonl").read_text().splitlines()
    assert [json.loads(line)["message"] for line in told] == ["lost a -> c", "lost b -> c"]
    with pytest.raises(ConstraintError, match="a reaches itself"):
        apply(frame(("b", "a", "+"), names=("src", "dst", "op")), 2)
    assert links(db) == {("a", "b")}


def test_another_query_is_another_stream(db: Database, tmp_path: Path) -> None:
    micro_batches(db, tmp_path)(frame(("a", "b")), 0)
    second = checkpoint(tmp_path / "second", "q2")
    micro_batches(db, tmp_path, checkpoint=second)(frame(("b", "c")), 0)
    assert links(db) == {("a", "b"), ("b", "c")}


def test_the_last_event_on_a_tuple_wins(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path, op="op")
    names = ("op", "src", "dst")
    apply(frame(("I", "a", "b"), ("c", "b", "c"), ("+", "c", "d"), names=names), 0)
    events = [("d", "a", "b"), ("update_postimage", "a", "b"), ("i", "x", "y"), ("-", "x", "y")]
    apply(frame(*events, ("delete", "b", "c"), ("−", "no", "such"), names=names), 1)
    assert links(db) == {("a", "b"), ("c", "d")}
    assert db.changes(3)["direct_link"].counts == (0, 1)


def test_each_event_on_a_bag_counts(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.load(text=".decl direct_link(src: symbol, dst: symbol) bag\n.output direct_link\n")
        apply = micro_batches(db, tmp_path, op="op")
        names = ("op", "src", "dst")
        apply(frame(*[("+", "a", "b")] * 3, ("-", "c", "d"), ("+", "c", "d"), names=names), 0)
        assert sorted(db.relation("direct_link").rows()) == [*[("a", "b")] * 3, ("c", "d")]
        for _ in range(2):  # the second time it is done already
            events = [("-", "a", "b"), ("-", "c", "d"), ("-", "c", "d"), ("+", "c", "d")]
            apply(frame(*events, names=names), 1)
        assert sorted(db.relation("direct_link").rows()) == [*[("a", "b")] * 2, ("c", "d")]
        micro_batches(db, tmp_path)(frame(("a", "b"), ("a", "b")), 2)
        assert sorted(db.relation("direct_link.rows").rows()) == [("a", "b", 4), ("c", "d", 1)]


def test_events_are_put_in_order(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path, op="op", order="at")
    names = ("src", "dst", "op", "at")
    late = [("a", "b", "delete", "3"), ("a", "b", "insert", "2"), ("b", "c", "insert", "9")]
    # What happens at one time is an update: the deletes come first.
    same = [("u", "v", "insert", "5"), ("u", "v", "delete", "5"), ("b", "c", "delete", "1")]
    apply(frame(*late, *same, names=names), 0)
    assert links(db) == {("b", "c"), ("u", "v")}


ROUTES = [(f"a{at}", f"b{at}") for at in range(1000)]


def numbered(*rows: tuple[str, str | None, str]) -> Frame:
    return frame(*rows, names=("src", "dst", "op"))


def test_a_batch_of_malformed_rows_stops_the_stream(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path)
    few = [("a", None)] * 9
    apply(frame(("a", "b"), *few), 0)  # a share of so few says little
    many = [("a", None)] * 1001
    for bounds, code in (
        (SourceGuards(), "C0944"),
        (SourceGuards(max_bad=RowBound(count=1000)), "C0944"),
        (SourceGuards(max_bad=RowBound.parse("off") or HALF), None),
    ):
        apply = micro_batches(db, tmp_path, guards=bounds)
        if code is None:
            apply(frame(*ROUTES, *many), 1)
            continue
        with pytest.raises(InputError, match=code) as raised:
            apply(frame(*ROUTES, *many), 1)
        assert "1,001 of the 2,001 records of batch 1 of the stream into `direct_link`" in str(
            raised.value
        )
        assert 'db.stream(…, max_bad="off")' in str(raised.value)
        assert links(db) == {("a", "b")}
    assert len(links(db)) == 1001


def test_a_batch_that_deletes_most_stops_the_stream(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path, op="op")
    apply(numbered(*((*row, "+") for row in ROUTES)), 0)
    gone = numbered(*((*row, "-") for row in ROUTES[:501]))
    with pytest.raises(InputError, match="C0947") as raised:
        apply(gone, 1)
    assert "batch 1 of the stream into `direct_link` would delete 501 of the 1,000 rows" in str(
        raised.value
    )
    assert len(links(db)) == 1000
    apply(numbered(*((f"no{at}", "b", "-") for at in range(900)), ("a1", "b1", "-")), 1)
    moved = [(f"a{at}", "b", sign) for at in range(2, 700) for sign in "-+"]
    apply(numbered(*moved, *((*row, "-") for row in ROUTES[2:500])), 2)
    assert len(links(db)) == 999 - 498 + 698
    off = SourceGuards(max_deletes=RowBound.parse("off") or HALF)
    micro_batches(db, tmp_path, op="op", guards=off)(
        numbered(*((*row, "-") for row in links(db))), 3
    )
    assert links(db) == set()


def test_a_folder_says_what_it_accepts(db: Database, tmp_path: Path) -> None:
    """The bounds of an `.input`, and a file that lacks the header it promises."""
    db.load(text=".decl n(x: number, y: number)")

    def apply(content: str, **parameters: str) -> None:
        folder = tmp_path / "in"
        options = {"IO": "stream", "filename": "in", "headers": "true", **parameters}
        found = Directive("input", "n", tuple(options.items()))
        each = {
            "path": f"file:{folder}/1.csv",
            "modificationTime": datetime.now(UTC),
            "content": content.encode(),
        }
        batches.process_streams.open["here"] = db
        assert db._store.open_arguments is not None
        BatchProcessor(
            db._store.open_arguments,
            "here",
            "n",
            "n < in",
            FolderReader(found, str(folder)),
            checkpoint(tmp_path / "checkpoint"),
        )(Frame(pa.Table.from_pylist([each])), 0)

    with pytest.raises(InputError, match="C0945"):
        apply("1,2\n3,4\n")
    with pytest.raises(InputError, match=r"C0944.*batch 0 of `in`"):
        apply("x,y\n1,2\n3\n", max_bad="0")
    assert links(db, "n") == set()
    apply("x,y\n1,2\n3\n", max_bad="1")
    assert links(db, "n") == {(1, 2)}


def test_poison_rows_are_set_aside(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path, op="op")
    rows = [("a", "b", "insert"), ("a", None, "insert"), ("b", "c", "upsert"), ("c", "d", None)]
    seen: list[StreamBatch] = []
    apply = micro_batches(db, tmp_path, op="op", on_batch=seen.append)
    apply(frame(*rows, names=("src", "dst", "op")), 0)
    assert links(db) == {("a", "b")}
    assert seen[0].malformed == 3
    told = db.query("quarantine(r, s, f, line, code, reason, _)").to_pylist()
    assert {(each["f"], each["line"], each["code"]) for each in told} == {
        ("batch 0", 2, "C0801"),
        ("batch 0", 4, "C0801"),
        ("batch 0", 0, "C0985"),
    }
    apply(frame(("x", None, "insert"), names=("src", "dst", "op")), 1)
    assert len(db.relation("quarantine")) == 4
    db.load(text=PROGRAM)  # as a script does at every start
    assert len(db.relation("quarantine")) == 4


@pytest.mark.parametrize(
    ("row", "code"), [(("a", None, "insert"), "C0801"), (("a", "b", "?"), "C0985")]
)
def test_poison_rows_stop_a_strict_stream(
    row: tuple[str, ...], code: str, db: Database, tmp_path: Path
) -> None:
    apply = micro_batches(db, tmp_path, op="op", bad_rows=BadRowPolicy.ABORT)
    with pytest.raises(InputError, match=code):
        apply(frame(("x", "y", "insert"), row, names=("src", "dst", "op")), 0)
    assert db.commits == 1


def test_columns_are_found_by_name_or_by_place(db: Database, tmp_path: Path) -> None:
    apply = micro_batches(db, tmp_path)
    apply(frame(("b", "x", "a"), names=("dst", "more", "src")), 0)
    apply(frame(("b", "c"), names=("_1", "_2")), 1)
    assert links(db) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize(
    ("found", "asked", "message"),
    [
        (frame(names=("src", "to")), {}, "C0983.*`src`, `to`, are not those of"),
        (frame(names=("a", "b", "c")), {}, r"C0983(.|\n)*frame.select\(\"src\", \"dst\"\)"),
        (Frame(pa.table({"src": ["a"], "dst": [1]})), {}, "C0983.*`dst` of the frame is a `int64`"),
        (frame(), {"op": "op"}, "C0984.*no column `op`"),
        (frame(), {"op": "src"}, "C0984.*is a column of `direct_link`"),
        (frame(), {"order": "at"}, "C0984.*no column `at`"),
        (frame(), {"bad_rows": "ignore"}, "C0984.*`abort` or `quarantine`"),
        (frame(), {"into": "link"}, "C0915"),
        (frame(), {"into": "lnik"}, "C0916"),
    ],
)
def test_a_stream_that_does_not_fit_is_not_started(
    found: Frame, asked: dict[str, Any], message: str, db: Database
) -> None:
    with pytest.raises(InputError, match=message):
        db.stream(found, **{"into": "direct_link", **asked})
    assert not (Path(db._store.open_arguments.location) / "streams").exists()  # type: ignore[union-attr]


def test_a_frame_that_is_complete_is_no_stream(db: Database) -> None:
    with pytest.raises(InputError, match="C0984"):
        db.stream(frame().table, into="direct_link")


@pytest.mark.parametrize(("broken", "stops"), [(1, 1), (99, 0)], ids=["connection", "Java"])
def test_a_signal_may_break_the_connection_to_java(db: Database, broken: int, stops: int) -> None:
    class Query:
        asked = stopped = 0

        @property
        def isActive(self) -> bool:  # noqa: N802 - as Spark names it
            self.asked += 1
            if self.asked <= broken:
                raise Py4JError
            return True

        def stop(self) -> None:
            self.stopped += 1

    query = Query()
    stream.stop(db, query, "token")
    assert query.stopped == stops


def test_streams_need_a_warehouse() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=PROGRAM)
        with pytest.raises(InputError, match="C0982"):
            db.stream(frame(), into="direct_link")


def test_a_process_of_its_own_opens_the_database(db: Database, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    seen = micro_batches(db, tmp_path, token="elsewhere")
    carried = cloudpickle.loads(cloudpickle.dumps(seen))
    carried(frame(("a", "b")), 0)
    opened = batches.process_streams.opened.pop(seen.opened.location)
    assert opened is not db
    opened.close()
    seen(frame(("a", "b")), 0)  # the key is that of the warehouse, not of a process
    batches.process_streams.opened.pop(seen.opened.location).close()
    assert links(db) == {("a", "b")}
    assert db.commits == 2


def test_files_of_a_batch_are_read_in_their_order(db: Database, tmp_path: Path) -> None:
    def file(name: str, at: int, content: bytes) -> dict[str, Any]:
        return {"path": f"file:/in/{name}", "modificationTime": at, "content": content}

    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"op": ["d"], "dst": ["b"], "src": ["a"]}), buffer)
    files = [
        file("z.jsonl", 1, b'["a","b","+"]\n["c","d","+"]\n'),
        file("c.parquet", 2, buffer.getvalue().to_pybytes()),
        file("b.jsonl.gz", 2, gzip.compress(b'{"src":"a","dst":"b","op":"i"}\n')),
        file("sub/a.tsv", 3, b"e\tf\ti\nno row\n"),
    ]
    reader = FolderReader(Directive("input", "direct_link", (("op", "op"),)), "/in")
    relation = db._state.writable_relation("direct_link")
    events = join_events(reader.read(pa.Table.from_pylist(files), relation, "s", "batch 0"))
    assert events.rows is not None
    assert [tuple(row.values()) for row in events.rows.to_pylist()] == [
        ("a", "b", True),
        ("c", "d", True),
        ("a", "b", True),
        ("a", "b", False),
        ("e", "f", True),
    ]
    bad = events.bad.to_pylist()
    assert [(each["file"], each["line"]) for each in bad] == [("sub/a.tsv", 2)]
    assert len(events.findings) == 1


# ------------------------------------------------------------------------------------- on Spark

NOW = {"availableNow": True}
PATIENCE_SECONDS = 600


def stream_of(spark: Any, folder: Path, schema: str) -> Any:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))


def test_inserts_go_on_where_they_were(db: Database, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    arrive(folder, "1.json", {"src": "a", "dst": "b"}, {"src": "b", "dst": "c"}, at=1_000)
    arrive(folder, "2.json", {"src": "c", "dst": "d"}, {"src": "poison"}, at=2_000)
    seen: list[tuple[int, int | None]] = []

    def note(batch: StreamBatch) -> None:
        seen.append((batch.number, batch.transaction.commit_number))

    frame = stream_of(spark, folder, "src string, dst string")
    db.stream(frame, into="direct_link", trigger=NOW, on_batch=note).awaitTermination(
        PATIENCE_SECONDS
    )
    assert links(db, "link") == closure({("a", "b"), ("b", "c"), ("c", "d")})
    assert len(db.relation("quarantine")) == 1
    arrive(folder, "3.json", {"src": "d", "dst": "e"}, at=3_000)
    db.stream(frame, into="direct_link", trigger=NOW, on_batch=note).awaitTermination(
        PATIENCE_SECONDS
    )
    assert seen == [(0, 2), (1, 3), (2, 4)]
    location = Path(db._store.open_arguments.location)  # type: ignore[union-attr]
    assert (location / "streams" / "direct_link" / "metadata").exists()


def test_a_replay_does_nothing_twice(db: Database, spark: Any, tmp_path: Path) -> None:
    """The process fails between the commit and Spark's note of it."""
    folder = tmp_path / "in"
    arrive(folder, "1.json", {"op": "i", "src": "a", "dst": "b", "at": 1}, at=1_000)
    events = [{"op": "d", "src": "a", "dst": "b", "at": 3}, {"op": "i", "src": "b", "dst": "c"}]
    arrive(folder, "2.json", *events, at=2_000)
    numbers: list[int] = []

    def fail(batch: StreamBatch) -> None:
        numbers.append(batch.number)
        if batch.number == 1:
            raise RuntimeError("the power has failed")

    frame = stream_of(spark, folder, "op string, src string, dst string, at long")
    asked = {"op": "op", "order": "at", "trigger": NOW, "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(Exception, match="the power has failed"):
        db.stream(frame, into="direct_link", on_batch=fail, **asked).awaitTermination(
            PATIENCE_SECONDS
        )
    assert links(db) == {("b", "c")}
    assert db.commits == 3
    with db.transaction() as tx:
        tx.insert("direct_link", [("a", "b")])
        tx.delete("direct_link", [("b", "c")])
    repeated: list[bool] = []
    db.stream(
        frame,
        into="direct_link",
        on_batch=lambda batch: repeated.append(batch.transaction.is_repeated),
        **asked,
    ).awaitTermination(PATIENCE_SECONDS)
    assert numbers == [0, 1]
    assert repeated == [True]
    assert links(db) == {("a", "b")}  # what was done since is not undone
    assert db.commits == 4


def test_closing_stops_streams(spark: Any, tmp_path: Path) -> None:
    """Also where a batch is maintained by jobs of Spark."""
    folder = tmp_path / "in"
    arrive(folder, "1.json", {"src": "a", "dst": "b"})
    with corollary.open(tmp_path / "w", spark=spark, placement="partitions") as db:
        db.load(text=PROGRAM)
        query = db.stream(stream_of(spark, folder, "src string, dst string"), into="direct_link")
        query.processAllAvailable()
        assert links(db, "link") == {("a", "b")}
        arrive(folder, "2.json", {"src": "b", "dst": "c"})
        query.processAllAvailable()
        assert links(db, "link") == {("a", "b"), ("a", "c"), ("b", "c")}
    assert not query.isActive
    assert query.exception() is None


# ------------------------------------------------------------------------------------- watching

WATCHED = PROGRAM.replace(
    ".decl link", '.input direct_link(IO=stream, filename="in [1]", {parameters})\n.decl link'
)


@pytest.mark.parametrize(
    ("parameters", "files"),
    [
        ('format=jsonl, op="op"', ('["a","b","+"]\n["b","c","+"]\n', '["a","b","-"]\n[7]\n')),
        ('delimiter=",", op="op"', ("a,b,i\nb,c,i\n", "a,b,d\nbad\n")),
        (
            'delimiter=",", headers=true, op="op", max_files=1',
            ("op,dst,src\ni,b,a\ni,c,b\n", "src,dst,op\na,b,d\nbad\n"),
        ),
    ],
)
def test_watch_reads_streams(
    parameters: str, files: tuple[str, str], spark: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    put("network.dl", WATCHED.replace("{parameters}", parameters))
    put("in [1]/one %20", files[0])
    command = ("watch", "network.dl", "--warehouse", "w", "--once", "--engine", "local")
    result = cli(*command)
    assert result.exit_code == OK, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("commit 1  ")
    assert lines[1].startswith("commit 2  direct_link +2, link +3  ")
    assert lines[1].endswith("  batch 0 of direct_link < in [1]")
    assert lines[-1] == "all is read at commit 2"
    put("in [1]/two", files[1])
    result = cli(*command)
    assert result.exit_code == OK, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "nothing has changed since commit 2"
    assert lines[1].startswith("commit 3  direct_link −1, link −2, quarantine +1  ")
    assert lines[1].endswith("batch 1 of direct_link < in [1], 1 malformed record set aside")
    told = cli("query", "w", "quarantine(_, source, file, line, _, _, _)").stdout
    assert told.splitlines()[1:] == [f"direct_link < in [1]\ttwo\t{2 + ('headers' in parameters)}"]
    result = cli("run", "network.dl", "--warehouse", "w", "--engine", "local")
    assert "streams are read by `corollary watch` only: `direct_link`" in result.stderr
    assert result.stdout.splitlines() == ["nothing has changed since commit 3"]


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ("op=src", "C0206"),
        ("order=src", "C0206"),
        ("format=delta", "C0206"),
        ("max_files=0", "C0206"),
        ('format=parquet, filename="nowhere"', "C0984"),
        ('filename="*/in"', "C0984"),
        ('filename="../in"', "C0805"),
    ],
)
def test_watch_refuses(parameters: str, code: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    put("in/one", "")
    text = PROGRAM.replace(".decl link", f".input direct_link(IO=stream, {parameters})\n.decl link")
    put("network.dl", text)
    result = cli("watch", "network.dl", "--warehouse", "w", "--once", "--engine", "local")
    assert result.exit_code == INPUT
    assert code in result.stderr


def test_a_run_that_ends_refuses_streams(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    put("network.dl", WATCHED.replace("{parameters}", "format=jsonl"))
    result = cli("run", "network.dl", "--engine", "local")
    assert result.exit_code == INPUT
    assert "C0982" in result.stderr


SOURCED = PROGRAM.replace(
    ".decl link", '.input direct_link(filename="links.csv", delimiter=",")\n.decl link'
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_watch_follows_sources_until_it_is_stopped(number: int, tmp_path: Path) -> None:
    (tmp_path / "network.dl").write_text(SOURCED)
    source = tmp_path / "links.csv"
    source.write_text("a,b\n")
    arguments = ["network.dl", "--warehouse", "w", "--interval", "0.1", "--engine", "local"]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "corollary", "watch", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert watcher.stdout.readline().startswith("commit 1  direct_link +1, link +1  ")
        new = tmp_path / "new"
        new.write_text("a,b\nb,c\n")
        new.rename(source)
        assert watcher.stdout.readline().startswith("commit 2  direct_link +1, link +2  ")
        source.unlink()
        # What takes longer than usual says so first.
        assert any("C0804" in line for line in watcher.stderr)
        new.write_text("b,c\n")
        new.rename(source)
        assert watcher.stdout.readline().startswith("commit 3  direct_link −1, link −2  ")
        watcher.send_signal(number)
        assert watcher.stdout.read() == "stopped at commit 3\n"
        assert watcher.wait(30) == 0
