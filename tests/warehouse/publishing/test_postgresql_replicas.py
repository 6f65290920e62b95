"""Replicas on a real server of PostgreSQL: values, keys, copies, foreign writes, kills."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import corollary
from corollary.database.database import Database
from support.postgresql_server import Server, postgresql
from support.processes.replica_writer import start_replica_writer

pytestmark = pytest.mark.integration

EDGES = """
.decl edge(x: number, y: symbol)
.decl done(number: number)
.decl shown(x: number, y: symbol)
shown(x, y) :- edge(x, y).
.output shown(IO=postgresql, connection=shop)
"""
BATCHES, ROWS = 12, 6000
"""12 batches of 6,000 rows that come, and half of which go: 105,000 changes."""


@pytest.fixture
def shop(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A database of its own, to which the connection `shop` leads."""
    url = server.place(tmp_path).partition("?")[0]
    monkeypatch.setenv("COROLLARY_CONNECTION_SHOP", url)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def opened(tmp_path: Path, program: str) -> Database:
    db = corollary.open(tmp_path / "w", engine="local", publish="commit")
    db.load(text=program)
    return db


def write(db: Database, relation: str, added: Any = (), removed: Any = ()) -> list[str]:
    """Commit a change; return the codes of problems."""
    with db.transaction() as tx:
        tx.delete(relation, list(removed))
        tx.insert(relation, list(added))
    assert tx.published is not None
    return [each.code for each in tx.published.problems]


@pytest.mark.smoke
def test_values_of_all_types(shop: Any, tmp_path: Path) -> None:
    program = """
.decl t(a: symbol, b: symbol?, n: number, u: unsigned, f: float, d: decimal(12,3), k: bool,
        day: date, at: timestamp?, tags: [symbol], s: {p: number, q: symbol?}, raw: binary?)
.decl v(x: number) .decl flag()
v(n) :- t(_, _, n, _, _, _, _, _, _, _, _, _).
flag() :- v(_).
.output t(IO=postgresql, connection=shop, table="public.Every Type")
.output flag(IO=postgresql, connection=shop)
"""
    at = datetime(2026, 11, 15, 8, 0, 0, 123456, UTC)
    one = (
        *('a"b,\n\\N', "", -(2**63), 2**64 - 1, 0.1, Decimal("-123456789.125"), True),
        *(date(2026, 2, 28), at, ["x", 'y"'], {"p": 7, "q": None}, b"\x00\xff"),
    )
    two = (
        *("", None, 0, 0, float("inf"), Decimal("0.000"), False),
        *(date(1, 1, 1), None, [], {"p": -1, "q": "ä"}, None),
    )
    with opened(tmp_path, program) as db:
        assert write(db, "t", [one, two]) == []
        found = shop.execute('select * from public."Every Type" order by n').fetchall()
        assert found == [one, two]
        assert shop.execute("select * from flag").fetchall() == [(True,)]
        types = shop.execute(
            "select data_type, is_nullable from information_schema.columns "
            "where table_name = 'Every Type' order by ordinal_position"
        ).fetchall()
        assert [each for each, _ in types] == [
            *("text", "text", "bigint", "numeric", "double precision", "numeric", "boolean"),
            *("date", "timestamp with time zone", "jsonb", "jsonb", "bytea"),
        ]
        assert [at for at, (_, null) in enumerate(types) if null == "YES"] == [1, 8, 11]
        assert write(db, "t", [], [one]) == []
        assert shop.execute('select * from public."Every Type"').fetchall() == [two]
        assert write(db, "t", [], [two]) == []
        assert shop.execute("select * from flag").fetchall() == []


def test_rows_are_updated_by_their_key(shop: Any, tmp_path: Path) -> None:
    """Only what is updated leaves the row in place; a trigger tells."""
    program = """
.decl item(id: number, name: symbol?, price: number) key(id)
.output item(IO=postgresql, connection=shop)
"""
    with opened(tmp_path, program) as db:
        write(db, "item", [(1, "a", 10), (2, None, 20), (3, "c", 30)])
        shop.execute("create table seen (what text, id bigint)")
        shop.execute(
            "create function note() returns trigger language plpgsql as $$ begin "
            "insert into seen values (tg_op, coalesce(new.id, old.id)); return null; end $$"
        )
        shop.execute(
            "create trigger noted after insert or update or delete on item "
            "for each row execute function note()"
        )
        gone = [(1, "a", 10), (2, None, 20), (3, "c", 30)]
        assert write(db, "item", [(1, "a", 11), (2, "b", 20), (4, "d", 1)], gone) == []
        found = shop.execute("select * from item order by id").fetchall()
        assert found == [(1, "a", 11), (2, "b", 20), (4, "d", 1)]
        seen = shop.execute("select * from seen order by id").fetchall()
        assert seen == [("UPDATE", 1), ("UPDATE", 2), ("DELETE", 3), ("INSERT", 4)]


def test_copies_come_and_go_one_by_one(shop: Any, tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local", publish="commit") as db:
        db.sql("CREATE TABLE sale (day STRING, n INT)")
        db.sql(
            "CREATE MATERIALIZED VIEW sales TBLPROPERTIES ('corollary.io' = 'postgresql', "
            "'corollary.connection' = 'shop') AS SELECT day, n FROM sale"
        )
        db.sql("INSERT INTO sale VALUES (NULL, 1), (NULL, 1), ('mon', NULL), ('mon', NULL)")
        db.sql("INSERT INTO sale VALUES (NULL, 1), ('tue', 2)")
        counts = "select day, n, count(*) from sales group by day, n order by day, n"
        assert shop.execute(counts).fetchall() == [("mon", None, 2), ("tue", 2, 1), (None, 1, 3)]
        db.sql("DELETE FROM sale WHERE day IS NULL")
        assert shop.execute(counts).fetchall() == [("mon", None, 2), ("tue", 2, 1)]


def test_what_others_write_is_not_overwritten(shop: Any, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a"), (2, "b")])
        shop.execute("update shown set y = 'z' where x = 1")
        assert write(db, "edge", [(3, "c")]) == []  # that row is not concerned
        assert write(db, "edge", [(4, "d")], [(1, "a")]) == ["C0979"]
        assert write(db, "edge", [(5, "e")]) == ["C0979"]
        rows = "select * from shown order by x"
        assert shop.execute(rows).fetchall() == [(1, "z"), (2, "b"), (3, "c")]
        shop.execute("update shown set y = 'a' where x = 1")
        db.publish()
        assert shop.execute(rows).fetchall() == [(2, "b"), (3, "c"), (4, "d"), (5, "e")]


def test_a_table_of_somebody_else(shop: Any, tmp_path: Path) -> None:
    shop.execute("create table shown (x bigint, y text)")
    shop.execute("insert into shown values (7, 'mine')")
    with opened(tmp_path, EDGES) as db:
        assert write(db, "edge", [(1, "a")]) == ["C0979"]
        assert shop.execute("select * from shown").fetchall() == [(7, "mine")]
        shop.execute("delete from shown")  # an empty one is taken, with its own columns
        shop.execute("alter table shown alter y type varchar(10)")
        db.publish()
        assert shop.execute("select * from shown").fetchall() == [(1, "a")]
        assert write(db, "edge", [], [(1, "a")]) == []
        assert shop.execute("select * from shown").fetchall() == []


def test_other_columns_make_a_new_table(shop: Any, tmp_path: Path) -> None:
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        new = EDGES.replace("shown(x: number, y: symbol)", "shown(x: number, y: symbol, n: number)")
        db.load(text=new.replace("shown(x, y) :-", "shown(x, y, strlen(y)) :-"))
        assert shop.execute("select x, y, n from shown").fetchall() == [(1, "a", 1)]


def test_a_server_that_is_down_and_what_was_lost_there(
    shop: Any, tmp_path: Path, server: Server
) -> None:
    """A database that was restored to an earlier state is brought forward from its position."""
    with opened(tmp_path, EDGES) as db:
        write(db, "edge", [(1, "a")])
        saved = shop.execute("select * from corollary_positions").fetchone()
        write(db, "edge", [(2, "b")], [(1, "a")])
        shop.execute("truncate shown")
        shop.execute("insert into shown values (1, 'a')")
        shop.execute(
            "update corollary_positions set commit = %s, created = %s, rows = %s",
            [saved[2], saved[3], saved[5]],
        )
        assert write(db, "edge", [(3, "c")]) == []
        assert shop.execute("select * from shown order by x").fetchall() == [(2, "b"), (3, "c")]


def test_100_000_changes_with_kills_and_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our process dies four times, at two points and anywhere; the server crashes twice."""
    with postgresql() as server:
        url = server.place(tmp_path).partition("?")[0]
        monkeypatch.setenv("COROLLARY_CONNECTION_SHOP", url)
        opened(tmp_path, EDGES).close()
        faults = ["before_publish:3", "", "after_publish:2", ""]
        for number, fault in enumerate([*faults, ""]):
            process = start_replica_writer(tmp_path / "w", BATCHES, ROWS, fault)
            assert process.stdout is not None
            if not fault:
                process.stdout.readline()
            if not fault and number < len(faults):
                process.send_signal(signal.SIGKILL)
            if number in (1, len(faults)):
                server.restart()
            process.communicate(timeout=120)
            assert process.returncode == (0 if number == len(faults) else -signal.SIGKILL)
        with corollary.open(tmp_path / "w", engine="local") as db, psycopg.connect(url) as there:
            result = db.publish()
            assert result is not None
            assert result.problems == ()
            rows = Counter(there.execute("select * from shown").fetchall())
            assert rows == Counter(db.relation("shown").rows())
            assert rows.total() == BATCHES * ROWS // 2 + ROWS // 2
            (commit,) = there.execute("select commit from corollary_positions").fetchone() or ()
            assert commit == db.commits
