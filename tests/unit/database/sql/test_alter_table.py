"""ALTER TABLE: DuckDB says what the rows are; views, constraints and history follow."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import corollary
from corollary.database.upkeep.verify import verify
from corollary.errors import ConstraintError, InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

TABLE = """
CREATE TABLE t (k INT PRIMARY KEY, a INT DEFAULT 1 + 1, b STRING NOT NULL, CHECK (a > 0));
CREATE TABLE u (k INT REFERENCES t, n DOUBLE DEFAULT 1);
CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a;
CREATE VIEW w AS SELECT * FROM t;
CREATE MATERIALIZED VIEW z AS SELECT t.k, u.n FROM t JOIN u USING (k);
INSERT INTO t VALUES (1, 5, 'x'), (2, DEFAULT, 'y'), (3, 5, 'z');
INSERT INTO u VALUES (1, 2.5), (1, 2.5), (3, DEFAULT);
"""


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as opened:
        opened.sql(TABLE)
        yield opened


def ask(db: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(text).rows(), key=str)


def refusal(db: Any, text: str) -> str:
    number = db.commits
    with pytest.raises((InputError, ConstraintError)) as caught:
        db.sql(text)
    assert db.commits == number
    return str(caught.value)


def test_columns_come_and_go(db: corollary.Database) -> None:
    tx = db.sql(
        "ALTER TABLE t ADD COLUMNS (c DATE DEFAULT DATE'2026-01-02' AFTER k, d STRING FIRST)"
    )
    assert tx.commit_number == db.commits
    assert "v" not in tx.changes or tx.changes["v"].counts == (0, 0)
    rows = ask(db, "SELECT d, k, CAST(c AS STRING) AS c, a, b FROM w")
    assert rows[0] == (None, 1, "2026-01-02", 5, "x")
    db.sql("INSERT INTO t (k, b) VALUES (4, 'n')")
    assert ask(db, "SELECT CAST(c AS STRING) AS c, a FROM t WHERE k = 4") == [("2026-01-02", 2)]
    assert ask(db, "SELECT * FROM v") == [(2, 2), (5, 2)]
    db.sql("ALTER TABLE t DROP COLUMNS (c, d); ALTER TABLE t DROP COLUMN IF EXISTS c")
    assert ask(db, "SELECT * FROM w")[0] == (1, 5, "x")
    assert ask(db, "SELECT * FROM z") == [(1, 2.5), (1, 2.5), (3, 1.0)]


def test_names_are_followed(db: corollary.Database) -> None:
    db.sql("ALTER TABLE t RENAME COLUMN b TO `b b`; ALTER TABLE t RENAME TO tt")
    assert ask(db, "SELECT `b b` FROM w WHERE k = 1") == [("x",)]
    assert "FROM tt AS t JOIN u" in db.sql("SHOW CREATE TABLE z").rows()[0][0]
    db.sql("INSERT INTO tt VALUES (7, 7, 'q'); INSERT INTO u (k) VALUES (7)")
    assert (7, 1.0) in ask(db, "SELECT * FROM z")
    assert "refers to tt" in refusal(db, "INSERT INTO u VALUES (8, 1)")
    assert "There is no relation `t`" in refusal(db, "SELECT * FROM t")


def test_types_and_nulls(db: corollary.Database) -> None:
    db.sql("ALTER TABLE u ALTER COLUMN n SET NOT NULL")
    assert "NOT NULL" in refusal(db, "INSERT INTO u VALUES (1, NULL)")
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(12, 1)")
    assert ask(db, "SELECT CAST(a AS STRING) AS a, n FROM v") == [("2.0", 1), ("5.0", 2)]
    db.sql("ALTER TABLE u ALTER COLUMN n DROP NOT NULL, n SET DEFAULT -1, k COMMENT 'of t'")
    db.sql("INSERT INTO u (k) VALUES (2); INSERT INTO u VALUES (2, NULL)")
    assert ask(db, "SELECT n FROM u WHERE k = 2") == [(-1.0,), (None,)]
    assert "has nulls" in refusal(db, "ALTER TABLE u ALTER COLUMN n SET NOT NULL")
    db.sql("ALTER TABLE u ALTER COLUMN n DROP DEFAULT; INSERT INTO u (k) VALUES (3)")
    assert ask(db, "SELECT n FROM u WHERE k = 3") == [(1.0,), (None,)]


def test_constraints(db: corollary.Database) -> None:
    assert "C1052" in refusal(db, "ALTER TABLE t ADD CONSTRAINT few CHECK (a < 5)")
    db.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (a < 6)")
    assert "few" in refusal(db, "UPDATE t SET a = 6 WHERE k = 1")
    db.sql("ALTER TABLE t DROP CONSTRAINT few; UPDATE t SET a = 6 WHERE k = 1")
    assert "equal rows" in refusal(db, "ALTER TABLE u ADD PRIMARY KEY (k, n)")
    db.sql("DELETE FROM u WHERE k = 1; INSERT INTO u VALUES (1, 2)")
    db.sql("ALTER TABLE u ADD CONSTRAINT one PRIMARY KEY (k)")
    assert "C0937" in refusal(db, "INSERT INTO u VALUES (1, 3)")
    assert ask(db, "SELECT * FROM z") == [(1, 2.0), (3, 1.0)]
    db.sql("ALTER TABLE u DROP PRIMARY KEY; INSERT INTO u VALUES (1, 2)")
    assert ask(db, "SELECT * FROM z") == [(1, 2.0), (1, 2.0), (3, 1.0)]
    db.sql("ALTER TABLE t ADD CONSTRAINT self FOREIGN KEY (a) REFERENCES t (k) NOT ENFORCED")
    db.sql("DROP VIEW v; ALTER TABLE t RENAME COLUMN a TO c")
    written = db.sql("SHOW CREATE TABLE t").rows()[0][0]
    assert "CHECK (c > 0)" in written
    assert "FOREIGN KEY (c) REFERENCES t (k) NOT ENFORCED" in written
    assert "CHECK (c > 0)" in refusal(db, "INSERT INTO t VALUES (9, 0, 'q')")


def test_defaults(db: corollary.Database) -> None:
    with duckdb.connect() as other:
        for text in (
            "CREATE TABLE d (k INT, a INT DEFAULT 1 + 1, b VARCHAR(9) DEFAULT upper('x'), c DATE)",
            "INSERT INTO d (k) VALUES (1), (2)",
            "INSERT INTO d (b, k) VALUES (DEFAULT, 3), ('q', 4)",
            "INSERT INTO d VALUES (5, DEFAULT, DEFAULT, DEFAULT), (6, 0, NULL, NULL)",
            "INSERT INTO d (k, c) SELECT k + 10, c FROM d WHERE k < 3 ORDER BY k LIMIT 1",
            "INSERT INTO d (k) WITH w AS (SELECT 20 AS x) SELECT x FROM w UNION ALL SELECT 21",
            "UPDATE d SET a = DEFAULT, c = DEFAULT WHERE k = 6",
        ):
            db.sql(text)
            other.execute(text)
        rows = other.execute("SELECT * FROM d").fetchall()
    assert ask(db, "SELECT * FROM d") == sorted(rows, key=str)
    db.sql("INSERT INTO d SELECT 30, DEFAULT, 'q', NULL")  # as Spark, and not DuckDB, has it
    assert ask(db, "SELECT a, b FROM d WHERE k = 30") == [(2, "q")]
    db.sql("CREATE TABLE e (k INT PRIMARY KEY, a INT DEFAULT 4)")
    merge = "MERGE INTO e USING (VALUES (1), (2)) AS s(k) ON e.k = s.k WHEN MATCHED THEN UPDATE "
    merge += "SET a = DEFAULT WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
    db.sql(f"INSERT INTO e VALUES (1, 9); {merge}")
    assert ask(db, "SELECT * FROM e") == [(1, 4), (2, 4)]


REFUSED = {
    "ALTER TABLE t RENAME COLUMN a TO aa": ("C1381", "`v` cannot follow"),
    "ALTER TABLE t DROP COLUMN a": ("C1381", "`CHECK (a > 0)` uses it"),
    "ALTER TABLE t DROP COLUMN k": ("C1381", "the primary key uses it"),
    "ALTER TABLE t ADD COLUMN c INT NOT NULL": ("C1381", "`DEFAULT`"),
    "ALTER TABLE t ADD COLUMN A INT": ("C1381", "already"),
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 'x'": ("C1374", "does not fit `c`"),
    "ALTER TABLE t ADD COLUMN c INT DEFAULT a": ("C1303", "`a`"),
    "ALTER TABLE t ALTER COLUMN a TYPE SMALLINT": ("C1381", "not all of its values"),
    "ALTER TABLE t ALTER COLUMN b TYPE INT": ("C1381", "not all of its values"),
    "ALTER TABLE t ALTER COLUMN a RENAME": ("C1361", "`SET NOT NULL`"),
    "ALTER TABLE t DROP CONSTRAINT c": ("C1381", "no constraint `c`"),
    "ALTER TABLE u DROP PRIMARY KEY": ("C1381", "no primary key"),
    "ALTER TABLE t RENAME TO u": ("C1371", "another name"),
    "ALTER TABLE w ADD COLUMN c INT": ("C1372", "ALTER VIEW"),
    "ALTER TABLE q ADD COLUMN c INT": ("C1372", "CREATE TABLE"),
    "ALTER TABLE t SET LOCATION 'x'": ("C1363", "cannot be chosen"),
    "BEGIN; ALTER TABLE t ADD COLUMN c INT": ("C1379", "COMMIT"),
    "CREATE TABLE x (a INT GENERATED ALWAYS AS IDENTITY)": ("C1363", "in the INSERT"),
    "COMMENT ON VIEW w IS 'x'": ("C1361", "`TABLE`"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(db: corollary.Database, text: str) -> None:
    code, said = REFUSED[text]
    found = refusal(db, text)
    assert code in found
    assert said in found


def test_rules_follow(db: corollary.Database) -> None:
    rules = parse(SourceFile("rules", ".decl few(k: number) few(k) :- t(k, a, _), a < 5."))
    with db.transaction() as tx:
        tx.edit(lambda program: program + rules)
    db.sql("ALTER TABLE t ADD COLUMN c INT FIRST")
    assert db.relation("few").rows() == [(2,)]
    db.sql("CREATE TABLE s (x INT, y INT); ALTER TABLE s ADD COLUMN z INT")
    with db.transaction() as tx:
        tx.edit(
            lambda program: (
                program + parse(SourceFile("r", ".decl l(x: number?) l(x) :- s(x, 1, _)."))
            )
        )
    assert "uses `y`" in refusal(db, "ALTER TABLE s DROP COLUMN y")
    db.sql("ALTER TABLE s DROP COLUMN z")


# --- as DuckDB ---------------------------------------------------------------------------------


class Pair:
    """A table here and in DuckDB, and random statements that both understand."""

    def __init__(self, seed: int, db: corollary.Database) -> None:
        self.random, self.db, self.other = random.Random(seed), db, duckdb.connect()
        self.columns = ["k", "c0"]
        self.fresh = 0
        self.both("CREATE TABLE p (k INT, c0 INT DEFAULT 7)")
        db.sql("CREATE MATERIALIZED VIEW every AS SELECT * FROM p")
        db.sql("CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM p GROUP BY k")

    def both(self, text: str) -> None:
        self.db.sql(text)
        self.other.execute(text)

    def step(self) -> None:
        choose = self.random.choice
        others = self.columns[1:]
        match choose(("insert", "insert", "delete", "add", "drop", "rename", "default", "type")):
            case "insert":
                some = [name for name in others if self.random.random() < 0.5]
                names = ", ".join(["k", *some])
                values = ", ".join(str(self.random.randrange(3)) for _ in ("k", *some))
                self.both(f"INSERT INTO p ({names}) VALUES ({values}), ({values})")
            case "delete":
                self.both(f"DELETE FROM p WHERE k = {self.random.randrange(3)}")
            case "add":
                self.fresh += 1
                self.columns.append(f"c{self.fresh}")
                default = choose(("", f" DEFAULT {self.random.randrange(3)}"))
                self.both(f"ALTER TABLE p ADD COLUMN c{self.fresh} INT{default}")
            case "drop" if others:
                name = choose(others)
                self.columns.remove(name)
                self.both(f"ALTER TABLE p DROP COLUMN {name}")
            case "rename" if others:
                name = choose(others)
                self.fresh += 1
                self.columns[self.columns.index(name)] = f"c{self.fresh}"
                self.both(f"ALTER TABLE p RENAME COLUMN {name} TO c{self.fresh}")
            case "default" if others:
                change = choose(("SET DEFAULT 4 - 1", "DROP DEFAULT"))
                self.both(f"ALTER TABLE p ALTER COLUMN {choose(others)} {change}")
            case "type" if others:
                name = choose(others)
                self.db.sql(f"ALTER TABLE p ALTER COLUMN {name} TYPE BIGINT")
                self.other.execute(f"ALTER TABLE p ALTER COLUMN {name} TYPE BIGINT")

    def compare(self) -> None:
        rows = sorted(self.other.execute("SELECT * FROM p").fetchall(), key=str)
        assert ask(self.db, "SELECT * FROM p") == rows
        assert ask(self.db, "SELECT * FROM every") == rows
        counts = self.other.execute("SELECT k, count(*) FROM p GROUP BY k").fetchall()
        assert ask(self.db, "SELECT * FROM counts") == sorted(counts, key=str)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_as_duckdb(tmp_path: Path, seed: int) -> None:
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        pair = Pair(seed, db)
        past = {}
        for _ in range(14):
            pair.step()
            pair.compare()
            past[db.commits] = ask(db, "SELECT * FROM p")
        for number, rows in past.items():
            assert ask(db, f"SELECT * FROM p VERSION AS OF {number}") == rows
        assert db._store is not None
        assert not verify(db._store.warehouse).findings
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        pair.db = db
        pair.compare()
        db.sql("ALTER TABLE p ADD COLUMN last INT")
        db.sql("ALTER TABLE p ALTER COLUMN last TYPE DOUBLE; ALTER TABLE p RENAME TO q")
        assert len(ask(db, "SELECT * FROM q")) == len(ask(db, "SELECT * FROM every"))
