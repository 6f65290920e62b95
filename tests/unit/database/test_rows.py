"""Rows that users pass: checked column by column as one by one, and inserted in parts."""

from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corollary
from corollary.core.program import Relation
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)
from corollary.core.values import is_value
from corollary.database.writing import operations, rows
from support.selection import examples

TYPES = (SYMBOL, NUMBER, UNSIGNED, FLOAT, decimal(5, 2), decimal(38, 2), BOOL, DATE, TIMESTAMP)
VALUES: tuple[Any, ...] = (
    *(None, "a", "é", "\ud800", 1, -1, 2**63, 2**64, 1.5, float("nan"), True, b"a", (1,)),
    *(Decimal("1.50"), Decimal("1.505"), Decimal("NaN"), Decimal(10**35), Decimal(10**37)),
    *(date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2)),  # noqa: DTZ001
)


@given(
    st.tuples(st.sampled_from(TYPES), st.booleans()),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)
@settings(max_examples=examples(25, 2000))
def test_columns_are_checked_like_rows(kind: tuple[Type, bool], values: list[Any]) -> None:
    type_ = kind[0].with_null(kind[1])
    relation = Relation("p", ("x",), (type_,), is_derived=False)
    given_rows = [(value,) for value in values]
    fits = all(is_value(value, type_) for value in values)
    if rows._fit_by_column(given_rows, relation):
        assert fits
    if fits:
        assert rows.check_rows(given_rows, relation) == given_rows
    else:
        with pytest.raises(corollary.InputError):
            rows.check_rows(given_rows, relation)


def test_many_rows_are_inserted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "ENCODED_MAX_ROWS", 3)
    text = ".decl p(x: number, y: symbol)\n.decl q(x: number)\nq(x) :- p(x, _).\n.output q\n"
    database = corollary.open(None, engine="local")
    database.load(text=text)
    table = pa.table({"x": [*range(10), 9], "y": ["a", "b"] * 5 + ["b"]})
    with database.transaction() as tx:
        tx.insert("p", table)
    assert len(database.relation("p")) == 10
    with database.transaction() as tx:
        tx.delete("p", table.slice(0, 7))
    assert sorted(database.relation("q").rows()) == [(7,), (8,), (9,)]


# --- forms of rows --------------------------------------------------------------------------------

PEOPLE = """
.decl person(id: number, name: symbol, height: float?) key(id)
.decl tall(name: symbol)
tall(n) :- person(_, n, h), h > 1.8.
"""
ANN, BOB = (1, "Ann", 1.7), (2, "Bob", 1.9)
NAMED = {"name": ["Ann", "Bob"], "id": [1, 2], "height": [1.7, 1.9], "more": [0, 0]}
PLACED = {"a": [1, 2], "b": ["Ann", "Bob"], "c": [1.7, 1.9]}
RECORDS = np.array([ANN, BOB], [("id", "i8"), ("name", "U9"), ("height", "f8")])

FORMS: dict[str, Any] = {
    "tuples": [ANN, BOB],
    "a generator": (row for row in (ANN, BOB)),
    "lists": [list(ANN), list(BOB)],
    "dictionaries": [
        {"name": "Ann", "id": 1, "height": 1.7},
        {"id": 2, "height": 1.9, "name": "Bob"},
    ],
    "NumPy scalars": [(np.int64(1), np.str_("Ann"), np.float64(1.7)), BOB],
    "rows that are arrays": [np.array(ANN, object), np.array(BOB, object)],
    "an array of objects": np.array([ANN, BOB], object),
    "a structured array": RECORDS,
    "a table by name": pa.table(NAMED),
    "a table by place": pa.table(PLACED),
    "a batch": pa.RecordBatch.from_pydict(PLACED),
    "a frame by name": pd.DataFrame(NAMED),
    "a frame by place": pd.DataFrame([ANN, BOB]),
}


def people(**options: Any) -> corollary.Database:
    database = corollary.open(None, engine="local", **options)
    database.load(text=PEOPLE)
    return database


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_rows(form: str) -> None:
    database = people()
    with database.transaction() as tx:
        tx.insert("person", FORMS[form])
    assert sorted(database.relation("person").rows()) == [ANN, BOB]
    assert database.relation("tall").rows() == [("Bob",)]


def test_a_dictionary_may_leave_out_what_may_be_null() -> None:
    database = people()
    with database.transaction() as tx:
        tx.insert("person", [{"id": 1, "name": "Ann"}])
    assert database.relation("person").rows() == [(1, "Ann", None)]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_texts_of_arrays_are_checked(text: str) -> None:
    records = RECORDS.copy()
    records["name"][1] = text
    with people().transaction() as tx, pytest.raises(corollary.InputError, match="C0910"):
        tx.insert("person", records)


ONE = {
    "text": pa.array(["1"]),
    "large text": pa.array(["1"], pa.large_string()),
    "category": pa.array(["1"]).dictionary_encode(),
    "bytes": pa.array([b"1"]),
    "number": pa.array([1], pa.int16()),
    "unsigned": pa.array([1], pa.uint64()),
    "category of numbers": pa.array([1]).dictionary_encode(),
    "whole float": pa.array([1.0], pa.float32()),
    "float": pa.array([1.5]),
    "decimal": pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
    "whole decimal": pa.array([Decimal(1)], pa.decimal128(5, 0)),
    "bool": pa.array([True]),
    "date": pa.array([date(2026, 1, 2)]),
    "time": pa.array([datetime(2026, 1, 2, tzinfo=UTC)]),
    "time without zone": pa.array([datetime(2026, 1, 2)]),  # noqa: DTZ001
    "nanoseconds": pa.array([1_000], pa.timestamp("ns", "UTC")),
    "null": pa.nulls(1),
}
"""A column of each type that a table may have."""
TEXTS = ("text", "large text", "category")
WHOLE = ("number", "unsigned", "category of numbers", "whole decimal")
FITTING = {
    SYMBOL: TEXTS,
    NUMBER: (*WHOLE, "whole float"),
    UNSIGNED: (*WHOLE, "whole float"),
    FLOAT: ("number", "unsigned", "category of numbers", "whole float", "float"),
    decimal(5, 2): (*WHOLE, "decimal"),
    BOOL: ("bool",),
    DATE: ("date",),
    TIMESTAMP: ("time", "nanoseconds"),
}


@pytest.mark.parametrize("kind", ONE)
@pytest.mark.parametrize("type_", FITTING, ids=str)
def test_no_column_of_a_table_becomes_another_kind(type_: Type, kind: str) -> None:
    relation = Relation("p", ("x",), (type_.with_null(kind == "null"),), is_derived=False)
    table = pa.table({"x": ONE[kind]})
    if kind in FITTING[type_] or kind == "null":
        (value,) = rows.check_rows(table, relation)["x"].to_pylist()
        assert value is None if kind == "null" else is_value(value, type_)
    else:
        with pytest.raises(corollary.InputError, match=r"C0910.*`x` of `p`"):
            rows.check_rows(table, relation)


def test_a_value_of_a_table_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK_ROWS", 3)
    relation = Relation("p", ("x",), (NUMBER,), is_derived=False)
    good = pa.table({"x": [float(number) for number in range(10)]})
    assert rows.check_rows(good, relation)["x"].to_pylist() == list(range(10))
    with pytest.raises(corollary.InputError) as caught:
        rows.check_rows(pa.table({"x": [0.0, 1.0, 2.0, 3.0, 4.5, 5.5]}), relation)
    assert "Row 5 of the table does not fit: `4.5` is not a number (column `x` of `p`)" in str(
        caught.value
    )
    late = pa.table({"x": pa.array([2**40], pa.int64()).cast(pa.timestamp("s", "UTC"))})
    with pytest.raises(corollary.InputError, match="C0910"):
        rows.check_rows(late, Relation("p", ("x",), (TIMESTAMP,), is_derived=False))


@pytest.mark.parametrize(
    "frame", [pa.table({"x": ["1"]}), pd.DataFrame({"x": ["1"]}), np.array([["1"]])]
)
def test_texts_do_not_become_numbers(frame: Any) -> None:
    database = corollary.open(None, engine="local")
    database.load(text=".decl p(x: number)")
    with pytest.raises(corollary.InputError) as caught:
        database.transaction().insert("p", frame)
    assert "in the column `x` of `p`, which is a `number`" in str(caught.value)
    assert "convert it to `int64` first" in str(caught.value)


@pytest.mark.parametrize("kind", ["i4", "u2", "i8", "f8"])
def test_arrays_of_two_dimensions(kind: str) -> None:
    database = corollary.open(None, engine="local")
    database.load(text=".decl e(x: number, y: number)\n.decl one(x: number)\n.decl no()")
    table = np.arange(2000, dtype=kind).reshape(1000, 2)
    with database.transaction() as tx:
        tx.insert("e", table)
        tx.insert("e", table[::-1])  # not contiguous
        tx.insert("one", np.arange(3, dtype=kind))
        tx.insert("no", np.zeros((2, 0)))
    assert max(database.relation("e").rows()) == (1998, 1999)
    assert len(database.relation("e")) == 1000
    assert sorted(database.relation("one").rows()) == [(0,), (1,), (2,)]
    assert database.relation("no").rows() == [()]


def test_a_streaming_frame_goes_to_a_stream() -> None:
    frame = SimpleNamespace(isStreaming=True, toArrow=lambda: pytest.fail("it has no end"))
    with pytest.raises(corollary.InputError, match=r'db\.stream\(frame, into="person"\)'):
        people().transaction().insert("person", frame)


# --- keys -----------------------------------------------------------------------------------------

TALLER = (1, "Ann", 2.0)


@pytest.mark.parametrize(
    "rows",
    [
        [TALLER],
        [{"id": 1, "name": "Ann", "height": 2.0}],
        pa.table({"i": [1], "n": ["Ann"], "h": [2.0]}),
    ],
)
def test_upsert_replaces_what_has_the_same_key(rows: Any) -> None:
    database = people()
    with database.transaction() as tx:
        tx.insert("person", [ANN])
        tx.upsert("person", [BOB])
    with database.transaction() as tx:
        tx.upsert("person", rows)
    assert sorted(database.relation("person").rows()) == [TALLER, BOB]
    assert tx.changes["person"].counts == (1, 1)
    assert tx.changes["tall"].added.to_pylist() == [{"name": "Ann"}]
    with database.transaction() as tx:
        tx.upsert("person", rows)  # nothing new
    assert tx.commit_number is None


def test_operations_on_keys_apply_in_order() -> None:
    database = people()
    with database.transaction() as tx:
        tx.insert("person", [ANN, BOB])
        tx.upsert("person", [TALLER])  # also what the same transaction has inserted
        tx.delete("person", keys=[2, 7])
        tx.upsert("person", [(3, "Eve", None)])
    assert sorted(database.relation("person").rows()) == [TALLER, (3, "Eve", None)]


@pytest.mark.parametrize(
    "keys", [[1, 9], [(1,)], [{"id": 1}], pa.table({"id": [1]}), np.array([1])]
)
def test_delete_by_key(keys: Any) -> None:
    database = people()
    with database.transaction() as tx:
        tx.insert("person", [ANN, BOB])
    with database.transaction() as tx:
        tx.delete("person", keys=keys)
    assert database.relation("person").rows() == [BOB]
    with database.transaction() as tx:
        tx.delete("person", [BOB], keys=[])
    assert database.relation("person").rows() == []


def test_keys_are_needed_and_checked() -> None:
    database = corollary.open(None, engine="local")
    database.load(text=".decl e(x: number, y: number)")
    for attempt in (
        lambda: database.transaction().upsert("e", [(1, 2)]),
        lambda: database.transaction().delete("e", keys=[1]),
    ):
        with pytest.raises(corollary.InputError, match="C0921"):
            attempt()
    with pytest.raises(corollary.InputError, match="C0910"):
        people().transaction().delete("person", keys=[("a",)])
    with pytest.raises(corollary.ConstraintError, match="C0937"), people().transaction() as tx:
        tx.upsert("person", [ANN, TALLER])


def test_upsert_leaves_what_others_assert() -> None:
    database = corollary.open(None, engine="local")
    database.load(text=PEOPLE + 'person(1, "Ann", 1.7).')
    with pytest.raises(corollary.ConstraintError, match="C0937"), database.transaction() as tx:
        tx.upsert("person", [TALLER])
    with database.transaction() as tx:
        tx.upsert("person", [BOB])
        tx.delete("person", keys=[1])
    assert [handle.table().num_rows for handle in tx.kept.values()] in ([], [1])
    assert sorted(database.relation("person").rows()) == [ANN, BOB]
