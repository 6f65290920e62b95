"""The writers of `format("corollary")`, called as Spark calls them."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import from_arrow_schema

import corollary
from corollary.database.access.principals import AccessRole
from corollary.database.database import Database, warehouse_of
from corollary.errors import CorollaryError
from corollary.serve.tokens import TokenStore
from corollary.spark import writing
from corollary.spark.source import CorollarySource
from corollary.warehouse import warehouse
from corollary.warehouse.catalog.retention import list_intents

PROGRAM = """
.type Pair = [a: number, b: number]
.decl edge(x: number, y: symbol?) key(x)
.decl far(x: number)
far(x) :- edge(x, _), x > 5.
.decl copies(x: number) bag
.decl pairs(x: number, pair: Pair)
.decl open()
.decl seen(at: timestamp, on: date, u: unsigned)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "w")


@pytest.fixture
def db(path: str) -> Any:
    with corollary.open(path, engine="local") as found:
        found.load(text=PROGRAM)
        yield found


@pytest.fixture(params=[writing.INLINE_ROWS, 0], ids=["inline", "files"])
def staging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "INLINE_ROWS", request.param)


def source(path: str, **options: Any) -> CorollarySource:
    given = {"path": path, **{name: str(value) for name, value in options.items()}}
    return CorollarySource(CaseInsensitiveDict(given))


def write(path: str, *tasks: pa.Table, batch: int | None = None, **options: Any) -> None:
    """Write the rows of tasks, as Spark does: everything is pickled."""
    mode = options.pop("mode", "append")
    asked, schema = source(path, **options), from_arrow_schema(tasks[0].schema)
    make = asked.writer if batch is None else asked.streamWriter
    writer = pickle.loads(pickle.dumps(make(schema, mode == "overwrite")))
    messages = pickle.loads(pickle.dumps([writer.write(iter(each.to_batches())) for each in tasks]))
    if batch is None:
        writer.commit(messages)
    else:
        make(schema, mode == "overwrite").commit(messages, batch)


def edges(*rows: tuple[int, str | None], op: str | None = None) -> pa.Table:
    columns: dict[str, Any] = {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}
    schema = pa.schema([("x", pa.int64()), ("y", pa.string())])
    table = pa.table(columns, schema=schema)
    return table if op is None else table.append_column("op", pa.array([op] * len(rows)))


def rows(db: Database, name: str) -> Counter[Any]:
    return Counter(db.relation(name).rows())


def refusal(path: str, *tasks: pa.Table, **options: Any) -> str:
    with pytest.raises(CorollaryError) as raised:
        write(path, *tasks, **options)
    return str(raised.value)


def left_over(db: Database, path: str) -> list[Any]:
    held = warehouse_of(db)
    assert held is not None
    return [*list_intents(held.catalog), *Path(path).rglob("*.arrow")]


@pytest.mark.usefixtures("staging")
def test_a_frame_is_one_transaction(db: Database, path: str) -> None:
    write(path, edges((1, "a"), (7, None)), edges((8, "b")), edges(), relation="edge")
    assert db.relation("far").rows() == [(7,), (8,)]
    assert db.commits == 2
    changed = pa.concat_tables([edges((1, "a"), op="delete"), edges((1, "c"), op="+")])
    write(path, changed, edges((8, "b"), op="d"), relation="edge", op="op")
    assert rows(db, "edge") == Counter([(1, "c"), (7, None)])
    assert (db.commits, left_over(db, path)) == (3, [])


@pytest.mark.usefixtures("staging")
def test_overwriting_is_a_difference(db: Database, path: str) -> None:
    write(path, edges((1, "a"), (2, "b"), (3, None)), relation="edge")
    write(path, edges((3, None)), edges((2, "c")), relation="edge", mode="overwrite")
    change = db.changes(3)["edge"]
    assert change.added.to_pylist() == [{"x": 2, "y": "c"}]
    assert {row["x"] for row in change.removed.to_pylist()} == {1, 2}
    write(path, pa.table({"x": [1, 1, 2]}), relation="copies")
    write(path, pa.table({"x": [1, 2]}), pa.table({"x": [2]}), relation="copies", mode="overwrite")
    assert rows(db, "copies") == Counter({(1,): 1, (2,): 2})
    write(path, edges(), relation="edge", mode="overwrite")
    assert not rows(db, "edge")


def test_records_and_relations_without_columns(db: Database, path: str) -> None:
    pair = pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    write(path, pa.table({"x": [5], "pair": pair}), relation="pairs")
    assert db.relation("pairs").rows() == [(5, (1, 2))]
    write(path, pa.table({"holds": [True]}), relation="open")
    assert db.relation("open").rows() == [()]


def test_types_that_spark_has_others_for(db: Database, path: str) -> None:
    row = (datetime(2026, 11, 18, 8, 0, 0, 1, UTC), date(2026, 11, 18), 2**64 - 1)
    types = (pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(20, 0))
    columns = [pa.array([value], type_) for value, type_ in zip(row, types, strict=True)]
    write(path, pa.table(columns, ["at", "on", "u"]), relation="seen")
    assert db.relation("seen").rows() == [row]


def test_a_batch_is_written_once(db: Database, path: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": "some query"}))
    options = {"relation": "edge", "checkpointLocation": f"file:{checkpoint}"}
    for batch in (0, 0, 1, 1, 0):
        write(path, edges((batch, "a")), batch=batch, **options)
    assert rows(db, "edge") == Counter([(0, "a"), (1, "a")])
    assert db.commits == 3
    assert left_over(db, path) == []
    for version in (3, 3, 4):
        write(path, edges((version, "a")), relation="edge", txnAppId="me", txnVersion=version)
    assert len(rows(db, "edge")) == 4
    assert db.commits == 5
    assert "C1572" in refusal(path, edges((9, "a")), batch=2, relation="edge")
    assert left_over(db, path) == []


def test_writing_needs_a_role(db: Database, path: str) -> None:
    held = warehouse_of(db)
    assert held is not None
    tokens = TokenStore(held.catalog)
    ann, bob = tokens.add("ann", AccessRole.READ), tokens.add("bob", AccessRole.WRITE)
    for who in ({"reader": "ann"}, {"token": ann}):
        assert "C1601" in refusal(path, edges((1, "a")), relation="edge", **who)
    write(path, edges((1, "a")), relation="edge", token=bob)
    assert rows(db, "edge") == Counter([(1, "a")])


REFUSED: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "columns": (pa.table({"a": [1], "b": ["x"], "c": [2]}), {"relation": "edge"}, "C0983"),
    "types": (pa.table({"x": [True], "y": ["a"]}), {"relation": "edge"}, "C0983"),
    "null": (pa.table({"x": pa.array([None], pa.int64()), "y": ["a"]}), {"relation": "edge"}, "C"),
    "op": (edges((1, "a")), {"relation": "edge", "op": "op"}, "C0984"),
    "operation": (edges((1, "a"), op="keep"), {"relation": "edge", "op": "op"}, "C0985"),
    "derived": (pa.table({"x": [1]}), {"relation": "far"}, "C0915"),
    "key": (edges((1, "a"), (1, "b")), {"relation": "edge"}, "C0937"),
    "query": (edges((1, "a")), {"query": "edge(x, y)"}, "C1570"),
    "name": (edges((1, "a")), {"relation": "edge", "txnAppId": "me"}, "C1570"),
    "number": (edges((1, "a")), {"relation": "edge", "txnVersion": 7}, "C1570"),
    "both": (
        edges((1, "a"), op="+"),
        {"relation": "edge", "op": "op", "mode": "overwrite"},
        "C1570",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_changes_nothing(what: str, db: Database, path: str) -> None:
    table, options, code = REFUSED[what]
    assert f"error[{code}" in refusal(path, table, **options)
    assert (db.commits, left_over(db, path)) == (1, [])


def test_every_catalog_and_store(
    places: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks need the files only, which may be objects."""
    monkeypatch.setattr(writing, "INLINE_ROWS", 0)
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 0)
    path = places()
    with corollary.open(path, engine="local") as db:
        db.load(text=PROGRAM)
        write(path, edges((1, "a"), (7, None)), edges((8, "b")), relation="edge")
        write(path, edges((1, "a"), op="d"), relation="edge", op="op")
        assert rows(db, "edge") == Counter([(7, None), (8, "b")])
    asked = source(path, relation="edge")
    reader = asked.reader(asked.schema())
    found = [
        row
        for part in pickle.loads(pickle.dumps(reader.partitions()))
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    assert sorted(row["x"] for row in found) == [7, 8]
