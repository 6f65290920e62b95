"""COPY FROM: lines of clients become rows, all or none, and errors say where they are."""

from __future__ import annotations

import random
import string
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors
from sqlglot import exp

from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, decimal
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.serve.postgres import copy_in
from corollary.serve.postgres.copy_in import CopyReader
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelation
from corollary.serve.postgres.rows import copy_lines
from corollary.serve.postgres.statements import CopyStatement
from support.selection import sampled, seed_of_run
from support.serve.pg_endpoint import Endpoint

Connection = psycopg.Connection[Any]
TYPES = {
    "s": SYMBOL,
    "n": NUMBER,
    "m": decimal(12, 2),
    "f": FLOAT,
    "b": BOOL,
    "d": DATE,
    "t": TIMESTAMP,
}
RELATION = VisibleRelation(
    "r", tuple(QueryColumn(name, type_.with_null(True)) for name, type_ in TYPES.items()), "base"
)
EVERY = exp.select("*").from_("r")

# --- the reader ---------------------------------------------------------------------------------


def _rows(dice: random.Random) -> pa.Table:
    alphabet = string.ascii_letters + "\\,|\"\t\n\r' é\x1e"
    makers = {
        "s": lambda: "".join(dice.choices(alphabet, k=dice.randint(0, 6))),
        "n": lambda: dice.randint(-(2**63), 2**63 - 1),
        "m": lambda: Decimal(dice.randint(-(10**11), 10**11)) / 100,
        "f": lambda: dice.choice((dice.uniform(-9, 9), 1e300, float("inf"), float("-inf"))),
        "b": lambda: dice.random() < 0.5,
        "d": lambda: date(1, 1, 1) + timedelta(days=dice.randrange(3_000_000)),
        "t": lambda: (
            datetime(1990, 1, 1, tzinfo=UTC) + timedelta(microseconds=dice.getrandbits(50))
        ),
    }
    count = dice.randint(0, 40)
    columns = [
        [None if dice.random() < 0.2 else make() for _ in range(count)] for make in makers.values()
    ]
    types = [pa.string(), pa.int64(), pa.decimal128(12, 2), pa.float64(), pa.bool_(), pa.date32()]
    types.append(pa.timestamp("us", "UTC"))
    return pa.table([pa.array(*each) for each in zip(columns, types, strict=True)], list(makers))


def _read(form: CopyStatement, data: bytes, dice: random.Random) -> pa.Table:
    reader, at = CopyReader(RELATION, form), 0
    while at < len(data):
        size = dice.randint(1, 200)
        if reader.feed(data[at : at + size]):
            reader.convert()
        at += size
    reader.convert(is_last=True)
    with pa.memory_map(reader.file.name) as file:
        return pa.ipc.open_file(file).read_all()


FORMS = (
    CopyStatement(EVERY),
    CopyStatement(EVERY, delimiter="|", null="-"),
    CopyStatement(EVERY, "csv", ",", ""),
    CopyStatement(EVERY, "csv", "|", "-", "'", has_header=True),
)


@pytest.mark.parametrize("seed", sampled(range(40), 8))
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_is_copied_out_is_copied_in(
    seed: int, form: CopyStatement, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(f"{seed_of_run()} {seed} {FORMS.index(form)}")
    monkeypatch.setattr(copy_in, "BLOCK_BYTES", dice.randint(10, 400))
    rows, zone = _rows(dice), dice.choice(("UTC", "Europe/Rome", "Asia/Kolkata"))
    quote = form.quote if form.format == "csv" else None
    if quote is not None:  # an empty text that is not quoted is null
        texts = [each if each not in ("", "-") else "x" for each in rows["s"].to_pylist()]
        rows = rows.set_column(0, "s", pa.array(texts, pa.string()))
    messages = b"".join(
        copy_lines(
            rows,
            zone,
            delimiter=form.delimiter,
            null=form.null,
            quote=quote,
            has_header=form.has_header,
        )
    )
    data, at = b"", 0
    while at < len(messages):
        size = int.from_bytes(messages[at + 1 : at + 5], "big")
        data, at = data + messages[at + 5 : at + 1 + size], at + 1 + size
    assert _read(form, data, dice).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\\tb\\\\n\t1\n", ("a\tb\\n", 1)),
        (b"a\\\nb\t1\n", ("a\nb", 1)),
        (b"\\\\N\t\\N\n", ("\\N", None)),
        (b"x\t1\r\n", ("x", 1)),
        (b"x\t1", ("x", 1)),
        (b"x\t1\n\\.\nrest\n", ("x", 1)),
    ],
)
def test_text(data: bytes, expected: tuple[object, ...]) -> None:
    form = CopyStatement(exp.select("s", "n").from_("r"))
    (row,) = _read(form, data, random.Random(1)).to_pylist()
    assert tuple(row.values()) == expected


@pytest.mark.parametrize(
    ("data", "state", "message"),
    [
        (b"x\t1\nx\n", "22P04", "Line 2 of the COPY to `r` has 1 values, and not 2."),
        (b"x\t1\nx\t2\t3\n", "22P04", "Line 2 of the COPY to `r` has 3 values, and not 2."),
        (b"x\t1\nx\ty\n", "22P02", "Line 2 of the COPY to `r` is no row: `y` is not a number"),
        (b"x\t\n", "22P02", "Line 1 of the COPY to `r` has no value in the column `n`."),
        (b"x\t9223372036854775808\n", "22P02", "Line 1"),
        (b"\xff\t1\n", "22021", "UTF-8"),
        (b"\0\t1\n", "22021", "character 0"),
        (b"a\rb\t1\n", "22P04", "line break"),
        (b"a\\101\t1\n", "0A000", "by their numbers"),
    ],
)
def test_errors(data: bytes, state: str, message: str) -> None:
    with pytest.raises(PgError) as caught:
        _read(CopyStatement(exp.select("s", "n").from_("r")), data, random.Random(1))
    assert (caught.value.sqlstate, message in caught.value.message) == (state, True)


def test_lines_in_quotes_are_counted() -> None:
    form = CopyStatement(exp.select("s", "n").from_("r"), "csv", ",", "", has_header=True)
    with pytest.raises(PgError, match="Line 4 of the COPY"):
        _read(form, b's,n\n"a\nb",1\nx,y\n', random.Random(1))


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    form = CopyStatement(exp.select("s").from_("r"))
    monkeypatch.setattr(copy_in, "COPY_MAX_BYTES", 10)
    with pytest.raises(PgError, match="at most"):
        CopyReader(RELATION, form).feed(b"x" * 11)
    monkeypatch.setattr(copy_in, "RECORD_MAX_BYTES", 4)
    reader = CopyReader(RELATION, form)
    reader.feed(b"x" * 5)
    with pytest.raises(PgError, match="has more than 4 bytes"):
        reader.convert()


# --- clients ------------------------------------------------------------------------------------


@pytest.fixture
def owner(connection: Connection) -> Iterator[Connection]:
    """A connection with a table, which goes again."""
    connection.execute(
        "CREATE TABLE crate (id BIGINT PRIMARY KEY, n BIGINT CHECK (n < 100), s TEXT DEFAULT 'd')"
    )
    yield connection
    connection.execute("DELETE FROM crate")
    connection.execute("DROP TABLE crate")


def _copy(connection: Connection, statement: str, data: str | bytes) -> str | None:
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            copy.write(data)
        return cursor.statusmessage


def test_rows_and_defaults(owner: Connection) -> None:
    with owner.cursor() as cursor:
        with cursor.copy("COPY crate (n, id) FROM STDIN") as copy:
            for number in range(5):
                copy.write_row((None if number else 7, number))
        assert cursor.statusmessage == "COPY 5"
    assert _copy(owner, 'COPY public."crate" FROM STDIN csv header', "id,n,s\n9,1,\n") == "COPY 1"
    found = owner.execute("SELECT * FROM crate WHERE id IN (0, 1, 9) ORDER BY id").fetchall()
    assert found == [(0, 7, "d"), (1, None, "d"), (9, 1, None)]


@pytest.mark.parametrize(
    ("statement", "data", "error"),
    [
        ("COPY crate (id, n) FROM STDIN", "1\t1\n2\tx\n", errors.InvalidTextRepresentation),
        ("COPY crate (id, n) FROM STDIN", "1\t1\n1\t2\n", errors.UniqueViolation),
        ("COPY crate (id, n) FROM STDIN", "1\t1\n2\t200\n", errors.CheckViolation),
        ("COPY crate (id, n) FROM STDIN", "1\t1\n\\N\t1\n", errors.NotNullViolation),
        ("COPY crate (n) FROM STDIN", "1\n", errors.NotNullViolation),
        ("COPY crate (id) FROM STDIN", "1\t1\n", errors.BadCopyFileFormat),
        ("COPY crate (z) FROM STDIN", "1\n", errors.UndefinedColumn),
        ("COPY crate (id, id) FROM STDIN", "1\n", errors.DuplicateColumn),
        ("COPY nowhere FROM STDIN", "1\n", errors.UndefinedTable),
        ("COPY path FROM STDIN", "1\n", errors.WrongObjectType),
    ],
)
def test_all_rows_or_none(
    owner: Connection, statement: str, data: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        _copy(owner, statement, data)
    assert owner.execute("SELECT count(*) FROM crate").fetchone() == (0,)


def test_a_client_breaks_off(owner: Connection) -> None:
    def lines() -> Iterator[str]:
        yield "1\n"
        raise KeyError

    def copy_lines_of_client() -> None:
        with owner.cursor().copy("COPY crate (id) FROM STDIN") as copy:
            for line in lines():
                copy.write(line)

    with pytest.raises(KeyError):
        copy_lines_of_client()
    assert owner.execute("SELECT count(*) FROM crate").fetchone() == (0,)


def test_no_file_is_left(
    owner: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for data in ("1\n", "1\n", "x\n"):  # written, refused by the key, no row
        with suppress(errors.DatabaseError):
            _copy(owner, "COPY crate (id) FROM STDIN", data)
        assert list(tmp_path.iterdir()) == []


def test_in_a_transaction(owner: Connection) -> None:
    with owner.transaction():
        owner.execute("INSERT INTO crate (id) VALUES (1)")
        _copy(owner, "COPY crate (id, n) FROM STDIN", "2\t3\n")
        owner.execute("UPDATE crate SET n = n + 1 WHERE id = 2")
        assert owner.execute("SELECT id, n FROM crate").fetchall() == [(1, None), (2, 4)]
    with owner.transaction(force_rollback=True):
        _copy(owner, "COPY crate (id) FROM STDIN", "5\n")
    assert owner.execute("SELECT count(*) FROM crate").fetchone() == (2,)


def test_many_rows(owner: Connection) -> None:
    data = "".join(f"{number},{number % 100},name {number}\n" for number in range(300_000))
    assert _copy(owner, "COPY crate FROM STDIN (FORMAT csv)", data) == "COPY 300000"
    found = owner.execute("SELECT count(*), sum(n), max(s) FROM crate").fetchone()
    assert found == (300_000, 300_000 * 99 // 2, "name 99999")


def test_readers_copy_nothing(endpoint: Endpoint) -> None:
    with (
        psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as reader,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        _copy(reader, "COPY person FROM STDIN", "9\tEve\t\\N\n")
