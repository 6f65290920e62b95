"""The readers of `format("corollary")`, called as Spark calls them; the database is the judge."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

import corollary
from corollary.core.arrow import to_python
from corollary.database.access.principals import AccessRole
from corollary.database.database import Database, warehouse_of
from corollary.errors import CorollaryError
from corollary.serve.tokens import TokenStore
from corollary.spark import parts
from corollary.spark.source import CorollarySource
from corollary.warehouse import warehouse

PROGRAM = """
.type Pair = [a: number, b: unsigned]
.type Shape = Line {length: number} | Dot {}
.type List = [head: number, tail: List]
.decl edge(x: number, y: symbol?) key(x)
.decl far(x: number, y: symbol?)
far(x, y) :- edge(x, y), x > 5.
.decl seen(x: number) virtual
seen(x) :- edge(x, _).
.decl copies(x: number) bag
.decl records(x: number, pair: Pair, shape: Shape, list: List)
.decl open()
.decl typed(u: unsigned, f: float, d: decimal(9, 2), b: bool, on: date, at: timestamp)
"""
STORED = ("edge", "far", "copies", "open", "typed")

WHEN = (date(2026, 11, 18), datetime(2026, 11, 18, 8, 0, 0, 1, UTC))

Frozen = tuple[Any, ...]


def source(path: str, **options: Any) -> CorollarySource:
    given = {"path": path, **{name: str(value) for name, value in options.items()}}
    return CorollarySource(CaseInsensitiveDict(given))


def read(path: str, **options: Any) -> list[Frozen]:
    """What Spark would get: everything is pickled, and the schemas are equal."""
    asked = pickle.loads(pickle.dumps(source(path, **options)))
    schema = asked.schema()
    reader = asked.reader(schema)
    planned = pickle.dumps(reader.partitions())
    reader = pickle.loads(pickle.dumps(reader))
    found: list[Frozen] = []
    for each in pickle.loads(planned):
        for batch in reader.read(each):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.names == schema.names
            assert all(field.nullable for field in batch.schema)
            found += to_python(pa.Table.from_batches([batch]))
    return found


def held(db: Any, name: str, commit: int | None = None) -> Counter[Frozen]:
    rows = (db if commit is None else db.at(commit)).relation(name).rows()
    return Counter((True,) if row == () else row for row in rows)


def unsigned_as_decimal(row: Frozen) -> Frozen:
    return (Decimal(row[0]), *row[1:]) if len(row) == 6 else row


def refusal(path: str, **options: Any) -> str:
    with pytest.raises(CorollaryError) as raised:
        read(path, **options)
    return str(raised.value)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "w")


@pytest.fixture
def db(path: str) -> Any:
    with corollary.open(path, engine="local") as found:
        found.load(text=PROGRAM)
        yield found


@pytest.fixture(params=["inline", "files"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small changes in the catalog, or every change in several small files."""
    if request.param == "files":
        monkeypatch.setattr(warehouse, "INLINE_BYTES", 0)
        monkeypatch.setattr(warehouse, "FILE_MAX_ROWS", 7)
        monkeypatch.setattr(parts, "TASK_ROWS", 10)
    return str(request.param)


def random_history(db: Database, commits: int, seed: int) -> None:
    """Commits that insert and delete; the last ones insert only."""
    chance = random.Random(seed)
    held: dict[int, str | None] = {}
    for number in range(commits):
        with db.transaction() as tx:
            for x in chance.sample(range(30), 8):
                if x in held:
                    tx.delete("edge", [(x, held.pop(x))])
                elif number < commits - 2 or x not in held:
                    held[x] = chance.choice(["a", "b", None])
                    tx.insert("edge", [(x, held[x])])
            tx.insert("copies", [(chance.randrange(4),) for _ in range(9)])
            tx.delete("copies", [(chance.randrange(4),) for _ in range(3)])
            (tx.insert if number % 2 else tx.delete)("open", [()])
            typed = (2**64 - 1 - number, float("nan") if number == 2 else number / 3)
            tx.insert("typed", [(*typed, Decimal("1.25"), True, *WHEN)])


@pytest.mark.slow
def test_every_commit_is_what_the_database_says(db: Database, path: str, storage: str) -> None:
    random_history(db, 6, seed=3)
    feed = read(path, relation="copies", readChangeFeed="true")
    times = {number: time.isoformat() for *_, number, time in feed}
    for commit in (2, 5, 7):
        past = db.at(commit)
        for name in STORED:
            wanted = sorted(map(repr, map(unsigned_as_decimal, held(past, name).elements())))
            for point in ({"versionAsOf": commit}, {"timestampAsOf": times[commit]}):
                found = read(path, relation=name, **point)
                assert sorted(map(repr, found)) == wanted, (name, point)
        assert set(read(path, relation="seen", versionAsOf=commit)) == set(held(past, "seen"))


@pytest.mark.slow
def test_changes_give_the_relation(db: Database, path: str, storage: str) -> None:
    random_history(db, 6, seed=4)
    for name in ("edge", "far", "copies", "open"):
        state: Counter[Frozen] = Counter()
        rows = sorted(read(path, relation=name, readChangeFeed="true"), key=lambda row: row[-2])
        for *row, kind, number, _ in rows:
            tuple_ = tuple(row) or (True,)
            state[tuple_] += 1 if kind in ("insert", "update_postimage") else -1
            assert number <= db.commits
        assert +state == held(db, name, db.commits)
        feed = db.feed(name, since=3, upto=4)
        judge = [row for each in feed for row in to_python(each.arrow())]
        some = read(path, relation=name, readChangeFeed="true", startingVersion=4, endingVersion=4)
        assert len(some) == len(judge)


def test_a_key_makes_updates(db: Database, path: str) -> None:
    with db.transaction() as tx:
        tx.insert("edge", [(1, "a"), (2, "b")])
    with db.transaction() as tx:
        tx.delete("edge", [(1, "a"), (2, "b")])
        tx.insert("edge", [(1, "c"), (3, None)])
    found = read(path, relation="edge", readChangeFeed="true", startingVersion=3)
    assert {row[:3] for row in found} == {
        (1, "a", "update_preimage"),
        (1, "c", "update_postimage"),
        (2, "b", "delete"),
        (3, None, "insert"),
    }


def test_records_are_structs_where_arrow_has_them(db: Database, path: str) -> None:
    with db.transaction() as tx:
        tx.insert("records", [(1, (7, 8), ("Line", 3), (1, (2, None)))])
    ((x, pair, shape, text),) = read(path, relation="records")
    assert (x, *pair) == (1, 7, 8)
    assert shape == ("Line", (3,), None)  # branch, Line, Dot
    assert text == "[1, [2, nil]]"
    assert read(path, relation="records", records="text") == [
        (1, "[7, 8]", "$Line(3)", "[1, [2, nil]]")
    ]


@pytest.mark.slow
def test_questions_and_goals(db: Database, path: str) -> None:
    random_history(db, 3, seed=5)
    rows = db.relation("far").rows()
    assert set(read(path, query="far(x, y), x > 9")) == {row for row in rows if row[0] > 9}
    asked = "SELECT y, COUNT(*) AS n FROM far GROUP BY y"
    assert Counter(read(path, query=asked)) == Counter(Counter(row[1] for row in rows).items())
    earlier = db.at(2).relation("far").rows()
    assert set(read(path, query="far(x, y)", versionAsOf=2)) == set(earlier)
    assert set(read(path, query="(SELECT x, y FROM far VERSION AS OF 2)")) == set(earlier)


@pytest.mark.slow
def test_a_reader_sees_what_was_granted(db: Database, path: str) -> None:
    random_history(db, 2, seed=6)
    db.grant("ann", "far", "copies")
    held = warehouse_of(db)
    assert held is not None
    tokens = TokenStore(held.catalog)
    ann, boss = tokens.add("ann", AccessRole.READ), tokens.add("boss", AccessRole.ADMIN)
    everything = read(path, relation="far")
    for who in ({"reader": "ann"}, {"token": ann}, {"reader": "ann", "token": ann}):
        assert sorted(map(repr, read(path, relation="far", **who))) == sorted(map(repr, everything))
        for asked in (
            {"relation": "edge"},
            {"query": "edge(x, y)"},
            {"query": "SELECT * FROM edge"},
        ):
            assert "C1040" in refusal(path, **asked, **who) or "C13" in refusal(
                path, **asked, **who
            )
    assert read(path, relation="edge", token=boss)
    assert "C1040" in refusal(path, relation="edge", token=boss, reader="ann")
    assert "C1622" in refusal(path, relation="far", token=ann, reader="boss")
    assert "C1622" in refusal(path, relation="far", token="cor_wrong")


REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "relation": ({"relation": "edges"}, "C0916: did you mean `edge`?"),
    "option": ({"relatoin": "edge"}, "C1570: did you mean `relation`?"),
    "both": ({"relation": "edge", "query": "edge(x, y)"}, "C1570: leave one of them out"),
    "neither": ({}, "C1570: name a relation"),
    "version": ({"relation": "edge", "versionAsOf": 99}, "C0936: there are commits 1 to 1"),
    "number": ({"relation": "edge", "versionAsOf": "x"}, "C1570: write it in digits"),
    "time": ({"relation": "edge", "timestampAsOf": "2020-01-01"}, "C0936: the first one"),
    "feed": ({"query": "edge(x, y)", "readChangeFeed": "true"}, "C1570: name one"),
    "records": ({"relation": "edge", "records": "json"}, "C1570: say one"),
    "goal": ({"query": "edge(x)"}, "C0"),
    "sql": ({"query": "SELECT z FROM edge"}, "C1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_options_are_refused(what: str, db: Database, path: str) -> None:
    options, wanted = REFUSED[what]
    code, _, cure = wanted.partition(": ")
    found = refusal(path, **options)
    assert f"error[{code}" in found
    assert cure in found


def test_there_is_no_warehouse(tmp_path: Path) -> None:
    assert "C093" in refusal(str(tmp_path / "none"), relation="edge")
    assert not (tmp_path / "none").exists()


def test_other_columns_are_an_error(db: Database, path: str) -> None:
    asked = source(path, relation="seen")
    schema = asked.schema()
    db.load(text=PROGRAM.replace("seen(x: number)", "seen(y: number)"))
    with pytest.raises(CorollaryError, match="C1571"):
        asked.reader(schema).partitions()


def stream(path: str, **options: Any) -> Any:
    asked = source(path, readChangeFeed="true", **options)
    return asked.streamReader(asked.schema())


def rows_between(reader: Any, start: Any, end: Any) -> list[Frozen]:
    return [
        row
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in to_python(pa.Table.from_batches([batch]))
    ]


@pytest.mark.slow
def test_a_stream_goes_from_commit_to_commit(db: Database, path: str) -> None:
    random_history(db, 4, seed=7)
    limit: Callable[..., Any] = stream(
        path, relation="edge", maxRowsPerTrigger=5
    ).getDefaultReadLimit
    reader, offset = stream(path, relation="edge", startingVersion=0), {"version": 0}
    assert reader.initialOffset() == offset
    state: Counter[Frozen] = Counter()
    steps = 0
    while (end := reader.latestOffset(offset, limit())) != offset:
        for *row, kind, _, _ in rows_between(reader, offset, end):
            state[tuple(row)] += 1 if kind in ("insert", "update_postimage") else -1
        assert +state == held(db, "edge", end["version"]) if end["version"] > 1 else not +state
        offset, steps = end, steps + 1
    assert (offset, steps) == ({"version": db.commits}, 5)
    reader.prepareForTriggerAvailableNow()
    with db.transaction() as tx:
        tx.insert("edge", [(100, None)])
    assert reader.latestOffset(offset, limit()) == offset


@pytest.mark.parametrize("name", ["edge", "copies", "seen"])
def test_a_stream_begins_with_what_is_there(name: str, db: Database, path: str) -> None:
    random_history(db, 3, seed=9)
    reader = stream(path, relation=name)
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    found = rows_between(reader, start, end)
    assert Counter(row[:-3] for row in found) == held(db, name, db.commits)
    assert {row[-3:-1] for row in found} == {("insert", db.commits)}


def test_a_stream_says_what_it_reads(db: Database, path: str) -> None:
    asked = source(path, relation="edge")
    with pytest.raises(CorollaryError, match="readChangeFeed"):
        asked.streamReader(asked.schema())
