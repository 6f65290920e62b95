"""Facts files: round trips, the fast reader against the exact one, and every refusal."""

import gzip
import io
import math
import os
import re
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.arrow import expand_table, from_python, schema_of, to_python
from corollary.core.logic import Value
from corollary.core.program import Directive, Relation
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
from corollary.core.values import format_value
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.formats import (
    block_reader,
    delimited,
    text_records,
)
from corollary.warehouse.formats.delimited_lines import text_column
from corollary.warehouse.formats.dialect import dialect_of, file_name_of
from corollary.warehouse.formats.output_files import OutputFile, write_outputs
from corollary.warehouse.formats.text_records import split_record
from support.generators.values import is_same, values
from support.selection import examples

BASIC = (SYMBOL, NUMBER, UNSIGNED, FLOAT, decimal(12, 2), decimal(18, 9), BOOL, DATE, TIMESTAMP)
LONG = (decimal(38, 2), decimal(38, 0), decimal(38, 38), decimal(2, 2))
ALL_TYPES = BASIC + tuple(type_.with_null(True) for type_ in BASIC)
NASTY = st.text(st.sampled_from('ab"\t,;\n\r\ufeff \x1f\u2028é\\'), max_size=6)
EDGE = Relation("edge", ("x", "y"), (NUMBER, SYMBOL), is_derived=False)


def relation(*types: Type) -> Relation:
    names = tuple(f"c{number}" for number in range(len(types)))
    return Relation("p", names, types, is_derived=False)


def directive(name: str = "input", **parameters: str) -> Directive:
    return Directive(name, "p", tuple(parameters.items()))


def written(rows: list[tuple[Value, ...]], p: Relation, **parameters: str) -> bytes:
    stream = io.BytesIO()
    delimited.write(from_python(rows, p), stream, p, directive("output", **parameters))
    return stream.getvalue()


def read(data: bytes, p: Relation, **parameters: str) -> list[tuple[Value, ...]]:
    table = delimited.read_stream(io.BytesIO(data), p, directive(**parameters), name="p.facts")
    table = expand_table(table, p)
    assert table.schema == schema_of(p)
    return to_python(table)


def findings(data: bytes, p: Relation, **parameters: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        read(data, p, **parameters)
    return caught.value.diagnostics


def exactly(
    data: bytes, p: Relation, asked: Directive
) -> tuple[list[tuple[Value, ...]], list[list[Diagnostic]]]:
    """Returns the rows and the findings of the exact reader, which reads the file as a whole."""
    dialect = dialect_of(p, asked)
    text = data.decode("utf-8", "surrogateescape")
    line = 1
    if dialect.has_header and text:
        header, end = split_record(text, 0, 1, dialect)
        if header.problem is None:
            text, line = text[end + 1 :], 1 + text.count("\n", 0, end + 1)
    piece = text.encode("utf-8", "surrogateescape")
    read = list(block_reader.read_exactly([(line, piece)], "p.facts", p, dialect))
    rows = [each for each in read if isinstance(each, tuple)]
    return rows, [each for each in read if isinstance(each, list)]


def parsed(
    data: bytes, p: Relation, asked: Directive
) -> tuple[list[tuple[Value, ...]], list[list[Diagnostic]]]:
    """Returns the rows and the findings of the blocks of a file."""
    table, malformed = delimited.parse_rows(io.BytesIO(data), "p.facts", p, dialect_of(p, asked))
    table = expand_table(table, p)
    assert table.schema == schema_of(p)
    return to_python(table), malformed


def quickly(data: bytes, p: Relation, asked: Directive) -> list[tuple[Value, ...]] | None:
    """Returns the rows that Arrow reads, None if it is not trusted."""
    dialect = replace(dialect_of(p, asked), has_header=False)
    (block,) = text_records.split_blocks(io.BytesIO(data), dialect)
    if not block.has_regular_quotes:
        return None
    table = block_reader.read_regular(block.data, p, dialect)
    return None if table is None else to_python(table)


def key(row: tuple[Value, ...]) -> tuple[object, ...]:
    def one(value: Value) -> tuple[object, ...]:
        if value is None:
            return (0,)
        if isinstance(value, float):
            return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
        return (1, value)

    return tuple(map(one, row))


def assert_same_rows(left: list[tuple[Value, ...]], right: list[tuple[Value, ...]]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert len(one) == len(other)
        assert all(map(is_same, one, other)), (one, other)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Relation, list[tuple[Value, ...]]]:
    types = draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=4))

    def strategy(type_: Type) -> st.SearchStrategy[Value]:
        return NASTY | values(type_) if type_.kind == "symbol" else values(type_)

    rows = draw(st.lists(st.tuples(*map(strategy, types)), max_size=5))
    p = relation(*types)
    return p, to_python(from_python(rows, p))


# --- round trips ----------------------------------------------------------------------------------


@given(
    tables(),
    st.sampled_from(["", ",", ";;", "-", ".", "aa", "0", "·"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=examples(25, 300))
def test_round_trip_with_quotes(
    table: tuple[Relation, list[tuple[Value, ...]]],
    delimiter: str,
    has_header: bool,
    is_reversed: bool,
) -> None:
    p, rows = table
    parameters = {"rfc4180": "true"}
    if delimiter:
        parameters["delimiter"] = delimiter
    if has_header:
        parameters["headers"] = "true"
    if is_reversed:
        parameters["columns"] = ":".join(map(str, reversed(range(p.arity))))
    try:
        data = written(rows, p, **parameters)
    except InputError as error:
        data, refused = b"", str(error)
    else:
        refused = ""
    if refused:
        assert "NUL" in refused
        assert any("\0" in value for row in rows for value in row if isinstance(value, str))
        return
    assert_same_rows(read(data, p, **parameters), sorted(rows, key=key))


@given(tables(), st.sampled_from(["\t", ",", ";;", "-", ".", "a"]), st.booleans())
@settings(max_examples=examples(25, 300))
def test_round_trip_without_quotes_or_a_refusal(
    table: tuple[Relation, list[tuple[Value, ...]]], delimiter: str, is_crlf: bool
) -> None:
    p, rows = table
    try:
        data = written(rows, p, delimiter=delimiter)
    except InputError as error:
        codes = [finding.code for finding in error.diagnostics]
    else:
        codes = []
        if is_crlf:
            data = data.replace(b"\n", b"\r\n")
        assert_same_rows(read(data, p, delimiter=delimiter), sorted(rows, key=key))
    assert codes in ([], ["C0807"])


@given(st.data(), st.sampled_from(ALL_TYPES))
def test_columns_of_text_agree_with_the_reference(data: st.DataObject, type_: Type) -> None:
    p = relation(type_)
    table = from_python(data.draw(st.lists(st.tuples(values(type_)), min_size=1)), p)
    expected = [None if v is None else format_value(v, type_) for (v,) in to_python(table)]
    assert text_column(table.column(0), type_).to_pylist() == expected


def test_floats_are_canonical_in_tables() -> None:
    odd = struct.unpack("d", struct.pack("Q", 0xFFF8000000000001))[0]
    rows = to_python(from_python([(-0.0,), (odd,)], relation(FLOAT)))
    assert_same_rows(rows, [(0.0,), (math.nan,)])


# --- the two readers ------------------------------------------------------------------------------

FRAGMENTS = {
    "symbol": [
        *("a", "", "\x1f", '"', '""', '"a,b"', '"x\ny"', '"x\r\ny""z"', 'a"b', '"a"b', '"', "é"),
        *("\udcff", "\udcc3", "\0", "\r", "a\rb", " ", "null", "NULL", "nan", "\ufeff", "\u2028"),
    ],
    "number": [
        *("1", "-7", "+1", "007", "0x1f", "0xffffffffffffffff", "-", "1-2", "", " 1", "1 ", '"5"'),
        *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.0", "1e3", "٣"),
        *("-0x10", "0b101", "1_000", "9" * 30, "0" * 30 + "1", '""', "\t1", "0X1F", "--1", "-0"),
    ],
    "unsigned": [
        *("1", "-1", "-0", "18446744073709551615", "18446744073709551616", "0b1", "", "+1", "007"),
        *("0xffffffffffffffff", "1.", " 1", "9" * 25),
    ],
    "float": [
        *("1.5", "-0.0", "nan", "-nan", "inf", "-inf", "1e999", "1e-999", "infinity", "e", "+1"),
        *(
            ".5",
            "5.",
            "1e5",
            "na",
            "1.5.5",
            "",
            "-1e999",
            "nann",
            "i",
            "NaN",
            "INF",
            "1e400",
            "0x1p3",
        ),
        *(
            "1E5",
            "1e+5",
            "1e",
            "nan(1)",
            "1,5",
            " 1.5",
            "1.5 ",
            "-",
            "123456789012345678901234567890",
        ),
        *(
            "4.9e-324",
            "2.2250738585072011e-308",
            "1.7976931348623159e308",
            "1_0",
            "-.0",
            "1d",
            "1f",
        ),
    ],
    "decimal": [
        *(
            "1.50",
            "1.5000",
            "1.505",
            "-.5",
            "5.",
            ".",
            "-",
            "1-1",
            "99999999999.99",
            "-0",
            "",
            "+1",
        ),
        *(
            "1e2",
            "0.5",
            "0.50",
            ".5",
            "00000.5",
            "9" * 36 + ".99",
            "-" + "9" * 38,
            "9" * 39,
            "1" * 38,
        ),
        *(
            "1" * 36 + ".5",
            "0" * 50 + "1",
            "1." + "0" * 50,
            "0." + "9" * 38,
            " 1",
            "1 ",
            "1/2",
            '"5"',
        ),
        *("1" * 37 + ".0", "nan", "-0.0", "9" * 10 + ".99", "1.000000001", "0.0000000001"),
    ],
    "bool": ["true", "false", "True", "1", "", '"true"', "true ", "t", '""'],
    "date": [
        *("2026-11-15", "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-30", "-001-01-01", ""),
        *(
            "2024-02-29",
            "2023-02-29",
            "1900-02-29",
            "2000-02-29",
            "2026-13-01",
            "2026-00-10",
            "20261115",
        ),
        *("2026-1-05", "2026-11-31", "2026/11/15", " 2026-11-15", "10000-01-01", '"2026-11-15"'),
    ],
    "timestamp": [
        *("2026-11-15T08:00:00Z", "2026-11-15 08:00:00.5Z", "2026-11-15T08:00:00.123456Z"),
        *("2026-11-15T08:00:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", ""),
        *("9999-12-31T23:59:59.999999Z", "2026-11-15T08:00:60Z", "2026-11-15T24:00:00Z"),
        *("2026-11-15T08:00Z", "2026-11-15T08:00:00+02:00", "2026-11-15T08:00:00.1234567Z"),
        *("2026-11-15T08:00:00.Z", "2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2026-11-15Z"),
        *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-00:01", "2026-11-15T8:00:00Z"),
    ],
}
"""Texts of each kind; the first is good."""
READ_TYPES = (*ALL_TYPES, *LONG, *(type_.with_null(True) for type_ in LONG))


@st.composite
def files(draw: st.DrawFn) -> tuple[Relation, Directive, bytes]:
    types = draw(st.lists(st.sampled_from(READ_TYPES), min_size=1, max_size=3))
    delimiter = draw(st.sampled_from(["\t", ",", ";;", "é"]))
    odd_one_in = draw(st.sampled_from([1, 4, 20]))

    def field(type_: Type) -> str:
        pool = FRAGMENTS[type_.kind]
        good = pool[: 2 if type_.kind in {"number", "bool", "float"} else 1]
        if type_.kind == "symbol":
            good = ["a", "b c", ""]
        if type_.kind == "decimal" and type_.precision == type_.scale:
            good = ["0.5"]
        return draw(st.sampled_from(pool if draw(st.integers(1, odd_one_in)) == 1 else good))

    rows = []
    for _ in range(draw(st.integers(0, 6))):
        fields = [field(type_) for type_ in types]
        if draw(st.integers(0, 4 * odd_one_in)) == 0:
            fields.append("extra")
        rows.append(delimiter.join(fields))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    text = ending.join(rows) + draw(st.sampled_from(["", ending]))
    parameters = {"delimiter": delimiter, "max_bad": "off"}  # any line may be the header
    for name in ("rfc4180", "headers"):
        parameters[name] = draw(st.sampled_from(["true", "false"]))
    if draw(st.integers(0, 3)) == 0:
        positions = draw(st.permutations(range(len(types))))
        parameters["columns"] = ":".join(map(str, positions))
    p = relation(*types)
    return p, directive(**parameters), text.encode("utf-8", "surrogateescape")


@given(files())
@settings(max_examples=examples(25, 1500))
def test_the_fast_reader_agrees_or_declines(file: tuple[Relation, Directive, bytes]) -> None:
    p, asked, data = file
    quick = quickly(data, p, asked) if data else None
    if quick is not None:
        rows, malformed = exactly(data, p, replace(asked, parameters=without_headers(asked)))
        assert not malformed
        assert_same_rows(quick, rows)


def without_headers(asked: Directive) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in asked.parameters if pair[0] != "headers")


@given(st.sampled_from(BASIC), st.text(st.sampled_from('0123459-+.:eEnaif TZxu,"'), max_size=12))
@settings(max_examples=examples(25, 1500))
def test_the_fast_reader_accepts_no_more(type_: Type, text: str) -> None:
    p = relation(type_)
    data = (text + "\n").encode()
    quick = quickly(data, p, directive())
    if quick is not None:
        assert_same_rows(quick, exactly(data, p, directive())[0])


@pytest.mark.parametrize(
    ("data", "p", "parameters"),
    [
        (b"1\ta\r\n-2\t\n3\tc", EDGE, {}),
        (b"1;;a\n", EDGE, {"delimiter": ";;"}),
        (b'1,"a"",\r\nb"\r\n2,c\n', EDGE, {"rfc4180": "true"}),
        (b"a,z,1\nb,z,2\n", EDGE, {"delimiter": ",", "columns": "2:0"}),
        (b'"1",c\r\n', EDGE, {"rfc4180": "true"}),
        (b"nan\ninf\n1e5\n\n", relation(FLOAT.with_null(True)), {}),
        (b"2026-11-15T08:00:00Z\ttrue\n", relation(TIMESTAMP, BOOL), {}),
        (b"-12345678901234567890123456789012345.678\n", relation(decimal(38, 3)), {}),
    ],
)
def test_plain_files_take_the_fast_reader(
    data: bytes, p: Relation, parameters: dict[str, str]
) -> None:
    asked = directive(**parameters)
    quick = quickly(data, p, asked)
    assert quick is not None
    assert_same_rows(quick, exactly(data, p, asked)[0])


def test_a_file_of_many_blocks() -> None:
    rows = 200_000
    data = b"".join(b"%d\tnode%d\n" % (number, number) for number in range(rows))
    table = delimited.read_stream(io.BytesIO(data), EDGE, directive())
    assert table.num_rows == rows
    assert table.slice(rows - 1).to_pylist() == [{"x": rows - 1, "y": f"node{rows - 1}"}]
    (found,) = findings(data + b"x\ty\n", EDGE)
    assert str(found.span) == f"p.facts:{rows + 1}:1"


@given(files(), st.integers(1, 40))
@settings(max_examples=examples(25, 1500))
def test_blocks_read_like_the_whole(file: tuple[Relation, Directive, bytes], size: int) -> None:
    p, asked, data = file
    rows, malformed = exactly(data, p, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_records, "BLOCK_BYTES", size)
        found = parsed(data, p, asked)
    assert_same_rows(found[0], rows)
    assert found[1] == malformed
    assert_same_rows(parsed(data, p, asked)[0], rows)


# --- Soufflé's conventions ------------------------------------------------------------------------


def test_reading() -> None:
    assert read(b"1\ta b\n2\t\n", EDGE) == [(1, "a b"), (2, "")]
    assert read(b"1\ta\n1\ta\n", EDGE) == [(1, "a"), (1, "a")]
    assert read(b"1\\t|2\n", relation(SYMBOL, NUMBER), delimiter="|") == [("1\\t", 2)]
    assert read(b"1\t2\n", relation(NUMBER, NUMBER), delimiter="\\t") == [(1, 2)]
    assert read(b"\xef\xbb\xbf1\ta\n", EDGE) == [(1, "a")]
    assert read(b"1;;\x1f\n", EDGE, delimiter=";;") == [(1, "\x1f")]
    assert read(b"1\x1f;;2\n", relation(SYMBOL, NUMBER), delimiter=";;") == [("1\x1f", 2)]
    assert read(b'1\t"a"\n', EDGE) == [(1, '"a"')]
    assert read(b"1\ta\rb\n", EDGE) == [(1, "a\rb")]
    assert read(b"\n\n", relation(SYMBOL)) == [("",), ("",)]
    assert read(b"\n", relation(NUMBER.with_null(True))) == [(None,)]
    assert read(b'"",1\n,2\n', relation(SYMBOL.with_null(True), NUMBER), rfc4180="true") == [
        ("", 1),
        (None, 2),
    ]
    assert read(b'a"b,1\n', relation(SYMBOL, NUMBER), rfc4180="true") == [('a"b', 1)]


def test_nullary_relations() -> None:
    p = relation()
    assert read(b"", p) == []
    assert read(b"()\n()\n", p) == [()]
    assert written([], p) == b""
    assert written([()], p) == b"()\n"
    (found,) = findings(b"(1)\n", p)
    assert found.message == "`(1)` is not `()`, the one tuple of `p`"


def test_writing() -> None:
    p = relation(NUMBER, SYMBOL.with_null(True))
    rows: list[tuple[Value, ...]] = [(10, "b"), (-1, "é"), (10, None), (10, "a")]
    assert written(rows, p) == "-1\té\n10\t\n10\ta\n10\tb\n".encode()
    assert written(rows, p, rfc4180="true") == '-1,"é"\n10,\n10,"a"\n10,"b"\n'.encode()
    assert written(rows[:1], p, headers="true", columns="1:0") == b"c1\tc0\nb\t10\n"
    floats: list[tuple[Value, ...]] = [(math.nan,), (math.inf,), (None,), (-1.0,)]
    assert written(floats, relation(FLOAT.with_null(True))) == b"\n-1.0\ninf\nnan\n"


def test_compression(tmp_path: Path) -> None:
    p, path = relation(NUMBER), tmp_path / "p.csv.gz"
    asked = directive("output", compress="true")
    assert file_name_of(asked) == "p.csv.gz"
    write_outputs([OutputFile(from_python([(2,), (1,)], p), path, p, asked)])
    first = path.read_bytes()
    assert gzip.decompress(first) == b"1\n2\n"
    write_outputs([OutputFile(from_python([(1,), (2,)], p), path, p, asked)])
    assert path.read_bytes() == first
    assert to_python(delimited.read(path, p, directive(compress="true"))) == [(1,), (2,)]
    assert to_python(delimited.read(path, p, directive())) == [(1,), (2,)]


def test_printing() -> None:
    stream = io.BytesIO()
    asked = directive("output", IO="stdout", headers="true")
    delimited.print_rows(from_python([(2, "b\tb"), (1, "a")], EDGE), stream, EDGE, asked)
    assert stream.getvalue() == (
        b"---------------\nedge\nx\ty\n===============\n1\ta\n2\tb\tb\n===============\n"
    )


# --- refusals -------------------------------------------------------------------------------------

TOO_FEW = "2 fields stand where `columns` asks for position 2"
AFTER_QUOTE = "text follows the closing quote of a field"
NEVER_CLOSED = "the quote that opens this field is never closed"


@pytest.mark.parametrize(
    ("data", "parameters", "code", "place", "message"),
    [
        (b"1\ta\nx\tb\n", {}, "C0801", "2:1", "`x` is not a number (column `x` of `edge`)"),
        (b"\ta\n", {}, "C0801", "1:1", "an empty field is not a number (column `x` of `edge`)"),
        (
            b"a;z;q1\n",
            {"delimiter": ";", "columns": "2:0"},
            "C0801",
            "1:5",
            "`q1` is not a number (column `x` of `edge`)",
        ),
        (
            b'"a\nb","x"\n',
            {"rfc4180": "true", "columns": "1:0"},
            "C0801",
            "2:4",
            "`x` is not a number (column `x` of `edge`)",
        ),
        (b"1\n", {}, "C0802", "1:2", "1 field stands where `edge` has 2 columns"),
        (
            b"1\x1fa\n",
            {"delimiter": ";;"},
            "C0802",
            "1:4",
            "1 field stands where `edge` has 2 columns",
        ),
        (b"1\ta\n\n", {}, "C0802", "2:1", "1 field stands where `edge` has 2 columns"),
        (b"1\ta\tb\n", {}, "C0802", "1:5", "3 fields stand where `edge` has 2 columns"),
        (b"1\ta\n", {"columns": "0:2"}, "C0802", "1:4", TOO_FEW),
        (b"1\ta\n2\t\xc3\xa9\xff\n", {}, "C0803", "2:4", "the byte 0xff is not UTF-8 here"),
        (b"1\ta\0b\n", {}, "C0803", "1:4", "the file holds a NUL byte here"),
        (b'1,"a\n2,b\n', {"rfc4180": "true"}, "C0801", "1:3", NEVER_CLOSED),
        (
            b'1,"a"b\n',
            {"rfc4180": "true"},
            "C0801",
            "1:6",
            "text follows the closing quote of a field",
        ),
    ],
)
def test_malformed_records(
    data: bytes, parameters: dict[str, str], code: str, place: str, message: str
) -> None:
    (found,) = findings(data, EDGE, **parameters)
    assert (found.code, str(found.span), found.message) == (code, f"p.facts:{place}", message)


def test_a_finding_shows_the_line() -> None:
    (found,) = findings(b"1\ta\n2\tb\nthree\tc\n", EDGE)
    assert str(found) == (
        "error[C0801]: `three` is not a number (column `x` of `edge`)\n"
        "  --> p.facts:3:1\n"
        " 3 | three   c\n"
        "   | ^^^^^"
    )


@pytest.mark.slow
def test_a_long_line_is_shown_in_part() -> None:
    p = relation(SYMBOL, NUMBER)
    (found,) = findings(b"a" * 10_000_000 + b"\t\x1b[31m\n", p)
    assert str(found.span) == "p.facts:1:10000002"
    assert len(str(found)) < 700
    assert "\x1b" not in str(found)
    assert len(findings(b"1" * 10_000_000 + b"\n", relation(NUMBER))[0].message) < 100


def test_at_most_twenty_findings() -> None:
    assert len(findings(b"x\ta\n" * 20, EDGE)) == 20
    found = findings(b"x\ta\n" * 1000, EDGE)
    assert len(found) == 21
    assert found[-1].message == "and more in `p.facts`: only the first 20 findings are shown"


def test_good_rows_beside_malformed_records() -> None:
    data = b"1\ta\nx\tb\n2\t\xff\n3\tc\n4\n"
    dialect = dialect_of(EDGE, directive())
    table, malformed = delimited.parse_rows(io.BytesIO(data), "p.facts", EDGE, dialect)
    assert to_python(table) == [(1, "a"), (3, "c")]
    assert [(f.code, f.span.line, f.span.file.text) for (f, *_) in malformed if f.span] == [
        ("C0801", 2, "x\tb"),
        ("C0803", 3, "2\t\\xff"),
        ("C0802", 5, "4"),
    ]


@pytest.mark.slow
def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(InputError) as caught:
            delimited.read(path, EDGE, directive(), name="e.facts")
        (found,) = caught.value.diagnostics
        assert found.code == "C0804"
        return found.message

    assert refusal(tmp_path / "no") == "`e.facts` cannot be read: No such file or directory"
    assert "directory" in refusal(tmp_path).lower()
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "`e.facts` cannot be read: it is not a file"
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1\ta\n" * 1000)[:-20])
    assert "not a sound gzip file" in refusal(tmp_path / "cut.gz")
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(2**20)) * 300)
    assert "expands to more than 200 times" in refusal(tmp_path / "bomb.gz")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("input", {"delimeter": ","}, "`.input` has no parameter `delimeter`"),
        ("input", {"IO": "sqlite"}, "`IO` is `file` or `stdin` here, not `sqlite`"),
        ("output", {"IO": "stdin"}, "`IO` is `file` or `stdout` here, not `stdin`"),
        ("input", {"headers": "yes"}, "`headers` is `true` or `false`, not `yes`"),
        ("input", {"delimiter": ""}, "`delimiter` must not be empty or hold a line break"),
        ("input", {"delimiter": "a\n"}, "`delimiter` must not be empty or hold a line break"),
        (
            "input",
            {"rfc4180": "true", "delimiter": '"'},
            '`delimiter` must not hold a `"` where `rfc4180` is true',
        ),
        (
            "input",
            {"columns": "0:0"},
            "`columns` names 2 different positions, one for each column of `edge`, not `0:0`",
        ),
        (
            "input",
            {"columns": "0:x"},
            "`columns` names 2 different positions, one for each column of `edge`, not `0:x`",
        ),
        (
            "output",
            {"columns": "0:2"},
            "`columns` of an `.output` orders the columns, and `0:2` leaves gaps",
        ),
    ],
)
def test_parameters(name: str, parameters: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        dialect_of(EDGE, directive(name, **parameters))
    assert [(f.code, f.message) for f in caught.value.diagnostics] == [("C0806", message)]


@pytest.mark.parametrize(
    ("symbol", "delimiter", "what"),
    [
        ("a\tb", "\t", r"the delimiter `\t`"),
        ("a\nb", "\t", "a line break"),
        ("a\r", "\t", "a line break"),
        ("a;", ";;", "the delimiter `;;`"),
    ],
)
def test_symbols_that_need_quotes(symbol: str, delimiter: str, what: str) -> None:
    p = relation(SYMBOL, NUMBER)
    rows: list[tuple[Value, ...]] = [(symbol, 1), ("A", 2)]
    with pytest.raises(InputError) as caught:
        written(rows, p, delimiter=delimiter)
    (found,) = caught.value.diagnostics
    assert found.code == "C0807"
    assert re.fullmatch(
        rf"row 2 of `p`, \(`[^`]*`, `1`\), has {re.escape(what)} in column `c0`", found.message
    )
    assert found.note == "write rfc4180=true in the directive, which puts symbols in quotes"
    assert read(written(rows, p, rfc4180="true"), p, rfc4180="true") == sorted(rows)


def test_an_empty_symbol_is_not_written_as_null() -> None:
    p = relation(SYMBOL.with_null(True))
    with pytest.raises(InputError, match="an empty text, which would read as null"):
        written([("",), (None,)], p)
    assert written([("",), (None,)], p, rfc4180="true") == b'\n""\n'


# --- files appear whole or not at all -------------------------------------------------------------


def output(path: Path, *symbols: str) -> OutputFile:
    p = relation(SYMBOL)
    rows: list[tuple[Value, ...]] = [(symbol,) for symbol in symbols]
    return OutputFile(from_python(rows, p), path, p, directive("output"))


def test_several_files_or_none(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("old\n")
    with pytest.raises(InputError, match="C0807"):
        write_outputs([output(one, "new"), output(two, "a\tb")])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one.csv": "old\n"}
    with pytest.raises(InputError, match="C0804"):
        write_outputs([output(tmp_path / "new" / "x", "a"), output(one / "x", "a")])
    with pytest.raises(InputError, match="are both written to"):
        write_outputs([output(one, "new"), output(one, "newer")])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one.csv": "old\n"}
    write_outputs([output(one, "new"), output(two, "b", "a")])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "one.csv": "new\n",
        "two.csv": "a\nb\n",
    }


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("")
    path.chmod(0o640)
    write_outputs([output(path, "a")])
    assert path.stat().st_mode & 0o777 == 0o640


def test_tables_may_be_empty_or_in_chunks() -> None:
    p = relation(NUMBER, SYMBOL)
    assert written([], p) == b""
    table = pa.concat_tables([from_python([(2, "b")], p), from_python([(1, "a")], p)])
    stream = io.BytesIO()
    delimited.write(table, stream, p, directive("output"))
    assert stream.getvalue() == b"1\ta\n2\tb\n"
