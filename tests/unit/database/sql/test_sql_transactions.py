"""What a transaction in SQL reads of what it has written and defined, compared with DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import corollary
from corollary.core.printer import print_program
from corollary.errors import ConstraintError, InputError
from support.selection import sampled, seed_of_run

TABLES = """CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE bag (x INT, s STRING);
INSERT INTO t VALUES (1, 1), (2, 1), (3, 2); INSERT INTO bag VALUES (1, 'p'), (1, 'p'), (2, 'q')"""
VIEWS = {
    "v": "SELECT b, COUNT(*) AS n, SUM(a) AS total FROM t GROUP BY b",
    "w": "SELECT s, n FROM bag JOIN v ON v.b = bag.x",
}
QUESTIONS = ("t", "bag", "v", "w", "(SELECT DISTINCT s FROM bag WHERE x IN (SELECT a FROM t))")


def _statement(dice: random.Random) -> str:
    low, high = dice.randint(1, 9), dice.randint(1, 9)
    new = low + 10 * high
    return dice.choice(
        (
            f"INSERT INTO t SELECT {new}, {low} WHERE {new} NOT IN (SELECT a FROM t)",
            f"INSERT INTO bag VALUES ({low}, 'r'), ({low}, 'p')",
            f"INSERT INTO bag SELECT a, 'm' FROM t WHERE b < {low}",
            f"INSERT INTO bag SELECT n, 'n' FROM v WHERE total > {high}",
            f"DELETE FROM t WHERE b = {low}",
            f"DELETE FROM bag WHERE x < {dice.randint(1, 3)} AND s <> 'q'",
            "DELETE FROM bag WHERE x IN (SELECT a FROM t)",
            f"UPDATE t SET b = b + 1 WHERE a <= {high}",
            f"UPDATE bag SET x = x + {low} WHERE s = 'p'",
        )
    )


def _script(dice: random.Random) -> list[str]:
    """Return statements with questions between them, and perhaps definitions."""
    found = []
    for number in range(dice.randint(2, 5)):
        found.append(_statement(dice))
        if not dice.randrange(4):
            made = dice.choice((f"TABLE k{number} AS", f"VIEW k{number} AS"))
            found.append(f"CREATE {made} SELECT x, COUNT(*) AS n FROM bag GROUP BY x")
            found.append(f"SELECT * FROM k{number}")
        found.append(f"SELECT * FROM {dice.choice(QUESTIONS)}")
    return found


@pytest.fixture
def db() -> corollary.Database:
    """A database with tables and views."""
    made = corollary.open(None, engine="local")
    made.sql(TABLES)
    made.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}" for name in VIEWS))
    return made


@pytest.mark.parametrize("seed", sampled(range(40), 4))
def test_each_statement_sees_those_before_it(db: corollary.Database, seed: int) -> None:
    dice = random.Random(f"{seed_of_run()} {seed}")
    with duckdb.connect() as judge:
        judge.execute(TABLES)
        judge.execute("; ".join(f"CREATE VIEW {name} AS {VIEWS[name]}" for name in VIEWS))
        end = dice.choice(("ROLLBACK", "COMMIT"))
        script = ["BEGIN", *_script(dice), end, *(f"SELECT * FROM {each}" for each in VIEWS)]
        for text in script:
            here, there = db.sql(text), judge.execute(text)
            if text.startswith("SELECT"):
                assert sorted(here.rows()) == sorted(there.fetchall()), (script, text)


def test_definitions_are_seen_before_the_end(db: corollary.Database) -> None:
    before = print_program(db.program)
    db.sql("BEGIN; CREATE TABLE n (k INT PRIMARY KEY, s STRING); INSERT INTO n VALUES (1, 'a')")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT s, COUNT(*) AS c FROM n GROUP BY s")
    assert db.sql("SELECT * FROM m").rows() == [("a", 1)]
    assert [row[1] for row in db.sql("SHOW TABLES").rows()][-1] == "w"
    assert "n" in [row[1] for row in db.sql("SHOW TABLES").rows()]
    db.sql("MERGE INTO n USING t ON n.k = t.a WHEN MATCHED THEN UPDATE SET s = 'b'")
    assert db.sql("SELECT * FROM m").rows() == [("b", 1)]
    db.sql("INSERT OVERWRITE n SELECT a, 'c' FROM t; CREATE OR REPLACE VIEW m AS SELECT k FROM n")
    assert sorted(db.sql("SELECT * FROM m").rows()) == [(1,), (2,), (3,)]
    db.sql("ROLLBACK")
    assert print_program(db.program) == before
    with pytest.raises(InputError, match="no relation `n`"):
        db.sql("SELECT * FROM n")


def test_what_fails_leaves_the_transaction_as_it_was(db: corollary.Database) -> None:
    db.sql("BEGIN; INSERT INTO t VALUES (4, 4)")
    for text in ("SELECT a / 0 FROM t", "SELECT nothing FROM t", "INSERT INTO t SELECT a FROM t"):
        with pytest.raises(InputError):
            db.sql(text)
    assert db.sql("SELECT COUNT(*) FROM t").rows() == [(4,)]
    db.sql("INSERT INTO t VALUES (4, 5)")  # a key has to hold at the end
    with pytest.raises(ConstraintError):
        db.sql("COMMIT")
    assert db.sql("SELECT COUNT(*) FROM t").rows() == [(3,)]


@pytest.mark.parametrize("make", [None, lambda path: path / "wh"], ids=["memory", "warehouse"])
def test_a_look_keeps_nothing(make: Callable[[Path], Path] | None, tmp_path: Path) -> None:
    with corollary.open(make and make(tmp_path), engine="local") as db:
        db.load(text=".decl e(x: number) .decl r(x: number) r(x) :- e(x), x > 1.")
        with db.transaction() as tx:
            tx.insert("e", [(1,), (2,)])
            assert tx.look(lambda: db.query("r(x)").to_pydict()) == {"x": [2]}
            tx.insert("e", [(3,)])
            assert sorted(tx.look(lambda: db.relation("r").rows())) == [(2,), (3,)]
            assert db.relation("r").rows() == []
        assert sorted(db.relation("r").rows()) == [(2,), (3,)]
        assert db.commits == 2


def test_a_look_into_what_was_done_before_finds_what_is_there(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.load(text=".decl e(x: number)")
        for _ in range(2):
            with db.transaction(idempotency="k") as tx:
                tx.insert("e", [(1,)])
                assert tx.look(lambda: db.relation("e").rows()) == [(1,)]
