"""What tasks return to the driver: counts and names of files, however many rows a frame has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.program import Directive
from corollary.database.database import Database
from support.spark.returned_bytes import ReturnedBytes

FIRST, ROWS = 700_000, 1_000_000
RETURNED_MAX = 1 << 20
PROGRAM = """
.decl event(id: number, kind: symbol)
.input event(filename="events", format="parquet")
.decl odd(id: number, kind: symbol)
odd(i, k) :- event(i, k), i % 2 = 1.
.decl even(id: number, kind: symbol) virtual
even(i, k) :- event(i, k), i % 2 = 0.
.decl named(kind: symbol) bag
.input named(filename="named", format="parquet")
"""


def write(spark: Any, folder: Path, first: int, last: int) -> None:
    rows = spark.range(first, last, 1, 2).selectExpr("id", "concat('k', id % 5) AS kind")
    rows.write.mode("append").parquet(f"{folder}/events")
    rows.selectExpr("concat('n', id % 10) AS kind").write.mode("append").parquet(f"{folder}/named")


@pytest.fixture(scope="module")
def events(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Database]]:
    folder = tmp_path_factory.mktemp("events")
    (folder / "p.dl").write_text(PROGRAM)
    with corollary.open(folder / "w", spark=spark, placement="partitions") as db:
        for bounds in ((0, FIRST), (FIRST, ROWS)):
            write(spark, folder, *bounds)
            db.run(folder / "p.dl", facts=folder)
        yield folder, db


ORDERED = "SELECT kind, id AS kind FROM event ORDER BY id % 5 DESC, id OFFSET 3"
CALLS = {
    "relation": (lambda db: db.relation("event").spark(), ROWS),
    "view": (lambda db: db.relation("odd").spark(), ROWS // 2),
    "virtual": (lambda db: db.relation("even").spark(), ROWS // 2),
    "bag": (lambda db: db.relation("named").spark(), ROWS),
    "past": (lambda db: db.at(1).relation("event").spark(), FIRST),
    "change": (lambda db: db.changes(2)["event"].spark(), ROWS - FIRST),
    "feed": (lambda db: next(db.feed("event", since=1)).spark(), ROWS - FIRST),
    "feed of copies": (lambda db: next(db.feed("named", since=1)).spark(), ROWS - FIRST),
    "answer": (lambda db: db.sql("SELECT id, id FROM event WHERE id % 2 = 0").spark(), ROWS // 2),
    "ordered answer": (lambda db: db.sql(ORDERED).spark(), ROWS - 3),
    "copies": (lambda db: db.sql("SELECT kind AS k FROM named").spark(), ROWS),
}


def test_frames_are_read_by_tasks(spark: Any, events: tuple[Path, Database]) -> None:
    folder, db = events
    for name, (make, rows) in CALLS.items():
        returned = ReturnedBytes(spark)
        assert make(db).count() == rows, name
        assert returned.total < RETURNED_MAX, (name, returned.by_job())
    output = Directive("output", "odd", (("IO", "spark"), ("format", "parquet")))
    odd, returned = db.relation("odd"), ReturnedBytes(spark)
    db._state.frames.write(odd._handle("odd"), odd.shape, output, folder / "odds")
    assert returned.total < RETURNED_MAX
    assert spark.read.parquet(f"{folder}/odds").count() == ROWS // 2
    kinds = db.relation("event").spark().groupBy("kind").count().collect()
    assert sorted(map(tuple, kinds)) == [(f"k{n}", ROWS // 5) for n in range(5)]


def test_an_ordered_answer(spark: Any, events: tuple[Path, Database]) -> None:
    """The fourth to the sixth number of those that end with 4 or 9 are 19, 24, 29."""
    expected = [("k4", 19), ("k4", 24), ("k4", 29)]
    answer = events[1].sql(ORDERED)
    found = answer.spark("ordered_answer")
    assert found.columns == ["kind", "kind"]
    assert [tuple(row) for row in spark.table("ordered_answer").take(3)] == expected
    assert len(answer) == ROWS - 3
    assert repr(answer).endswith(f"{ROWS - 3:,} rows>\n  …")
    returned = ReturnedBytes(spark)
    first = events[1].sql(ORDERED.replace("OFFSET", "LIMIT 3 OFFSET"))
    assert first.rows() == expected
    assert first.spark().collect() == found.take(3)
    assert returned.total < RETURNED_MAX
    assert answer.rows()[:3] == expected
