"""Large micro-batches: tasks read them and put their events together, the driver sees counts."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.program import Directive, Relation
from corollary.core.types import NUMBER, SYMBOL
from corollary.database.database import Database
from corollary.database.intake.source_guards import SourceGuards
from corollary.database.writing import frame_rows
from corollary.database.writing.frame_rows import NetChange, read_batch
from corollary.errors import InputError
from corollary.streaming import batches
from corollary.streaming.batches import BatchProcessor, FolderReader, StreamBatch
from corollary.streaming.frames import FrameReader
from corollary.warehouse.files.file_rows import FileRows, table_of
from corollary.warehouse.formats.delimited import SHOWN_FINDINGS_MAX
from corollary.warehouse.sources.tasks import portion_reader, staging
from support.spark.in_process_partitions import InProcessTasks, forbid_collecting, share_out
from support.streaming.stream_frames import PROGRAM, Frame, arrive, checkpoint, closure, frame

P = Relation("p", ("x", "y"), (NUMBER, SYMBOL), is_derived=False)
OPS = ("insert", "DELETE", "+", "-", "d", "upsert", None)


def outcome(change: NetChange) -> tuple[Any, ...]:
    """What a batch does, in no order."""
    added, removed = (sorted(to_python(table_of(each))) for each in (change.added, change.removed))
    bad = sorted(map(str, change.bad.to_pylist()))
    shown = change.findings[: SHOWN_FINDINGS_MAX + 1]
    return added, removed, bad, change.good, shown


SIGNS = {"insert": True, "+": True, "delete": False, "-": False, "d": False}


def copies_after(rows: list[tuple[Any, ...]], before: int, *, by_order: bool) -> Counter[Any]:
    """The copies of tuples after all events, one by one, if there were so many of each."""
    known = [
        (at or 0, op is None or SIGNS[op.lower()], n, (x, y))
        for n, (x, y, op, at) in enumerate(rows)
        if x is not None and y is not None and (op is None or op.lower() in SIGNS)
    ]
    if by_order:
        known.sort(key=lambda each: each[:2])
    found: Counter[Any] = Counter()
    for row in {each[3] for each in known}:
        found[row] = before
    for _, sign, _, row in known:
        found[row] = max(0, found[row] + (1 if sign else -1))
    return found


def last_events(rows: list[tuple[Any, ...]], *, by_order: bool) -> tuple[set[Any], set[Any]]:
    """The tuples whose last event is an insert, and those where it is a delete."""
    known = [
        (at or 0, SIGNS[op.lower()], n, (x, y))
        for n, (x, y, op, at) in enumerate(rows)
        if x is not None and y is not None and op is not None and op.lower() in SIGNS
    ]
    if by_order:
        known.sort(key=lambda each: each[:2])
    found = {row: sign for _, sign, _, row in known}
    added = {row for row, sign in found.items() if sign}
    return added, found.keys() - added


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_in_tasks_is_the_batch_here(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(frame_rows, "INLINE_EVENTS", chance.choice((0, 3, 100)))
    monkeypatch.setattr(portion_reader, "INLINE_BAD_ROWS", chance.choice((0, 1000)))
    op, order = chance.choice((None, "op", "op")), chance.choice((None, "at"))
    number = chance.choice((0, 1, 40, 200))
    rows = [
        (
            chance.choice((1, 2, 3, 4, None)) if chance.random() < 0.9 else None,
            chance.choice("ab"),
            chance.choice(OPS),
            chance.choice((1, 2, 3, None)),
        )
        for _ in range(number)
    ]
    types = {"x": pa.int64(), "y": pa.string(), "op": pa.string(), "at": pa.int64()}
    columns = [[row[at] for row in rows] for at in range(4)]
    table = pa.table(dict(zip(types, columns, strict=True)), pa.schema(types.items()))
    batch = Frame(table, chance.choice((1, 2, 5)))
    reader = FrameReader(op, order)
    tasks = InProcessTasks(tmp_path / "tasks", min_tuples=chance.choice((0, 10)))
    copies = chance.random() < 0.5
    here = read_batch(reader, batch, P, "s", "batch 0", has_copies=copies)
    there = read_batch(reader, batch, P, "s", "batch 0", tasks=tasks, has_copies=copies)
    assert outcome(there) == outcome(here)
    added, removed = outcome(there)[:2]
    if copies:
        events = rows if op else [(x, y, None, at) for x, y, _, at in rows]
        events = [each for each in events if op is None or each[2] is not None]
        for before in range(3):
            after = copies_after(events, before, by_order=order is not None)
            gone, come = Counter(removed), Counter(added)
            assert {row: max(0, before - gone[row]) + come[row] for row in after} == after
    elif op is None:
        assert set(added) == {(x, y) for x, y, *_ in rows if x is not None}
    else:
        expected = last_events(rows, by_order=order is not None)
        assert (set(added), set(removed)) == expected
    if tasks.min_tuples == 0 and added:
        assert isinstance(there.added, FileRows)
    lines = [each["line"] for each in there.bad.to_pylist() if each["code"] == "C0801"]
    malformed = [
        n for n, (x, _, sign, _) in enumerate(rows, 1) if x is None or (op and sign is None)
    ]
    assert sorted(lines) == malformed
    del here, there
    assert not list((tmp_path / "tasks").iterdir())


def test_files_in_tasks_come_in_their_order(tmp_path: Path) -> None:
    files = [
        {"path": "file:/in/2.csv", "modificationTime": 2, "content": b"1,a,+\n2,b,+\nbad\n"},
        {"path": "file:/in/3.csv", "modificationTime": 3, "content": b"2,b,-\n"},
        {"path": "file:/in/1.csv", "modificationTime": 1, "content": b"1,a,-\n3,c,+\n1,a,no\n"},
    ]
    reader = FolderReader(Directive("input", "p", (("delimiter", ","), ("op", "op"))), "/in")
    batch = Frame(pa.Table.from_pylist(files), 3)
    tasks = InProcessTasks(tmp_path / "tasks")
    here = read_batch(reader, batch, P, "s", "batch 0")
    there = read_batch(reader, batch, P, "s", "batch 0", tasks=tasks)
    assert outcome(there) == outcome(here)
    assert outcome(there)[:2] == ([(1, "a"), (3, "c")], [(2, "b")])
    assert [(each["file"], each["line"]) for each in there.bad.to_pylist()] == [
        ("batch 0", 0),
        ("2.csv", 3),
    ]


def test_too_many_malformed_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_rows, "QUARANTINED_MAX", 2)
    monkeypatch.setattr(staging, "QUARANTINED_MAX", 2)
    rows = pa.table({"x": pa.array([None] * 3, pa.int64()), "y": ["a", "b", "c"]})
    with pytest.raises(InputError, match=r"C1530.*3 records of `batch 0 of s`"):
        read_batch(
            FrameReader(), Frame(rows), P, "s", "batch 0", tasks=InProcessTasks(tmp_path / "tasks")
        )


# ------------------------------------------------------------------------------------ a database


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    share_out(monkeypatch, "partitions")
    with corollary.open(tmp_path / "w") as found:
        found.load(text=PROGRAM)
        yield found


def micro_batches(db: Database, tmp_path: Path, **more: Any) -> BatchProcessor:
    assert db._store.open_arguments is not None
    batches.process_streams.open["here"] = db
    reader = FrameReader(more.pop("op", None), more.pop("order", None))
    place = checkpoint(tmp_path / "checkpoint")
    names = "direct_link", "direct_link < s"
    return BatchProcessor(db._store.open_arguments, "here", *names, reader, place, **more)


def test_batches_of_a_partitioned_relation(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inserts, deletes, malformed rows, and a batch that is passed again."""
    db.load(text=".decl direct_link(src: symbol, dst: symbol)\n.output direct_link")
    names = ("src", "dst", "op")
    seen: list[StreamBatch] = []
    apply = micro_batches(db, tmp_path, op="op", on_batch=seen.append)
    with monkeypatch.context() as patch:
        forbid_collecting(patch)
        for _ in range(2):
            apply(frame(("a", "b", "+"), ("b", "c", "+"), ("a", None, "+"), names=names), 0)
        apply(frame(("b", "c", "-"), ("b", "d", "+"), ("x", "y", "-"), names=names), 1)
    assert set(db.relation("direct_link").rows()) == {("a", "b"), ("b", "d")}
    assert [each.transaction.is_repeated for each in seen] == [False, True, False]
    assert [each.malformed for each in seen] == [1, 0, 0]
    assert len(db.relation("quarantine")) == 1
    assert db.changes(4)["direct_link"].counts == (1, 1)


def test_a_batch_that_deletes_most_is_counted_in_tasks(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("src", "dst", "op")
    rows = [(f"a{at}", f"b{at}") for at in range(1000)]
    micro_batches(db, tmp_path, op="op")(frame(*((*row, "+") for row in rows), names=names), 0)
    gone = frame(*((*row, "-") for row in rows[:501]), names=names)
    forbid_collecting(monkeypatch)
    apply = micro_batches(db, tmp_path, op="op", guards=SourceGuards())
    with pytest.raises(InputError, match=r"C0947.*would delete 501 of the 1,000 rows"):
        apply(gone, 1)
    unknown = [(f"no{at}", "b", "-") for at in range(900)]
    apply(frame(*unknown, (*rows[0], "-"), names=names), 1)
    assert len(db.relation("direct_link")) == 999


# --------------------------------------------------------------------------------------- on Spark


@pytest.mark.oldest
def test_a_stream_into_partitions(spark: Any, tmp_path: Path) -> None:
    """A query of Spark: frames of several partitions, a key, poison, and what was there before."""
    folder = tmp_path / "in"
    edges = [(n, n + 1) for n in range(40)]
    events = [{"op": "i", "src": str(x), "dst": str(y)} for x, y in edges]
    arrive(folder, "1.json", *events, {"op": "i", "src": "poison"}, at=1_000)
    later = [{"op": "d", "src": "20", "dst": "21"}, {"op": "i", "src": "20", "dst": "22"}]
    arrive(folder, "2.json", *later, at=2_000)
    with corollary.open(tmp_path / "w", spark=spark, placement="partitions") as db:
        db.load(text=PROGRAM)
        reader = spark.readStream.schema("op string, src string, dst string")
        frames = reader.option("maxFilesPerTrigger", 1).json(str(folder)).repartition(3)
        query = db.stream(frames, into="direct_link", op="op", trigger={"availableNow": True})
        assert query.awaitTermination(600)
        now = {(str(x), str(y)) for x, y in edges} - {("20", "21")} | {("20", "22")}
        assert set(db.relation("direct_link").rows()) == now
        assert set(db.relation("link").rows()) == closure(now)
        (bad,) = db.query("quarantine(_, _, file, line, _, _, raw)").to_pylist()
        assert json.loads(bad["raw"])["src"] == "poison"
        assert bad["file"] == "batch 0"
