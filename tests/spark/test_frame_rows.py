"""Frames that transactions write: tasks read them, and they do what the same rows do here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException

import corollary
from corollary.core.arrow import schema_of
from corollary.database.database import Database, state_of
from corollary.database.writing import frame_rows
from corollary.engines.spark.relation import handle
from corollary.errors import ConstraintError, InputError
from corollary.warehouse.files.file_rows import FileRows
from support.selection import examples
from support.spark.in_process_partitions import forbid_collecting, share_out
from support.spark.returned_bytes import ReturnedBytes
from support.streaming.stream_frames import Frame

BASES = """
.decl p(x: number, y: symbol?)
.decl q(x: number, y: symbol)
.decl k(a: number?, b: number, c: symbol) key(a, b)
.decl u(x: number?, y: symbol) bag
.decl f(x: number) bag
p(1, "a").
f(1). f(1).
"""
PROGRAM = f"""{BASES}
.decl total(y: symbol?, n: number)
total(y, n) :- p(_, y), n = sum x : {{ p(x, y) }}.
.decl copies(y: symbol, n: number)
copies(y, n) :- u(_, y), n = sum c : {{ u.rows(_, y, c) }}.
.output total, copies, k, u, p
"""
NUMBERS, TEXTS = st.integers(0, 3), st.sampled_from("ab")
ROWS = {
    "p": st.tuples(NUMBERS, TEXTS | st.none()),
    "k": st.tuples(NUMBERS | st.none(), NUMBERS, TEXTS),
    "u": st.tuples(NUMBERS | st.none(), TEXTS),
    "u.rows": st.tuples(NUMBERS, TEXTS, st.integers(1, 3)),
    "f": st.tuples(NUMBERS),
}
SHOWN = (*ROWS, "total", "copies")


def frame(database: Database, relation: str, rows: list[tuple[Any, ...]], parts: int = 1) -> Frame:
    """The rows of a relation as a frame with some partitions."""
    return made(schema_of(state_of(database).loaded.normal.relations[relation]), rows, parts)


def made(schema: pa.Schema, rows: list[tuple[Any, ...]], parts: int = 1) -> Frame:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return Frame(pa.Table.from_arrays(arrays, schema.names), parts, is_streaming=False)


@st.composite
def operations(draw: st.DrawFn) -> tuple[str, str, list[tuple[Any, ...]]]:
    relation = draw(st.sampled_from([*ROWS]))
    kinds = ["insert", "delete", *(["upsert", "keys"] if relation == "k" else [])]
    kind, rows = draw(st.sampled_from(kinds)), draw(st.lists(ROWS[relation], max_size=6))
    if kind == "keys":
        return kind, relation, [row[:2] for row in rows]
    return kind, relation, rows


def write(tx: Any, kind: str, relation: str, rows: Any) -> None:
    if kind == "keys":
        tx.delete(relation, keys=rows)
    else:
        getattr(tx, kind)(relation, rows)


@given(
    st.lists(st.lists(operations(), max_size=4), max_size=4),
    st.integers(1, 4),
    st.sampled_from([None, 300]),
    st.sampled_from([0, 2]),
)
@settings(max_examples=examples(12, 500))
def test_frames_do_what_rows_do(
    transactions: list[list[tuple[str, str, list[Any]]]],
    parts: int,
    budget: int | None,
    inline: int,
) -> None:
    here = corollary.open(None, engine="local")
    here.load(text=PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        placement = "partitions" if budget is None else "auto"
        share_out(patch, placement, memory=budget)
        patch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", parts)
        patch.setattr(frame_rows, "INLINE_EVENTS", inline)
        there = corollary.open(None)
        there.load(text=PROGRAM)
        for each in transactions:
            outcomes = []
            for database in (here, there):
                try:
                    with database.transaction() as tx:
                        for kind, name, rows in each:
                            given_rows: Any = rows
                            if database is there:
                                schema = frame(there, name, []).table.schema
                                width = len(rows[0]) if rows else len(schema)
                                schema = pa.schema(list(schema)[:width])
                                given_rows = made(schema, rows, parts)
                            write(tx, kind, name, given_rows)
                    kept = {name: len(rows) for name, rows in tx.kept.items()}
                    outcomes.append((kept, {n: c.counts for n, c in tx.changes.items()}))
                except ConstraintError as error:
                    outcomes.append((str(error.diagnostics[0].code), {}))
            assert outcomes[0] == outcomes[1]
            for name in SHOWN:
                found, expected = (
                    Counter(map(repr, db.relation(name).rows())) for db in (there, here)
                )
                assert found == expected, name
        there.close()


# ------------------------------------------------------------------------------------ one by one


@pytest.fixture
def db(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    share_out(monkeypatch, "partitions")
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1)
    with corollary.open(None) as found:
        found.load(text=BASES)
        yield found


WRONG: dict[str, tuple[str, pa.Table]] = {
    "other columns": ("p", pa.table({"x": [1], "z": ["a"]})),
    "too few": ("p", pa.table({"n": [1]})),
    "another type": ("p", pa.table({"x": ["1"], "y": ["a"]})),
    "null": ("u", pa.table({"x": [1, 2], "y": ["a", None]})),
    "a value beyond": ("p", pa.table({"x": [1.0, 2.0, 2.5], "y": ["a"] * 3})),
    "no copies": ("u.rows", pa.table({"x": [1], "y": ["a"], "•copies": [0]})),
}


@pytest.mark.parametrize("case", WRONG)
def test_frames_that_do_not_fit(db: Database, case: str) -> None:
    """The message is that about the same table, with the number of the row in the whole frame."""
    name, table = WRONG[case]
    if case == "no copies":
        columns = state_of(db).loaded.normal.relations["u.rows"].columns
        table = table.rename_columns(list(columns))
    local = corollary.open(None, engine="local")
    local.load(text=BASES)
    messages = []
    for database, rows in ((local, table), (db, Frame(table, 2, is_streaming=False))):
        with database.transaction() as tx, pytest.raises(InputError) as raised:
            tx.insert(name, rows)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "a value beyond" not in case or "Row 3 of the table does not fit" in messages[1]


def test_workers_that_lack_the_package(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PythonException("ModuleNotFoundError: No module named 'corollary'")

    monkeypatch.setattr(Frame, "mapInArrow", fail)
    with db.transaction() as tx, pytest.raises(InputError, match="C0995"):
        tx.insert("q", frame(db, "q", [(1, "a")]))


def staged(db: Database) -> list[Path]:
    tasks = state_of(db).engine.tasks
    assert tasks is not None
    return list(Path(tasks.directory).glob("staged-*"))


def test_staged_files_go_with_the_transaction(db: Database) -> None:
    rows = [(n, n, "a") for n in range(9)]
    tx = db.transaction()
    tx.insert("k", frame(db, "k", rows, 2))
    assert staged(db)
    tx.rollback()
    assert not staged(db)
    with pytest.raises(ConstraintError), db.transaction() as tx:
        tx.upsert("k", frame(db, "k", [*rows, (1, 1, "b")], 2))
    assert not len(db.relation("k"))
    with db.transaction() as tx:
        tx.upsert("k", frame(db, "k", rows, 2))
    assert len(db.relation("k")) == 9
    del tx
    assert not staged(db)


def test_no_row_passes_the_driver(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into relations without and with rows: sets, keys and copies."""

    def refuse(rows: FileRows) -> pa.Table:
        raise AssertionError(f"{len(rows)} rows of `{rows.relation.name}` come to the driver")

    forbid_collecting(monkeypatch)
    monkeypatch.setattr(FileRows, "table", refuse)
    monkeypatch.setattr(FileRows, "slices", refuse)
    monkeypatch.setattr(Frame, "toArrow", lambda self: self.table.slice(0, 0))
    numbers = range(20)
    for _ in range(2):
        with db.transaction() as tx:
            tx.insert("q", frame(db, "q", [(n, "b") for n in numbers], 3))
            tx.insert("f", frame(db, "f", [(n % 3,) for n in numbers], 3))
            tx.insert("u", frame(db, "u", [(n % 4, "b") for n in numbers], 3))
            tx.upsert("k", frame(db, "k", [(n, n, "b") for n in numbers], 3))
        with db.transaction() as tx:
            tx.delete("q", frame(db, "q", [(n, "b") for n in numbers if n % 2], 3))
            tx.delete("u", frame(db, "u", [(n % 2, "b") for n in numbers], 3))
        with db.transaction() as tx:  # counts of copies replace others
            tx.insert("u", frame(db, "u", [(n % 4, "c") for n in numbers], 3))
            tx.delete("u", frame(db, "u", [(2, "c"), (3, "c")] * 4, 3))
        assert tx.changes["u"].counts == (12, 0)
    monkeypatch.undo()
    assert set(db.relation("q").rows()) == {(n, "b") for n in numbers if n % 2 == 0}
    assert Counter(db.relation("f").rows()) == {(0,): 14, (1,): 2 + 14, (2,): 12}
    assert len(db.relation("k")) == 20
    # 5 copies of each of 0 to 3 come, 10 of 0 and of 1 go, twice.
    assert Counter(db.relation("u").rows()) == {
        (2, "b"): 10,
        (3, "b"): 10,
        (0, "c"): 10,
        (1, "c"): 10,
        (2, "c"): 2,
        (3, "c"): 2,
    }


# --------------------------------------------------------------------------------------- on Spark


def test_frames_of_a_session(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several partitions, keys, copies, records, and an error in a task."""
    program = BASES + ".type Point = [x: number, y: number]\n.decl at(n: number, where: Point)\n"
    monkeypatch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", 1000)
    numbers = spark.range(0, 40_000, 1, 4)
    with corollary.open(tmp_path / "w", spark=spark, placement="partitions") as db:
        db.load(text=program)
        returned = ReturnedBytes(spark)
        with db.transaction() as tx:
            tx.insert("q", numbers.selectExpr("id x", "string(id % 7) y"))
            tx.upsert("k", numbers.selectExpr("id a", "id b", "'old' c"))
            tx.insert("u", numbers.selectExpr("id % 10 x", "'b' y"))
            tx.insert("at", numbers.selectExpr("id n", "struct(id x, -id y) where"))
        with db.transaction() as tx:
            tx.delete("q", numbers.where("id >= 10").selectExpr("string(id % 7) y", "id x"))
            tx.upsert("k", numbers.where("id < 5").selectExpr("id a", "id b", "'new' c"))
            tx.delete("k", keys=numbers.where("id >= 9").selectExpr("id a", "id b"))
            tx.delete("u", numbers.selectExpr("id % 5 x", "'b' y"))
            tx.insert("u", numbers.where("id < 3").selectExpr("nullif(id, 0) x", "'c' y"))
        assert returned.total < 1 << 20  # the rows of each frame take as much
        assert set(db.relation("q").rows()) == {(n, str(n % 7)) for n in range(10)}
        assert sorted(db.relation("k").rows()) == [
            (n, n, "new" if n < 5 else "old") for n in range(9)
        ]
        assert Counter(db.relation("u").rows()) == {
            **{(n, "b"): 4000 for n in range(5, 10)},
            **{(n or None, "c"): 1 for n in range(3)},
        }
        assert db.query("at(7, [x, y])").to_pylist() == [{"x": 7, "y": -7}]
        wrong = numbers.selectExpr("if(id = 32100, 0.5D, double(id)) x", "'a' y")
        with db.transaction() as tx, pytest.raises(InputError, match="Row 32101 of the table"):
            tx.insert("q", wrong)
