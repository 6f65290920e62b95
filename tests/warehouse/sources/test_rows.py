"""Rows of sources: malformed records, columns that change, keys, and values of other formats."""

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.analysis.check import check
from corollary.core.arrow import schema_of, to_python
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
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.sources import json_file
from corollary.warehouse.sources.quarantine import RAW_MAX_CHARACTERS
from corollary.warehouse.sources.schema_drift import ExpectedColumns
from support.selection import examples
from support.source_model import (
    SPAN,
    P,
    Row,
    Run,
    a_source,
    canonical,
    csv,
    objects,
    parquet,
    refused,
)

LONG = b"a" * 10_000_000


# --- malformed records --------------------------------------------------------------------------


def table(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


TEXT = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xffa")]
)
BAD = {
    "wrong type": ("p.facts", b"1\ta\nx\tb\n", 2, "C0801", "`x` is not a number"),
    "out of range": ("p.facts", b"1\ta\n99999999999999999999\tb\n", 2, "C0801", "is out of range"),
    "few columns": ("p.facts", b"1\ta\n2\n", 2, "C0802", "1 field stands where `p` has 2 columns"),
    "many columns": ("p.facts", b"1\ta\n2\tb\tc\n", 2, "C0802", "3 fields stand"),
    "not UTF-8": ("p.facts", b"1\ta\n2\t\xff\n", 2, "C0803", "the byte 0xff is not UTF-8"),
    "NUL": ("p.facts", b"1\ta\n2\ta\0b\n", 2, "C0803", "NUL byte"),
    "a long line": ("p.facts", b"1\ta\n2\t" + LONG + b"\n", 2, "C0952", "10000002 characters"),
    "broken JSON": ("p.jsonl", b'{"x":1,"y":"a"}\n{"x":2,"y"\n', 2, "C0957", "is not JSON"),
    "half a JSON": ("p.jsonl", b'{"x":1,"y":"a"}\n{"x":2,"y":"b"', 2, "C0957", "is not JSON"),
    "two in a line": ("p.jsonl", b'[1,"a"]\n[1,"b"] [1,"c"]\n', 2, "C0957", "is not JSON"),
    "NaN in JSON": ("p.jsonl", b'[1,"a"]\n[NaN,"b"]\n', 2, "C0957", "`NaN` is not JSON"),
    "a key twice": ("p.jsonl", b'[1,"a"]\n{"x":1,"x":1,"y":""}\n', 2, "C0957", "key twice"),
    "no row": ("p.jsonl", b'[1,"a"]\n"b"\n', 2, "C0957", "neither a JSON object nor an array"),
    "depth": ("p.jsonl", b'[1,"a"]\n' + b"[" * 10**5 + b"\n", 2, "C0957", "nested too deeply"),
    "many digits": ("p.jsonl", b'[1,"a"]\n[' + b"9" * 9999 + b',""]\n', 2, "C0957", "not JSON"),
    "JSON type": ("p.jsonl", b'[1,"a"]\n["2","b"]\n', 2, "C0801", "the text `2` is not a number"),
    "JSON fraction": ("p.jsonl", b'[1,"a"]\n[2.0,"b"]\n', 2, "C0801", "`2.0` is not a number"),
    "JSON truth": ("p.jsonl", b'[1,"a"]\n[true,"b"]\n', 2, "C0801", "`true` is not a number"),
    "JSON object": ("p.jsonl", b'[1,"a"]\n[{},""]\n', 2, "C0801", "an object is not a number"),
    "JSON null": ("p.jsonl", b'[1,"a"]\n[null,"b"]\n', 2, "C0801", "not nullable"),
    "JSON range": ("p.jsonl", b'[1,"a"]\n[9223372036854775808,""]\n', 2, "C0801", "out of range"),
    "JSON columns": ("p.jsonl", b'[1,"a"]\n[2]\n', 2, "C0802", "1 values stand where"),
    "JSON key": ("p.jsonl", b'[1,"a"]\n\n{"x":2}\n', 3, "C0802", "no value for column `y` of `p`"),
    "JSON UTF-8": ("p.jsonl", b'[1,"a"]\r\n[2,"\xff"]\r\n', 2, "C0803", "0xff is not UTF-8"),
    "JSON NUL": ("p.jsonl", b'[1,"a"]\n[2,"\0"]\n', 2, "C0803", "NUL byte"),
    "NUL in JSON": ("p.jsonl", b'[1,"a"]\n[2,"a\\u0000"]\n', 2, "C0801", "a NUL character"),
    "NUL in an object": (
        "p.jsonl",
        b'{"x":1,"y":"a"}\n{"x":2,"y":"a\\u0000"}\n',
        2,
        "C0801",
        "a NUL character",
    ),
    "NUL in a dictionary": (
        "p.parquet",
        table({"x": [1, 2], "y": pa.array(["a", "a\0b"]).dictionary_encode()}),
        2,
        "C0801",
        "a NUL character",
    ),
    "NUL in Parquet": (
        "p.parquet",
        table({"x": [1, 2], "y": ["a", "a\0b"]}),
        2,
        "C0801",
        "a NUL character",
    ),
    "surrogate": ("p.jsonl", b'[1,"a"]\n[2,"\\ud800"]\n', 2, "C0801", "half a surrogate pair"),
    "JSON line": ("p.jsonl", b'[1,"a"]\n[2,"' + LONG + b'"]\n', 2, "C0952", "characters"),
    "Parquet null": ("p.parquet", table({"x": [1, None], "y": ["a", ""]}), 2, "C0801", "nullable"),
    "Parquet range": (
        "p.parquet",
        table({"x": pa.array([1, 2**63], pa.uint64()), "y": ["a", "b"]}),
        2,
        "C0801",
        "`9223372036854775808` is out of range for number (column `x` of `p`)",
    ),
    "Parquet UTF-8": ("p.parquet", table({"x": [2, 1], "y": TEXT}), 1, "C0801", "is not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_records(tmp_path: Path, case: str) -> None:
    name, data, line, code, reason = BAD[case]
    (tmp_path / name).write_bytes(data)
    run = Run(a_source(tmp_path, name, quarantine=True))
    (bad,) = run.bad_records(run.step([(1, "a")]))
    assert (bad.relation, bad.file, bad.line, bad.code) == ("p", name, line, code)
    assert reason in bad.reason
    assert bad.raw
    assert len(bad.raw) <= RAW_MAX_CHARACTERS + 1
    assert run.bad_lines() == {name: [line]}
    (found,) = refused(Run(a_source(tmp_path, name)).step, code)
    assert found.message == bad.reason
    assert str(tmp_path / name) in str(found)


def test_abort_shows_findings_of_all_files(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.tsv").write_text("x\ta\n1\tb\n")
    found = refused(Run(a_source(tmp_path, "*.tsv")).step, "C0801")
    assert len(found) == 21
    assert {str(each.span) for each in found[:20]} == {
        f"{tmp_path / f'{number:02}.tsv'}:1:1" for number in range(20)
    }
    run = Run(a_source(tmp_path, "*.tsv", quarantine=True))
    bad = run.bad_records(run.step([(1, "b")]))
    assert [(each.file, each.line) for each in bad] == [(f"{n:02}.tsv", 1) for n in range(40)]


def test_quarantine_follows_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\ta\nx\ta\n")
    (tmp_path / "b.tsv").write_text("2\ta\ny\ta\n")
    run = Run(a_source(tmp_path, "*.tsv", quarantine=True))

    def step() -> dict[str, list[int]]:
        run.step()
        return run.bad_lines()

    assert step() == {"a.tsv": [2], "b.tsv": [2]}
    (tmp_path / "a.tsv").write_text("1\ta\nx\ta\n\n")
    assert step() == {"a.tsv": [2, 3], "b.tsv": [2]}
    (tmp_path / "b.tsv").write_text("2\ta\n")
    assert step() == {"a.tsv": [2, 3]}
    (tmp_path / "a.tsv").unlink()
    assert step() == {}
    assert run.rows.keys() == {(2, "a")}
    (tmp_path / "c.tsv").write_text("3\ta\nz\ta\n")
    assert step() == {"c.tsv": [2]}
    (tmp_path / "c.tsv").unlink()
    (tmp_path / "b.tsv").write_text("a,2\n")
    run.source = a_source(tmp_path, "*.tsv", quarantine=True, delimiter=",", columns="1:0")
    assert step() == {}  # another directive reads all anew


JSON_TEXTS = st.one_of(
    st.sampled_from(['"a"', '"\\u0061"', '"\\ud83d\\ude00"', '"\\ud800"', "1", "-0", "01", "1.0"]),
    st.sampled_from(["1e2", "1e999", "-1e-999", "NaN", "Infinity", "true", "null", "[]", "{}"]),
    st.sampled_from(['"2026-01-02"', '"2026-13-01"', "9223372036854775808", '"1.50"', '""', "x"]),
)
JSON_TYPES = (SYMBOL, NUMBER, UNSIGNED, FLOAT, BOOL, DATE, TIMESTAMP, decimal(6, 2))


@given(
    st.lists(st.tuples(JSON_TEXTS, JSON_TEXTS), max_size=3),
    st.tuples(st.sampled_from(JSON_TYPES), st.sampled_from(JSON_TYPES)),
    st.booleans(),
    st.sampled_from(["\n", "\n", " ", "", "\r\n"]),
    st.sampled_from(["x", "x", "x", "z", "y"]),
)
@settings(max_examples=examples(25, 400))
def test_json_by_vectors_is_the_same(
    texts: list[tuple[str, str]],
    types: tuple[Type, Type],
    is_nullable: bool,
    end: str,
    name: str,
) -> None:
    p = Relation("p", ("x", "y"), tuple(t.with_null(is_nullable) for t in types), is_derived=False)
    data = "".join(f'{{"{name}":{one},"y":{other}}}{end}' for one, other in texts).encode()
    quick = json_file.read_vectorized(data, p)
    reader = json_file._Reader("p", ExpectedColumns(p, None))  # type: ignore[arg-type]
    exact = reader.table(list(enumerate(data.split(b"\n"), 1)))
    if quick is not None:
        table, columns = quick
        assert not reader.malformed
        assert columns >= reader.columns
        assert table.schema == exact.schema == schema_of(p)
        assert list(map(canonical, to_python(table))) == list(map(canonical, to_python(exact)))


def test_plain_json_is_read_by_vectors() -> None:
    p = Relation("p", ("x", "y", "z"), (NUMBER, FLOAT, DATE.with_null(True)), is_derived=False)
    data = b'{"x":1,"y":2,"z":"2026-01-02"}\n{"z":null,"x":2,"y":-0.0}\n{"x":3,"y":1e2}\n'
    quick = json_file.read_vectorized(data, p)
    assert quick is not None
    table, columns = quick
    assert columns == {"x", "y", "z"}
    assert to_python(table) == [
        (1, 2.0, date(2026, 1, 2)),
        (2, 0.0, None),
        (3, 100.0, None),
    ]
    assert math.copysign(1, table["y"][1].as_py()) == 1
    for odd in (data.replace(b'"y":2', b'"y":NaN'), data.replace(b"\n", b""), data + b"{}\n"):
        assert json_file.read_vectorized(odd, p) is None


# --- columns that change ------------------------------------------------------------------------


def named(form: str, *columns: str, rows: int = 2, text: str = "") -> bytes:
    """Returns a file with these columns; row i has the number i in all but `y`, or a text."""

    def value(column: str, row: int) -> Any:
        return "abc"[row] if column == "y" else f"{text}{row}" if text else row

    if form == "p.tsv":
        body = ["\t".join(str(value(c, row)) for c in columns) for row in range(rows)]
        return "".join(line + "\n" for line in ["\t".join(columns), *body]).encode()
    if form == "p.jsonl":
        return objects(([value(c, row) for c in columns] for row in range(rows)), columns)
    return table({c: [value(c, row) for row in range(rows)] for c in columns})


@pytest.fixture(params=["p.tsv", "p.jsonl", "p.parquet"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def a_named_source(base: Path, form: str, **said: Any) -> Any:
    headers = {"headers": "true"} if form == "p.tsv" else {}
    return a_source(base, form, quarantine=True, **headers, **said)


def test_a_new_column_is_ignored_with_a_warning(tmp_path: Path, form: str) -> None:
    (tmp_path / form).write_bytes(named(form, "x", "y"))
    run = Run(a_named_source(tmp_path, form))
    assert not run.step([(0, "a"), (1, "b")]).warnings
    (tmp_path / form).write_bytes(named(form, "new", "x", "y", rows=3))
    (warning,) = run.step([(0, "a"), (1, "b"), (2, "c")]).warnings
    assert (warning.code, warning.severity) == ("C0951", "warning")
    assert warning.message == f"`{tmp_path / form}` has got a new column `new`."
    assert "add it to `.decl p`" in str(warning.note)
    (tmp_path / form).write_bytes(named(form, "x", "y", "new", rows=1))
    assert not run.step([(0, "a")]).warnings


def test_a_new_column_is_refused(tmp_path: Path, form: str) -> None:
    (tmp_path / form).write_bytes(named(form, "x", "y"))
    run = Run(a_named_source(tmp_path, form, new_columns="refuse"))
    run.step([(0, "a"), (1, "b")])
    (tmp_path / form).write_bytes(named(form, "x", "y", "new", "newer"))
    (found,) = refused(run.step, "C0951")
    assert "has got 2 new columns: `new`, `newer`" in found.message
    assert "nothing was changed" in str(found.note)


def test_a_missing_column_stops(tmp_path: Path, form: str) -> None:
    (tmp_path / form).write_bytes(named(form, "x", "y"))
    run = Run(a_named_source(tmp_path, form))
    run.step([(0, "a"), (1, "b")])
    (tmp_path / form).write_bytes(named(form, "renamed", "y"))
    (found,) = refused(run.step, "C0950")
    assert "`x`" in found.message
    assert "nothing was changed" in str(found.note)
    (tmp_path / form).write_bytes(named(form, "y", "x", rows=3))
    run.step([(0, "a"), (1, "b"), (2, "c")])


def test_a_retyped_column_stops(tmp_path: Path, form: str) -> None:
    (tmp_path / form).write_bytes(named(form, "x", "y"))
    run = Run(a_named_source(tmp_path, form))
    run.step([(0, "a"), (1, "b")])
    (tmp_path / form).write_bytes(named(form, "x", "y", text="n"))
    (found,) = refused(run.step, "C0950")
    assert "olumn `x` of `p`" in found.message
    assert "nothing was changed" in str(found.note)
    (tmp_path / form).write_bytes(named(form, "x", "y", rows=1))
    run.step([(0, "a")])


def test_a_file_without_headers_that_loses_its_form(tmp_path: Path) -> None:
    (tmp_path / "p.facts").write_text("1\ta\n2\tb\n")
    run = Run(a_source(tmp_path, quarantine=True))
    run.step([(1, "a"), (2, "b")])
    for text in ("a\n1\n", "1\ta\tb\n2\tb\tc\n", "a\t1\nb\t2\n"):
        (tmp_path / "p.facts").write_text(text)
        (found,) = refused(run.step, "C0950")
        assert found.message.startswith(f"No record of `{tmp_path}/p.facts` is a row of `p` any mo")
        assert found.related == ((SPAN, "read by this"),)
    (tmp_path / "p.facts").write_text("x\ta\n")
    assert len(run.step([]).bad_rows) == 1
    (tmp_path / "p.facts").write_text("x\ta\ny\ta\n")
    assert len(run.step([]).bad_rows) == 1  # of a relation that is empty nothing can be lost


def test_nullable_columns_may_be_missing_at_first(tmp_path: Path) -> None:
    p = Relation("p", ("x", "z"), (NUMBER, NUMBER.with_null(True)), is_derived=False)
    rows = [(0, None), (1, None)]
    for name in ("p.jsonl", "p.parquet"):
        (tmp_path / name).write_bytes(named(name, "x"))
        run = Run(a_source(tmp_path, name, relation=p))
        run.step(rows)
        (tmp_path / name).write_bytes(named(name, "x", "z"))
        run.step([(0, 0), (1, 1)])
        (tmp_path / name).write_bytes(named(name, "x"))
        if name == "p.parquet":
            refused(run.step, "C0950")
        else:
            run.step(rows)  # writers of JSON leave nulls out


def test_headers_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "1.tsv").write_bytes(named("p.tsv", "id", "y"))
    (tmp_path / "2.tsv").write_bytes(named("p.tsv", "y", "more", "id", rows=3))
    run = Run(a_source(tmp_path, "*.tsv", headers="true"))
    assert not run.step([(0, "a"), (1, "b"), (2, "c")]).warnings
    (tmp_path / "3.tsv").write_bytes(named("p.tsv", "x", "y"))
    (found,) = refused(run.step, "C0950")
    assert f"`{tmp_path}/3.tsv` has no column `id`" in found.message
    assert 'columns="0:1"' in str(found.note)
    (tmp_path / "3.tsv").write_bytes(named("p.tsv", "id", "id", "y"))
    (found,) = refused(run.step, "C0950")
    assert "several columns `id`" in found.message


def test_columns_of_one_type_in_another_order(tmp_path: Path) -> None:
    """Nothing but the names tells them apart."""
    relation = Relation("p", ("x", "y"), (SYMBOL, SYMBOL), is_derived=False)
    (tmp_path / "1.tsv").write_bytes(b"x\ty\na\tb\n")
    run = Run(a_source(tmp_path, "*.tsv", relation=relation, headers="true"))
    run.step([("a", "b")])
    (tmp_path / "2.tsv").write_bytes(b"y\tx\nd\tc\n")
    run.step([("a", "b"), ("c", "d")])


# --- keys ---------------------------------------------------------------------------------------


def test_a_key_twice_is_rejected(tmp_path: Path) -> None:
    run = Run(a_source(tmp_path, key=("x",)))
    path = tmp_path / "p.facts"
    path.write_bytes(csv([(1, "a"), (1, "a"), (2, "b")]))
    run.step([(1, "a"), (2, "b")])
    path.write_bytes(csv([(1, "b"), (2, "a")]))
    run.step([(1, "b"), (2, "a")])
    path.write_bytes(csv([(1, "b"), (2, "a"), (1, "c")]))
    (found,) = refused(run.step, "C0954")
    assert found.message == "`p` gets two rows with the same key (x): (`1`, `b`) and (`1`, `c`)."
    assert found.span is SPAN
    assert 'order="…"' in str(found.note)
    path.write_bytes(csv([(n % 30, f"{n}") for n in range(60)]))
    assert len(refused(run.step, "C0954")) == 21


def test_of_a_key_the_last_row_counts(tmp_path: Path) -> None:
    p = Relation("p", ("k", "at", "v"), (NUMBER, FLOAT.with_null(True), SYMBOL), is_derived=False)
    said: Any = {"relation": p, "key": ("k",), "order": "at"}
    run = Run(a_source(tmp_path, "*.tsv", **said))
    (tmp_path / "1.tsv").write_text("1\t1\ta\n1\t3\tc\n1\t2\tb\n2\t\ta\n2\t-inf\tb\n")
    run.step([(1, 3.0, "c"), (2, -math.inf, "b")])
    (tmp_path / "2.tsv").write_text("1\t2.5\tlate\n2\tnan\tlast\n2\t0\tc\n")
    change = run.step([(1, 3.0, "c"), (2, math.nan, "last")])
    assert to_python(change.removed) == [(2, -math.inf, "b")]
    (tmp_path / "2.tsv").unlink()
    run.step([(1, 3.0, "c"), (2, -math.inf, "b")])
    (tmp_path / "3.tsv").write_text("1\t2\tx\n1\t2\ty\n")
    run.step([(1, 3.0, "c"), (2, -math.inf, "b")])  # ties that do not matter
    (tmp_path / "3.tsv").write_text("1\t3\tx\n")
    (found,) = refused(run.step, "C0954")
    assert "(`1`, `3.0`, `c`) and (`1`, `3.0`, `x`)" in found.message
    assert "in the column that orders them" in str(found.note)


def test_a_key_over_files(tmp_path: Path) -> None:
    run = Run(a_source(tmp_path, "*.tsv", key=("x",)))
    (tmp_path / "1.tsv").write_bytes(csv([(1, "a")]))
    run.step([(1, "a")])
    (tmp_path / "2.tsv").write_bytes(csv([(1, "b")]))
    refused(run.step, "C0954")
    (tmp_path / "1.tsv").unlink()
    run.step([(1, "b")])


# --- values of Parquet --------------------------------------------------------------------------

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAIVE = MOMENT.replace(tzinfo=None)
LONG = Decimal("123456789012345678901234567890123456.78")


@pytest.mark.parametrize(
    ("found", "type_", "expected"),
    [
        (pa.array(["a"], pa.large_string()), SYMBOL, "a"),
        (pa.array(["a"]).dictionary_encode(), SYMBOL, "a"),
        (pa.array([-1], pa.int8()), NUMBER, -1),
        (pa.array([Decimal(5)], pa.decimal128(20, 0)), NUMBER, 5),
        (pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)), UNSIGNED, 2**64 - 1),
        (pa.array([1.5], pa.float32()), FLOAT, 1.5),
        (pa.array([-0.0]), FLOAT, 0.0),
        (pa.array([7]), FLOAT, 7.0),
        (pa.array([7]), decimal(5, 2), Decimal("7.00")),
        (pa.array([Decimal("1.20")]), decimal(5, 1), Decimal("1.2")),
        (pa.array([Decimal("1.2")], pa.decimal256(50, 4)), decimal(18, 2), Decimal("1.20")),
        (pa.array([LONG], pa.decimal128(38, 2)), decimal(38, 2), LONG),
        (pa.array([LONG], pa.decimal256(60, 4)), decimal(38, 2), LONG),
        (pa.array([-(2**63)]), decimal(38, 19), Decimal(f"-{2**63}.{'0' * 19}")),
        (pa.array([True]), BOOL, True),
        (pa.array([date(2026, 1, 2)], pa.date64()), DATE, date(2026, 1, 2)),
        (pa.array([NAIVE], pa.timestamp("ns")), TIMESTAMP, MOMENT),
        (pa.array([MOMENT], pa.timestamp("ms", "Europe/Berlin")), TIMESTAMP, MOMENT),
    ],
)
def test_parquet_values(tmp_path: Path, found: Any, type_: Type, expected: Any) -> None:
    p = Relation("p", ("x",), (type_,), is_derived=False)
    (tmp_path / "p.parquet").write_bytes(table({"x": found}))
    change = Run(a_source(tmp_path, "p.parquet", relation=p)).step()
    ((value,),) = to_python(change.added)
    assert (type(value), str(value)) == (type(expected), str(expected))


@pytest.mark.parametrize(
    ("found", "type_"),
    [
        (pa.array([1]), SYMBOL),
        (pa.array([b"a"]), SYMBOL),
        (pa.array(["1"]), NUMBER),
        (pa.array([1.0]), NUMBER),
        (pa.array([Decimal("1.0")]), NUMBER),
        (pa.array(["1"]), FLOAT),
        (pa.array([1.5]), decimal(5, 2)),
        (pa.array([1]), BOOL),
        (pa.array([NAIVE]), DATE),
        (pa.array([date(2026, 1, 2)]), TIMESTAMP),
        (pa.array([[1]]), NUMBER),
    ],
)
def test_parquet_types_that_do_not_fit(tmp_path: Path, found: Any, type_: Type) -> None:
    p = Relation("p", ("x",), (type_,), is_derived=False)
    (tmp_path / "p.parquet").write_bytes(table({"x": found}))
    (said,) = refused(Run(a_source(tmp_path, "p.parquet", relation=p)).step, "C0950")
    assert said.message.startswith(f"Column `x` of `p` is a `{type_}`, but in")


@pytest.mark.parametrize(
    ("found", "type_"),
    [
        (pa.array([-1]), UNSIGNED),
        (pa.array([2**53 + 1]), FLOAT),
        (pa.array([Decimal("1.234")]), decimal(5, 2)),
        (pa.array([10**9]), decimal(5, 2)),
        (pa.array([LONG], pa.decimal128(38, 2)), decimal(37, 2)),
        (pa.array([LONG], pa.decimal128(38, 2)), decimal(38, 1)),
        (pa.array([LONG], pa.decimal128(38, 2)), decimal(38, 3)),
        (pa.array([2**63 - 1]), decimal(38, 20)),
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP),
        (pa.array([2**62], pa.timestamp("us")), TIMESTAMP),
        (pa.array([10**7], pa.date32()), DATE),
        (pa.array([None], pa.int64()), NUMBER),
    ],
)
def test_parquet_values_that_do_not_fit(tmp_path: Path, found: Any, type_: Type) -> None:
    p = Relation("p", ("x",), (type_,), is_derived=False)
    (tmp_path / "p.parquet").write_bytes(table({"x": found}))
    run = Run(a_source(tmp_path, "p.parquet", relation=p, quarantine=True))
    (bad,) = run.bad_records(run.step([]))
    assert (bad.code, bad.line) == ("C0801", 1)
    assert json.loads(bad.raw).keys() == {"x"}


def test_what_is_no_parquet_file(tmp_path: Path) -> None:
    for data in (b"", b"PAR1", parquet([(1, "a")])[:-9], b"x" * 100):
        (tmp_path / "p.parquet").write_bytes(data)
        (found,) = refused(Run(a_source(tmp_path, "p.parquet")).step, "C0804")
        assert "it is not a sound Parquet file" in found.message


# --- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('format="xml"', "`format=xml` is not a value for `format`."),
        ("new_columns=maybe", "`new_columns=maybe` is not a value for `new_columns`."),
        ('order="z"', "`order=z` is not a value for `order`."),
        ('format="jsonl", delimiter=","', "`delimiter` does not apply to `jsonl`."),
        ('IO=parquet, columns="0:1"', "`columns` does not apply to `parquet`."),
        ('IO=delta, format="delta"', "`format` and `IO=delta` exclude each other."),
    ],
)
def test_parameters(said: str, what: str) -> None:
    text = f".decl p(x: number, y: symbol) key(x)\n.input p({said})\n.output p\n"
    with pytest.raises(InputError) as caught:
        check(parse(SourceFile("p.dl", text)))
    assert [(each.code, each.message) for each in caught.value.diagnostics] == [("C0206", what)]


def test_order_needs_a_key() -> None:
    text = '.decl p(x: number, y: symbol)\n.input p(order="y")\n.output p\n'
    with pytest.raises(InputError, match="only where `p` has a `key`"):
        check(parse(SourceFile("p.dl", text)))
    check(parse(SourceFile("p.dl", text.replace(")\n.i", ") key(x)\n.i", 1))))


def test_the_directive_is_checked_again_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "p.facts").write_text("1\ta\n")
    refused(Run(a_source(tmp_path, headers="maybe")).step, "C0806")
    rows: list[Row] = [(1, "a")]
    refused(partial(Run(a_source(tmp_path, colour="red")).step, rows), "C0806")
    assert P.arity == 2
