"""Binary values, arrays and times without a zone come back from files, tables and the wire."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.core.arrow import from_stored_column, to_stored_column
from corollary.core.types import BINARY, FLOAT32
from corollary.core.values import value_from_json, value_to_json
from corollary.errors import InputError
from corollary.serve.postgres.encoding import encode_column, text_column

ROWS = [(1, b"az"), (2, None), (3, b""), (4, b"\xff\0"), (5, b"az")]
PROGRAM = """
.decl p(k: number, b: binary?)
.input p(filename="p.parquet")
.decl d(k: number, b: binary?)
.input d(filename="d", format="delta")
.decl j(k: number, b: binary?)
.input j(filename="j.jsonl")
.decl c(k: number, b: binary?)
.input c(filename="c.csv", rfc4180=true, delimiter=",", headers=true)
.decl v(b: binary?, k: number)
v(b, k) :- p(k, b).
.output v(IO="file", filename="v.csv", rfc4180=true)
"""


def test_sources_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*ROWS, strict=True))
    table = pa.table({"k": keys, "b": pa.array(values, pa.binary())})
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table)
    coded = [None if each is None else base64.b64encode(each).decode() for each in values]
    lines = [json.dumps({"k": k, "b": b}) for k, b in zip(keys, coded, strict=True)]
    Path("j.jsonl").write_text("\n".join(lines))
    digits = ["" if each is None else f'"{each.hex()}"' for each in values]
    Path("c.csv").write_text(
        "k,b\n" + "".join(f"{k},{b}\n" for k, b in zip(keys, digits, strict=True))
    )
    Path("program.dl").write_text(PROGRAM)
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == ROWS, name
        for _ in range(2):
            with database.transaction() as transaction:
                transaction.insert("p", [(6, b"\0")])
            with database.transaction() as transaction:
                transaction.delete("p", [(6, b"\0")])
        database.publish()
    found = DeltaTable("w/tables/v").to_pyarrow_table().to_pylist()
    assert sorted((each["k"], each["b"]) for each in found) == ROWS
    Path("c.csv").write_text("k,b\n1,6\n2,617\n3,zz\n4,ff\n")
    with corollary.open("w") as database, pytest.raises(InputError, match="is not a binary"):
        database.run("program.dl")


ARRAYS = [(1, (1, None)), (2, None), (3, ()), (4, (2**62, -1)), (5, (1, None))]


def test_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*ARRAYS, strict=True))
    table = pa.table({"k": keys, "b": pa.array(values, pa.list_(pa.int64()))})
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table)
    lines = [json.dumps({"k": k, "b": b}) for k, b in ARRAYS]
    Path("j.jsonl").write_text("\n".join(lines))
    texts = ["" if each is None else f'"{json.dumps(each)}"' for each in values]
    pairs = zip(keys, texts, strict=True)
    Path("c.csv").write_text("k,b\n" + "".join(f"{k},{b}\n" for k, b in pairs))
    Path("program.dl").write_text(PROGRAM.replace("binary", "[number]"))
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == ARRAYS, name
        with database.transaction() as transaction:
            transaction.insert("p", [(6, [7, None])])
        assert ((7, None), 6) in database.relation("v").rows()
        with database.transaction() as transaction:
            transaction.delete("p", [(6, (7, None))])
        with pytest.raises(InputError, match="which is a"), database.transaction() as transaction:
            transaction.insert("p", [(6, ["seven"])])
        database.publish()
    found = DeltaTable("w/tables/v").to_pyarrow_table().to_pylist()
    assert sorted((each["k"], each["b"]) for each in found) == [
        (k, None if b is None else list(b)) for k, b in ARRAYS
    ]
    with corollary.open("w") as database:
        assert sorted(database.relation("p").rows()) == ARRAYS
        assert database.sql("SELECT max(b), count(DISTINCT b) FROM p").rows() == [((2**62, -1), 3)]


SINGLES = [
    (1, 0.1),
    (2, None),
    (3, 0.0),
    (4, math.inf),
    (5, 2.0**24),
    (6, 3.4028234663852886e38),
    (7, 2.0**-149),
]


def test_floats_of_32_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*SINGLES, strict=True))
    table = pa.table({"k": keys, "b": pa.array(values, pa.float32())})
    rows = [tuple(each.values()) for each in table.to_pylist()]
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table)
    texts = {math.inf: "inf", None: None}
    lines = [json.dumps({"k": k, "b": texts.get(b, b)}) for k, b in SINGLES]
    Path("j.jsonl").write_text("\n".join(lines))
    pairs = [(k, "" if b is None else str(b)) for k, b in SINGLES]
    Path("c.csv").write_text("k,b\n" + "".join(f"{k},{b}\n" for k, b in pairs))
    constant = ".decl one(b: float32)\none(to_float32(0.1)) :- true.\n"
    Path("program.dl").write_text(PROGRAM.replace("binary", "float32") + constant)
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == rows, name
        with database.transaction() as transaction:  # what is no float of 32 bits is rounded
            transaction.insert("p", [(8, 0.1)])
        assert database.sql("SELECT k FROM p WHERE b = 0.1F ORDER BY k").rows() == [(1,), (8,)]
        assert database.sql("SELECT k FROM p WHERE b = :b", b=0.1).rows() == []
        with database.transaction() as transaction:
            transaction.delete("p", [(8, 0.1)])
        for bad in (
            [(9, 1e39)],
            pa.table({"k": [9], "b": [1e39]}),
            pa.table({"k": [9], "b": [2**24 + 1]}),
        ):
            with (
                pytest.raises(InputError, match=r"range|digits"),
                database.transaction() as changes,
            ):
                changes.insert("p", bad)
        shown = database.sql("SELECT CAST(b AS STRING) AS b FROM p WHERE k IN (1, 7)").rows()
        assert sorted(shown) == [("0.1",), ("1.4E-45",)]
        database.publish()
    published = DeltaTable("w/tables/v").to_pyarrow_table()
    assert published.schema.field("b").type == pa.float32()
    assert sorted((each["k"], each["b"]) for each in published.to_pylist()) == rows
    with corollary.open("w", engine="local") as database:
        assert database.relation("one").rows() == [rows[0][1:]]
        assert json.loads(json.dumps(value_to_json(rows[0][1], FLOAT32))) == 0.1
    assert text_column(table["b"].combine_chunks(), "UTC")[0].as_py() == "0.1"
    Path("c.csv").write_text("k,b\n1,1e39\n")
    with corollary.open("w") as database, pytest.raises(InputError, match="range for float32"):
        database.run("program.dl")


STRUCTS = [
    (1, (1, "x", (Decimal("1.5"), None))),
    (2, None),
    (3, (None, "", ())),
    (4, (2**62, "a\x01{", None)),
    (5, (1, "x", (Decimal("1.5"), None))),
]


def test_structs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*STRUCTS, strict=True))
    type_ = pa.struct(
        [("n", pa.int64()), ("the t", pa.string()), ("d", pa.list_(pa.decimal128(3, 1)))]
    )
    names = ("n", "the t", "d")
    given = [None if each is None else dict(zip(names, each, strict=True)) for each in values]
    table = pa.table({"k": keys, "b": pa.array(given, type_)})
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table.select(["k"]).append_column("b", plain_structs(table["b"])))
    shown = [json.dumps(each, default=str) for each in given]
    others = [json.dumps(each and {**each, "more": 1.5}, default=str) for each in given]
    Path("j.jsonl").write_text(
        "\n".join(f'{{"k": {k}, "b": {b}}}' for k, b in zip(keys, shown, strict=True))
    )
    quoted = ("" if each == "null" else each.replace('"', '""') for each in others)
    Path("c.csv").write_text(
        "k,b\n" + "".join(f'{k},"{b}"\n' for k, b in zip(keys, quoted, strict=True))
    )
    written = "{n: number, `the t`: symbol, d: [decimal(3,1)]}"
    program = PROGRAM.replace("binary", written)
    delta = written.replace("the t", "t")
    program = program.replace(f".decl d(k: number, b: {written}", f".decl d(k: number, b: {delta}")
    Path("program.dl").write_text(program)
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == STRUCTS, name
        with database.transaction() as transaction:
            transaction.insert("p", [(6, {"the t": "y", "d": [Decimal("2.0")]}), (7, (1, "", []))])
        assert ((None, "y", (Decimal("2.0"),)), 6) in database.relation("v").rows()
        with database.transaction() as transaction:
            transaction.delete("p", [(6, (None, "y", [2])), (7, {"n": 1, "the t": "", "d": ()})])
        for wrong in ({"x": 1}, (1, "x"), (1, 2, ())):
            refused = pytest.raises(InputError, match="which is a")
            with refused, database.transaction() as transaction:
                transaction.insert("p", [(6, wrong)])
        database.publish()
    found = DeltaTable("w/tables/v").to_pyarrow_table().to_pylist()
    lists = [each and each["d"] for each in given]
    renamed = [
        each and {"n": each["n"], "the_t": each["the t"], "d": d if d is None else list(d)}
        for each, d in zip(given, lists, strict=True)
    ]
    assert sorted((each["k"], each["b"]) for each in found) == [*zip(keys, renamed, strict=True)]
    with corollary.open("w") as database:
        assert sorted(database.relation("p").rows()) == STRUCTS
        assert database.relation("p").arrow().schema.field("b").type == type_
        question = "SELECT max(b), count(DISTINCT b), max(b.`THE T`) FROM p"
        assert database.sql(question).rows() == [(STRUCTS[3][1], 3, "x")]


def plain_structs(column: pa.ChunkedArray) -> pa.Array:
    """Return structs with a field named as Delta allows it."""
    array = column.combine_chunks()
    return pa.StructArray.from_arrays(array.flatten(), ["n", "t", "d"], mask=array.is_null())


CLOCKS = [
    (1, time(8, 5)),
    (2, None),
    (3, time()),
    (4, time(23, 59, 59, 999_999)),
    (5, time(12, 0, 0, 500_000)),
]


def test_times_of_the_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*CLOCKS, strict=True))
    table = pa.table({"k": keys, "b": pa.array(values, pa.time64("us"))})
    pq.write_table(table, "p.parquet")
    stored = table.set_column(1, "b", table["b"].cast(pa.int64()))
    write_deltalake("d", stored)
    lines = [json.dumps({"k": k, "b": b and b.isoformat()}) for k, b in CLOCKS]
    Path("j.jsonl").write_text("\n".join(lines))
    pairs = [(k, "" if b is None else b.isoformat()) for k, b in CLOCKS]
    Path("c.csv").write_text("k,b\n" + "".join(f"{k},{b}\n" for k, b in pairs))
    constant = ".decl one(b: time_of_day)\none(time_from_micros(29100000000)) :- true.\n"
    Path("program.dl").write_text(PROGRAM.replace("binary", "time_of_day") + constant)
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == CLOCKS, name
        assert database.sql("SELECT k FROM p WHERE b = :b", b=time(8, 5)).rows() == [(1,)]
        assert database.sql("SELECT k FROM p WHERE b > '20:00'").rows() == [(4,)]
        for bad in (
            [(9, time(8, 5, tzinfo=UTC))],
            [(9, "8:05")],
            pa.table({"k": [9, 10], "b": [5, 86_400_000_000]}),
            pa.table({"k": [9], "b": pa.array([1], pa.time64("ns"))}),
        ):
            with (
                pytest.raises(InputError, match="time_of_day"),
                database.transaction() as transaction,
            ):
                transaction.insert("p", bad)
        database.publish()
        assert database.relation("one").rows() == [CLOCKS[0][1:]]
    published = DeltaTable("w/tables/v").to_pyarrow_table()
    assert sorted((each["k"], each["b"]) for each in published.to_pylist()) == [
        tuple(each.values()) for each in stored.to_pylist()
    ]
    shown = text_column(table["b"].combine_chunks(), "UTC").to_pylist()
    assert shown == ["08:05:00", None, "00:00:00", "23:59:59.999999", "12:00:00.5"]


MAPS = [
    (1, (("a", 1), ("b", None))),
    (2, None),
    (3, ()),
    (4, (("", 2**62), ("a\x01", -1))),
    (5, (("a", 1), ("b", None))),
]


def test_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*MAPS, strict=True))
    turned = [each and each[::-1] for each in values]  # the order of entries does not matter
    table = pa.table({"k": keys, "b": pa.array(turned, pa.map_(pa.string(), pa.int64()))})
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table)
    given = [None if each is None else dict(each) for each in turned]
    lines = [json.dumps({"k": k, "b": b}) for k, b in zip(keys, given, strict=True)]
    Path("j.jsonl").write_text("\n".join(lines))
    quoted = ("" if b is None else json.dumps(b).replace('"', '""') for b in given)
    pairs = zip(keys, quoted, strict=True)
    Path("c.csv").write_text("k,b\n" + "".join(f'{k},"{b}"\n' for k, b in pairs))
    Path("program.dl").write_text(PROGRAM.replace("binary", "{symbol -> number}"))
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == MAPS, name
        with database.transaction() as transaction:
            transaction.insert("p", [(6, {"y": 1, "x": None}), (7, [("z", 1)])])
        assert ((("x", None), ("y", 1)), 6) in database.relation("v").rows()
        with database.transaction() as transaction:
            transaction.delete("p", [(6, (("y", 1), ("x", None))), (7, {"z": 1})])
        for wrong in ({1: 1}, {"a": "x"}, [("a", 1), ("a", 2)], [(None, 1)]):
            refused = pytest.raises(InputError, match="which is a")
            with refused, database.transaction() as transaction:
                transaction.insert("p", [(6, wrong)])
        twice = pa.table({"k": [6], "b": pa.array([[("a", 1), ("a", 2)]], table["b"].type)})
        with pytest.raises(InputError, match="a key twice"), database.transaction() as transaction:
            transaction.insert("p", twice)
        database.publish()
    found = DeltaTable("w/tables/v").to_pyarrow_table().to_pylist()
    sorted_maps = [(k, None if each is None else list(each)) for k, each in MAPS]
    assert sorted((each["k"], each["b"]) for each in found) == sorted_maps
    with corollary.open("w") as database:
        assert sorted(database.relation("p").rows()) == MAPS
        question = "SELECT count(DISTINCT b), max(b.a), sum(size(b)) FROM p"
        assert database.sql(question).rows() == [(3, 1, 6)]
    column = encode_column(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), 0, "UTC")
    assert column.data.tobytes() == b'{"a": 1}'


LOCAL_TIMES = [
    (1, datetime.fromisoformat("2026-01-31T08:05:07.25")),
    (2, None),
    (3, datetime.fromisoformat("0001-01-01")),
    (4, datetime.fromisoformat("1969-12-31T23:59:59")),
]


def test_times_without_a_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, values = map(list, zip(*LOCAL_TIMES, strict=True))
    table = pa.table({"k": keys, "n": pa.array(values, pa.timestamp("us"))})
    pq.write_table(table, "p.parquet")
    write_deltalake("d", table)
    texts = [None if each is None else each.isoformat() for each in values]
    lines = [json.dumps({"k": k, "n": n}) for k, n in zip(keys, texts, strict=True)]
    Path("j.jsonl").write_text("\n".join(lines))
    pairs = zip(keys, texts, strict=True)
    Path("c.csv").write_text("k,n\n" + "".join(f"{k},{n or ''}\n" for k, n in pairs))
    program = PROGRAM.replace("b: binary", "b: timestamp_ntz").replace("b: ", "n: ")
    constant = '.decl one(n: timestamp_ntz)\none(to_local(t"2026-01-01T00:00:00Z")) :- true.\n'
    Path("program.dl").write_text(
        program.replace("v(b, k) :- p(k, b)", "v(n, k) :- p(k, n)") + constant
    )
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == LOCAL_TIMES, name
        with pytest.raises(InputError, match="zone"), database.transaction() as transaction:
            transaction.insert("p", [(6, datetime.now(UTC))])
    found = DeltaTable("w/tables/v")
    assert found.protocol().reader_features == ["timestampNtz"]
    rows = found.to_pyarrow_table().to_pylist()
    assert sorted(tuple(each.values())[::-1] for each in rows) == LOCAL_TIMES
    with corollary.open("w", engine="local") as database:
        assert database.relation("one").rows() == [(datetime.fromisoformat("2026-01-01"),)]
        question = "SELECT k FROM p WHERE n = :n"
        assert database.sql(question, n=LOCAL_TIMES[2][1]).rows() == [(3,)]
    Path("c.csv").write_text("k,n\n1,2026-01-01T00:00:00Z\n")
    with corollary.open("w") as database, pytest.raises(InputError, match="is not a timestamp_ntz"):
        database.run("program.dl")


def test_columns_are_stored_in_their_order() -> None:
    values = sorted([b"", b"\0", b"\0\0", b"a", b"a\0", b"\x7f", b"\x80", b"\xff"])
    column = pa.chunked_array([values[:3], [None], values[3:]], pa.binary())
    stored = to_stored_column(column.slice(1), BINARY)
    assert stored.drop_null().to_pylist() == sorted(stored.drop_null().to_pylist())
    assert from_stored_column(stored, BINARY).to_pylist() == column.slice(1).to_pylist()
    encoded = column.combine_chunks().dictionary_encode()
    assert to_stored_column(pa.chunked_array([encoded]), BINARY)[1].as_py() == "00"


def test_json_and_the_wire() -> None:
    assert value_from_json(value_to_json(b"\xff\0", BINARY), BINARY) == b"\xff\0"
    assert value_to_json(b"az", BINARY) == "YXo="
    with pytest.raises(ValueError, match="is not a binary value in Base64"):
        value_from_json("a", BINARY)
    assert text_column(pa.array([b"a\xff", None]), "UTC").to_pylist() == [r"\x61ff", None]
    given = [{"a": Decimal("1.50"), "b": b"az", "c": datetime(2026, 1, 1, tzinfo=UTC)}, None]
    column = encode_column(pa.array(given), 0, "UTC")
    wanted = b'{"a": "1.50", "b": "YXo=", "c": "2026-01-01T00:00:00Z"}'
    assert (column.data.tobytes(), column.lengths.tolist()) == (wanted, [len(wanted), 0])


@pytest.mark.parametrize("row", [(1, "az"), (1, 7), (1, bytearray(b"a"))])
def test_other_values_are_refused(row: tuple[object, ...]) -> None:
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k BIGINT, b BINARY)")
        with pytest.raises(InputError, match="binary"), database.transaction() as transaction:
            transaction.insert("t", [row])


def test_bytes_that_are_no_text_are_an_error() -> None:
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k BIGINT, b BINARY); INSERT INTO t VALUES (1, X'FF')")
        with pytest.raises(corollary.CorollaryError, match="not UTF-8"):
            database.sql("SELECT CAST(b AS STRING) FROM t")
        with pytest.raises(corollary.CorollaryError, match="not UTF-8"):
            database.sql("SELECT upper(b) FROM t")
        with pytest.raises(InputError, match="hexadecimal"):
            database.sql("SELECT X'6_1'")
        assert database.sql("SELECT k FROM t WHERE b = :b", b=b"\xff").rows() == [(1,)]


INTERVALS = [
    (1, timedelta(1, 7384, 500_000), 19),
    (2, None, None),
    (3, timedelta(microseconds=-1), -1),
    (4, timedelta(0), 2**31 - 1),
]
INTERVAL_TEXTS = [
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '1-7' YEAR TO MONTH"),
    (None, None),
    ("INTERVAL '-0 00:00:00.000001' DAY TO SECOND", "INTERVAL '-0-1' YEAR TO MONTH"),
    ("INTERVAL '0 00:00:00' DAY TO SECOND", "INTERVAL '178956970-7' YEAR TO MONTH"),
]


def test_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys, spans, months = map(list, zip(*INTERVALS, strict=True))
    table = pa.table(
        {"k": keys, "d": pa.array(spans, pa.duration("us")), "m": pa.array(months, pa.int32())}
    )
    pq.write_table(table, "p.parquet")
    stored = table.set_column(1, "d", table["d"].cast(pa.int64()))  # as Spark writes them
    write_deltalake("d", stored)
    rows = [(k, *texts) for k, texts in zip(keys, INTERVAL_TEXTS, strict=True)]
    names = ("k", "d", "m")
    Path("j.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    )
    lines = (",".join("" if each is None else str(each) for each in row) for row in rows)
    Path("c.csv").write_text("\n".join(("k,d,m", *lines)))
    program = PROGRAM.replace("b: binary?, k: number", "k: number, d: duration?, m: months?")
    program = program.replace("b: binary?", "d: duration?, m: months?")
    Path("program.dl").write_text(program.replace("v(b, k) :- p(k, b)", "v(k, d, m) :- p(k, d, m)"))
    with corollary.open("w", engine="local") as database:
        database.run("program.dl")
        for name in "pdjc":
            assert sorted(database.relation(name).rows()) == INTERVALS, name
        for row in ((6, timedelta(days=200_000_000), 1), (6, timedelta(1), 2**31)):
            with pytest.raises(InputError, match="range"), database.transaction() as transaction:
                transaction.insert("p", [row])
        question = "SELECT k FROM p WHERE d = :d"
        assert database.sql(question, d=timedelta(0)).rows() == [(4,)]
        texts = "SELECT k, CAST(d AS STRING) AS d, CAST(m AS STRING) AS m FROM p"
        assert sorted(database.sql(texts).rows()) == rows
    published = DeltaTable("w/tables/v").to_pyarrow_table()
    assert published.schema.types == [pa.int64(), pa.int64(), pa.int32()]
    assert sorted(map(tuple, map(dict.values, published.to_pylist()))) == sorted(
        map(tuple, map(dict.values, stored.to_pylist()))
    )
