"""Documents whose streams come through Spark: state for each of them, rows that come again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.states import State
from corollary.database.database import state_of
from corollary.documents.spark import EVENT_PROGRAM, EVENT_ROWS, EventSplit, watch
from corollary.errors import InputError
from support.command_line import cli
from support.streaming.spark_documents import VIEWS, arrive, follow


def test_documents_are_followed_and_rows_count_once(spark: Any, tmp_path: Path) -> None:
    folder, place = tmp_path / "arrivals", tmp_path / "warehouse"
    first = [
        ("d1", "pay", 1, "<pay>o1</pay>", False),
        ("d1", "ship", 1, "<ship>o1</ship>", False),
        ("d2", "pay", 1, "<pay>o2</pay><pay>o3</pay>", False),
        ("d3", "pay", 1, None, True),
    ]
    arrive(folder, "1.json", *first)
    found = follow(spark, folder, place)
    assert found["answer"] == {("d1", "shipped", '["o1"]')}
    assert ("d1", "shipped", 1.0) in found["value"]
    assert ("d2", "shipped", 0.5) in found["value"]
    assert ("d3", "any", 0.5) in found["value"]
    arrive(folder, "2.json", *first)  # a source that sends everything again
    arrive(
        folder,
        "3.json",
        ("d2", "ship", 2, "<ship>o3</ship>", False),
        ("d2", "later", 1, "<x/>", False),
        ("d3", "pay", 2, "<pay>o9</pay>", False),
        ("d3", "ship", 1, None, True),
        ("d1", "ship", 7, "<ship>", False),
    )
    found = follow(spark, folder, place)  # state is that of the checkpoint
    assert found["answer"] == {("d1", "shipped", '["o1"]'), ("d2", "shipped", '["o3"]')}
    assert {("d2", "shipped", 1.0), ("d3", "shipped", 0.0)} <= found["value"]
    assert {(doc, function, seq) for doc, function, seq, _ in found["refused"]} == {
        ("d3", "pay", 2),
        ("d1", "ship", 7),
    }
    assert {("d3", "any", 0.0), ("d3", "shipped", 0.0)} <= found["value"]


def test_events_are_rows_of_relations() -> None:
    columns = ("doc", "op", "view", "text", "value", "before", "seq", "since")
    events = [
        ("d", "sure", "v", '["a", "b"]', None, None, None, None),
        ("d", "retracted", "v", '["c"]', None, None, None, None),
        ("d", "value", "v", None, 1.0, 0.5, None, None),
        ("e", "value", "v", None, 0.25, -1.0, None, None),
        ("d", "waits", "v", "f", None, None, None, "7"),
        ("d", "settled", "v", "g", None, None, None, "6"),
        ("d", "close", None, "f", None, None, None, None),
        ("d", "refused", "f", "too late", None, None, 3, None),
    ]
    types = [pa.string(), *[pa.string()] * 3, pa.float64(), pa.float64(), pa.int64(), pa.string()]
    arrays = map(pa.array, zip(*events, strict=True), types)
    database = corollary.open(None, engine="local")
    database.load(text=EVENT_PROGRAM)
    known = state_of(database).loaded.normal.relations
    split = EventSplit([known[each.relation] for each in EVENT_ROWS])
    found = {
        (each.sign.value, each.relation.removeprefix("document_")): to_python(rows)
        for each, rows in zip(EVENT_ROWS, split(pa.table([*arrays], columns)), strict=True)
    }
    came, went = State.ADDED.value, State.REMOVED.value
    assert found == {
        (went, "answer"): [("d", "v", '["c"]')],
        (went, "label"): [("d", "v", '["c"]', 0, "c")],
        (went, "value"): [("d", "v", 0.5)],
        (went, "waits"): [("d", "v", "g")],
        (went, "since"): [("d", "v", "g", "6")],
        (came, "answer"): [("d", "v", '["a", "b"]')],
        (came, "label"): [("d", "v", '["a", "b"]', 0, "a"), ("d", "v", '["a", "b"]', 1, "b")],
        (came, "value"): [("d", "v", 1.0), ("e", "v", 0.25)],
        (came, "waits"): [("d", "v", "f")],
        (came, "since"): [("d", "v", "f", "7")],
        (came, "closed"): [("d", "f")],
        (came, "refused"): [("d", "f", 3, "too late")],
    }


def test_rows_retract_and_replace(spark: Any, tmp_path: Path) -> None:
    folder, place = tmp_path / "arrivals", tmp_path / "warehouse"
    arrive(
        folder,
        "1.json",
        ("d", "pay", 1, "<pay>o1</pay>", False),
        ("d", "ship", 1, "<ship>o1</ship>", False),
        ("e", "pay", 1, "<pay>o2</pay>", False, "add"),
    )
    where = "partitions"  # tasks write the rows of all relations
    assert follow(spark, folder, place, where, retractions=True)["answer"]
    arrive(
        folder,
        "2.json",
        ("d", "ship", 2, "<ship>o1</ship>", True, "retract"),
        ("e", "pay", 2, "<pay>o3</pay>", False, "replace", "<pay>o2</pay>"),
        ("e", "ship", 1, "<ship>o3</ship>", False),
    )
    found = follow(spark, folder, place, where, retractions=True)
    assert found["answer"] == {("e", "shipped", '["o3"]')}
    assert {("d", "shipped", 0.5), ("e", "shipped", 1.0)} <= found["value"]
    assert not found["refused"]


def test_documents_of_a_collection_are_joined_in_time(spark: Any, tmp_path: Path) -> None:
    folder, place = tmp_path / "arrivals", tmp_path / "warehouse"
    query = 'doc("a")/r/*$x arrived $t and doc("b")/s/*$x where now - $t <= 10s return $x'
    options = {"views": {"v": query}, "template": {"a": "r[!f]", "b": "s[o1 o2]"}}
    arrive(
        folder,
        "1.json",
        ("n/a", "f", 1, "o1", False, None, None, "100"),
        ("n/a", "f", 2, "o2", False, None, None, "105"),
        ("m/a", "f", 1, "o2", True, None, None, 7),
    )
    found = follow(spark, folder, place, **options)
    assert found["answer"] == {("n", "v", '["o1"]'), ("n", "v", '["o2"]'), ("m", "v", '["o2"]')}
    assert found["since"] == {("n", "v", "a:f", "105")}
    arrive(folder, "2.json", ("n/a", None, 3, None, False, None, None, "112"))
    found = follow(spark, folder, place, **options)
    assert found["answer"] == {("n", "v", '["o2"]'), ("m", "v", '["o2"]')}


def test_what_leaves_a_window_by_the_clock(spark: Any, tmp_path: Path) -> None:
    folder, place = tmp_path / "arrivals", tmp_path / "warehouse"
    query = "/r/pay arrived $t [*$o] where now - $t <= 1s return $o"
    options = {"views": {"v": query}, "template": "r[!pay]", "clock": True}
    arrive(folder, "1.json", ("d", "pay", 1, "pay[o1]", False))
    assert follow(spark, folder, place, **options)["answer"] == {("d", "v", '["o1"]')}
    time.sleep(1.1)
    arrive(folder, "2.json", ("e", "pay", 1, "pay[o2]", False))  # nothing comes for the first one
    assert follow(spark, folder, place, **options)["answer"] == {("e", "v", '["o2"]')}


def test_the_command_watches(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("views.txt").write_text("found: /r/b/*$x\n", "utf-8")
    arrive(
        Path("in"),
        "1.json",
        ("d", "", 0, "<r><?call f?></r>", False),
        ("d", "f", 1, "<b>1</b>", False),
        ("e", "f", 1, "<b>2</b>", False),
    )
    result = cli(
        *("documents", "watch", "--warehouse", "wh", "--views", "views.txt"),
        *("--source", "in", "--once", "--format", "json"),
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[0]) == {"batch": 0, "events": 3}
    waits = cli("query", "wh", "document_waits(doc, view, function)")
    assert waits.stdout.splitlines() == ["doc\tview\tfunction", "d\tfound\tf"]
    arrive(Path("in"), "2.json", ("e", "", 0, "<r><?call f?></r>", False))
    result = cli(
        *("documents", "watch", "--warehouse", "wh", "--views", "views.txt"),
        *("--source", "in", "--once"),
    )
    assert result.exit_code == 0, result.output
    answers = cli("query", "wh", "document_answer(doc, _, answer)")
    assert answers.stdout.splitlines() == ["doc\tanswer", 'd\t["1"]', 'e\t["2"]']


def test_a_database_in_memory_is_refused(spark: Any) -> None:
    with (
        corollary.open(None, engine="local") as database,
        pytest.raises(InputError, match="C1250"),
    ):
        watch(database, spark.range(1), VIEWS)


@pytest.mark.long
def test_one_large_document_on_spark(spark: Any) -> None:
    from corollary.documents.collection import Collection
    from corollary.documents.document import ActiveDocument

    database = corollary.open(None, engine="spark", spark=spark, placement="partitions")
    text = "r[" + " ".join(f"a[b[{at}]]" for at in range(50)) + " c[!f]]"
    with database:
        document = ActiveDocument.from_terms(text, collection=Collection(database))
        view = document.view("/r[a/b][c/d]")
        assert view.value == 0.5
        document.add("f", "d")
        assert view.value == 1
