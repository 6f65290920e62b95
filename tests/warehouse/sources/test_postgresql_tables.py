"""Tables of a real PostgreSQL as sources."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.errors import CorollaryError
from support.postgresql_server import Server

pytestmark = pytest.mark.integration

PROGRAM = """
.decl p(id: number, v: symbol?, n: decimal(8,2)?, day: date?, at: timestamp?, ok: bool?, f: float?)
      key(id)
.input p(IO=postgresql, connection=shop, table="public.things")
.decl q(id: number)
q(i) :- p(i, _, _, _, _, _, _).
"""


@pytest.fixture
def table(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A connection to a new database with a table, which programs call `shop`."""
    import psycopg

    url = server.place(tmp_path).partition("?")[0]
    monkeypatch.setenv("COROLLARY_CONNECTION_SHOP", url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        connection.execute(
            "CREATE TABLE things (id bigint PRIMARY KEY, v text, n numeric, day date, "
            "at timestamptz, ok boolean, f double precision, more int)"
        )
        yield connection


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as made:
        yield made


def run(db: corollary.Database, place: Path, text: str = PROGRAM) -> Any:
    (place / "p.dl").write_text(text)
    return db.run(place / "p.dl")


def test_rows_are_compared_with_those_read_last(
    table: Any, db: corollary.Database, tmp_path: Path
) -> None:
    """Null is not the empty text, times are moments, and texts may have anything in them."""
    table.execute(
        "INSERT INTO things VALUES (1, 'a,\"b\"\n', 12.5, '2026-11-15', "
        "'2026-11-15 09:00:00.000001+09', true, 'NaN'), (2, '', null, null, null, null, null), "
        "(3, null, 1, '0001-01-01', null, false, 1e300)"
    )
    run(db, tmp_path)
    rows = sorted(db.relation("p").rows())
    assert [(each[0], each[1], each[2], each[5]) for each in rows] == [
        (1, 'a,"b"\n', Decimal("12.50"), True),
        (2, "", None, None),
        (3, None, Decimal("1.00"), False),
    ]
    assert str(rows[0][4]) == "2026-11-15 00:00:00.000001+00:00"
    assert str(rows[2][3]) == "0001-01-01"
    table.execute("DELETE FROM things WHERE id = 2")
    table.execute("UPDATE things SET v = 'x' WHERE id = 3")
    outcome = run(db, tmp_path)
    assert (len(outcome.changes["p"].added), len(outcome.changes["p"].removed)) == (1, 2)
    assert outcome.changes["q"].removed.to_pylist() == [{"id": 2}]
    assert run(db, tmp_path).transaction.commit_number is None


def test_only_what_is_newer_is_read(table: Any, db: corollary.Database, tmp_path: Path) -> None:
    text = PROGRAM.replace('things")', 'things", order="at")')
    table.execute(
        "INSERT INTO things (id, v, at) VALUES (1, 'a', '2026-01-01'), (2, 'b', '2026-01-02')"
    )
    run(db, tmp_path, text)
    table.execute("UPDATE things SET v = 'unseen' WHERE id = 1")
    table.execute("UPDATE things SET v = 'seen', at = '2026-01-03' WHERE id = 2")
    table.execute("INSERT INTO things (id, v, at) VALUES (3, 'c', '2026-01-02')")
    run(db, tmp_path, text)
    assert [row[:2] for row in sorted(db.relation("p").rows())] == [(1, "a"), (2, "seen"), (3, "c")]


def test_rows_that_do_not_fit_are_set_aside(
    table: Any, db: corollary.Database, tmp_path: Path
) -> None:
    table.execute("INSERT INTO things (id, n) VALUES (1, 1.234), (2, 1), (3, 2)")
    run(db, tmp_path)
    assert sorted(row[0] for row in db.relation("p").rows()) == [2, 3]
    ((_, source, _, _, code, reason, _),) = db.relation("quarantine").rows()
    assert (source, code) == ("p < postgresql shop public.things", "C0801")
    assert "`n`" in reason


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("public.things", "public.nothing"), "C1740"),
        (("connection=shop", "connection=nowhere"), "C0978"),
        (("v: symbol?", "w: symbol?"), "C0950"),
        (("connection=shop, ", ""), "C0206"),
    ],
)
def test_what_cannot_be_read(
    table: Any, db: corollary.Database, tmp_path: Path, change: tuple[str, str], code: str
) -> None:
    with pytest.raises(CorollaryError, match=code):
        run(db, tmp_path, PROGRAM.replace(*change))


def test_a_hundred_thousand_rows(table: Any, db: corollary.Database, tmp_path: Path) -> None:
    """Changes of a table go through the views; what they are, PostgreSQL says itself."""
    table.execute(
        "INSERT INTO things (id, v, n) "
        "SELECT i, 'v' || i % 7, i % 1000 FROM generate_series(1, 100000) i"
    )
    text = f"{PROGRAM}.decl s(v: symbol, n: number)\n"
    text += "s(v, n) :- p(_, v, _, _, _, _, _), n = count : { p(_, v, _, _, _, _, _) }.\n"
    run(db, tmp_path, text)
    table.execute("DELETE FROM things WHERE id % 3 = 0")
    table.execute("UPDATE things SET v = 'new' WHERE id % 5 = 0")
    run(db, tmp_path, text)
    expected = table.execute("SELECT v, count(*) FROM things GROUP BY v ORDER BY v").fetchall()
    assert sorted(db.relation("s").rows()) == expected
