"""Reading by vectors: the same rows and quarantine as one by one, and only odd records are odd."""

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.arrow import expand_table, to_python
from corollary.core.program import Directive, Relation
from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Type, decimal
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.formats import (
    block_reader,
    delimited,
    text_columns,
    text_records,
    typed_values,
)
from corollary.warehouse.formats.dialect import dialect_of
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.sources import json_file, parquet_file
from corollary.warehouse.sources.source import SourceChange
from support.selection import examples
from support.source_model import Run, a_source, canonical

TYPES: dict[Type, tuple[str, tuple[str, ...]]] = {
    NUMBER: ("12", ("x", "+7", "0x10", "", "9223372036854775808")),
    FLOAT: ("1.5", ("x", "1e400", "Infinity", "", "1e999")),
    decimal(38, 2): ("1.50", ("1.505", "9" * 38, "+1", "", "1e2")),
    BOOL: ("true", ("yes", "", "TRUE")),
    DATE: ("2026-11-15", ("2026-02-30", "2024-02-29", "0000-01-01", "", "15.11.2026")),
    TIMESTAMP: ("2026-11-15T08:00:00Z", ("2026-11-15", "2024-02-29T00:00:00Z", "")),
    SYMBOL: ("a b", ("", 'say "hi"', "é", "x\x1fy", "\x85")),
}
P = Relation(
    "p",
    tuple(f"c{at}" for at in range(2 * len(TYPES))),
    (*TYPES, *(type_.with_null(True) for type_ in TYPES)),
    is_derived=False,
)
SAMPLES = [*TYPES.values(), *TYPES.values()]


def delimited_text(numbers: random.Random, rows: int, odd_one_in: int) -> bytes:
    """Returns lines of which some have odd fields, odd bytes, or another number of fields."""

    def field(sample: tuple[str, tuple[str, ...]]) -> str:
        return (
            sample[0] if numbers.randrange(odd_one_in * len(SAMPLES)) else numbers.choice(sample[1])
        )

    def line() -> bytes:
        text = ",".join(map(field, SAMPLES)).encode()
        if not numbers.randrange(4 * odd_one_in):
            odd = [b",", b"\0", b"\xff", b'"', b"\r", b'"a\nb"', b',"']
            at = numbers.randrange(len(text))
            text = text[:at] + numbers.choice(odd) + text[at:]
        return text + numbers.choice([b"\n", b"\r\n"])

    return b"".join(line() for _ in range(rows))


def json_text(numbers: random.Random, rows: int, odd_one_in: int) -> bytes:
    def value(type_: Type) -> Any:
        good: Any = {"number": 12, "float": 1.5, "bool": True}.get(type_.kind, TYPES[type_][0])
        odd = ["x", None, 1, 2**70, [1], {"a": 1}, "1e5", "NaN"]
        return good if numbers.randrange(odd_one_in * len(SAMPLES)) else numbers.choice(odd)

    def line() -> str:
        values = [value(type_.with_null(False)) for type_ in P.types]
        row: Any = dict(zip(P.columns, values, strict=True))
        if not numbers.randrange(4 * odd_one_in):
            row = numbers.choice([values, {**row, "more": 1}, {}, {**row, "deep": {"a": 1.5}}])
        text = json.dumps(row)
        return text if numbers.randrange(4 * odd_one_in) else numbers.choice([text[:-1], "", "{"])

    return "".join(line() + "\n" for _ in range(rows)).encode()


def parquet_file_bytes(numbers: random.Random, rows: int, odd_one_in: int) -> bytes:
    names = ("c0", "c1", "c2", "c3", "c4")
    odd: list[list[Any]] = [[2**63], [2**60 + 1, None], [10**19, None], [None], [None]]
    good: list[Any] = [12, 7, 12, 20_000, "a"]
    kinds = [pa.uint64(), pa.int64(), pa.decimal128(38, 0), pa.int32(), pa.string()]

    def column(at: int) -> list[Any]:
        return [
            good[at] if numbers.randrange(odd_one_in) else numbers.choice(odd[at])
            for _ in range(rows)
        ]

    table = pa.table({name: pa.array(column(at), kinds[at]) for at, name in enumerate(names)})
    table = table.set_column(3, "c3", table["c3"].cast(pa.date32()))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=max(1, rows // 3))
    return sink.getvalue()


Q = Relation(
    "p",
    ("c0", "c1", "c2", "c3", "c4"),
    (NUMBER, FLOAT, decimal(20, 1), DATE, SYMBOL),
    is_derived=False,
)
FORMS: dict[str, tuple[Any, Relation]] = {
    "p.csv": (delimited_text, P),
    "p.jsonl": (json_text, P),
    "p.parquet": (parquet_file_bytes, Q),
}


def step(path: Path, relation: Relation, **said: str) -> SourceChange:
    if path.suffix == ".csv":
        said = {"rfc4180": "true", **said}
    source = a_source(path.parent, path.name, relation=relation, quarantine=True, **said)
    return Run(source).step()


def forbid_vectors(patch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (block_reader, "read_regular"),
        (block_reader, "read_texts"),
        (json_file, "read_vectorized"),
        (typed_values, "_cast"),
    ):
        patch.setattr(module, name, lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@given(seed=st.integers(0, 2**32), odd_one_in=st.sampled_from([1, 3, 30]), size=st.integers(1, 500))
@settings(max_examples=examples(12, 100))
def test_vectors_and_single_records_agree(
    tmp_path_factory: pytest.TempPathFactory, name: str, seed: int, odd_one_in: int, size: int
) -> None:
    write, relation = FORMS[name]
    path = tmp_path_factory.mktemp("both") / name
    path.write_bytes(write(random.Random(seed), 40, odd_one_in))
    with pytest.MonkeyPatch.context() as patch:
        forbid_vectors(patch)
        single = step(path, relation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_records, "BLOCK_BYTES", size)
        patch.setattr(parquet_file, "BATCH_ROWS", 1 + size % 20)
        together = step(path, relation)
    assert together.bad_rows.equals(single.bad_rows)
    rows = [list(map(canonical, to_python(each.added))) for each in (together, single)]
    assert rows[0] == rows[1]
    assert together.position == single.position


@pytest.mark.parametrize("type_", [type_ for type_ in P.types if type_.kind != "symbol"], ids=str)
def test_only_odd_fields_are_read_one_by_one(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    good, odd = TYPES[type_.with_null(False)]
    read: list[int] = []
    really = block_reader._RecordReader.row

    def note(self: Any, record: Any) -> Any:
        read.append(record.line)
        return really(self, record)

    monkeypatch.setattr(block_reader._RecordReader, "row", note)
    relation = Relation("p", ("x", "y"), (type_, SYMBOL), is_derived=False)
    lines = [f"{good}\tb" for _ in range(300)]
    for number, text in enumerate(odd):
        lines[50 * number] = f"{text}\tb"
    lines[299] = f"{good}\tb\tc"
    text = io.BytesIO("\n".join(lines).encode())
    dialect = dialect_of(relation, Directive("input", "p"))
    table, malformed = delimited.parse_rows(text, "p", relation, dialect)
    expected = [50 * number + 1 for number, text in enumerate(odd) if text or not type_.nullable]
    assert read == [*expected, 300]
    assert table.num_rows + len(malformed) == 300


@given(
    st.sampled_from([*TYPES, decimal(2, 2), decimal(38, 38), decimal(18, 0)]),
    st.lists(st.text(st.sampled_from("0123456789-+.:eETZ "), max_size=26), max_size=8),
)
@settings(max_examples=examples(25, 2000))
def test_plain_texts_convert(type_: Type, texts: list[str]) -> None:
    samples = [TYPES[type_][0]] if type_ in TYPES else ["0"]
    column = pa.array([*samples, *texts], pa.string())
    if type_.kind == "symbol":
        return
    is_plain = text_columns.are_plain(column, type_)
    assert is_plain[0]
    chosen = column.filter(pa.array(is_plain))
    converted = text_columns.convert_texts(chosen, type_)
    assert converted is not None
    exact = [typed_values.parse_value(each, type_) for each in chosen.to_pylist()]
    rows = to_python(pa.table([converted], ["x"]))
    assert [(str(value),) for value in exact] == [tuple(map(str, row)) for row in rows]


def test_the_checksum_of_a_stream_is_that_of_the_file() -> None:
    for data in (b"", b"a", b"\xef\xbb\xbfabc\n" * 5, gzip.compress(b"abc" * 10_000)):
        stream = TextStream(io.BytesIO(data), "p", None)
        while stream.read(7):
            pass
        assert stream.checksum() == checksum_of(data)


def test_the_rows_of_a_large_file_are_compact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_records, "BLOCK_BYTES", 100)
    relation = Relation("p", ("x", "y"), (NUMBER, SYMBOL), is_derived=False)
    (tmp_path / "p.csv").write_text("".join(f"{at},{at % 3}\n" for at in range(200)))
    added = step(tmp_path / "p.csv", relation).added
    assert added.column("x").num_chunks > 5
    assert added.schema.types == [pa.int16(), pa.dictionary(pa.int8(), pa.string())]
    assert to_python(expand_table(added, relation)) == [(at, str(at % 3)) for at in range(200)]
