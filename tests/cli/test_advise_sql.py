"""Names for views, advice as SQL that engines run, and logs of SQL queries as workloads."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from cli.test_advise import PROGRAM
from support.command_line import INPUT, OK, USAGE, cli, of_json, put

TABLES = """
CREATE TABLE sales (k INT NOT NULL, c INT NOT NULL, p INT NOT NULL, PRIMARY KEY (k));
CREATE TABLE customer (c INT NOT NULL, city STRING NOT NULL, PRIMARY KEY (c));
CREATE TABLE product (p INT NOT NULL, kind STRING NOT NULL, PRIMARY KEY (p));
"""
JOIN = "FROM sales JOIN customer USING (c) JOIN product USING (p)"
LOG = f"""
SELECT DISTINCT city, kind {JOIN};
SELECT DISTINCT kind {JOIN} WHERE city = 'oslo'; -- a comment
SELECT DISTINCT kind {JOIN} WHERE city = 'oslo' ORDER BY kind LIMIT 2;
SELECT city, COUNT(*) AS n FROM sales JOIN customer USING (c) GROUP BY city;
INSERT INTO sales VALUES (1, 2, 3);
"""
COLUMNS = {
    "sales": "k INT, c INT, p INT",
    "customer": "c INT, city VARCHAR",
    "product": "p INT, kind VARCHAR",
}
ROWS = {
    "sales": [(k, k % 20, k * 7 % 31) for k in range(400)],
    "customer": [(c, ("oslo", "rome", "lima")[c % 3]) for c in range(20)],
    "product": [(p, ("toy", "book")[p % 2]) for p in range(31)],
}


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("airline.dl", PROGRAM)
    put("tables.sql", TABLES)
    put("log.sql", LOG)


def advise(*arguments: str, status: int = OK) -> str:
    result = cli("advise", *arguments)
    assert result.exit_code == status, result.output
    return result.output


def test_views_get_the_names_that_are_given() -> None:
    text = advise("airline.dl", "--query", "view", "--name", "airlines", "--to", "new.dl")
    assert "after   view(a, b) :- airlines(a), base(a, b)." in text
    assert ".decl airlines(" in Path("new.dl").read_text()
    for name in ("base", "two words", ""):
        said = advise("airline.dl", "--query", "view", "--name", name, status=INPUT)
        assert "C1107" in said


@pytest.mark.slow
def test_a_log_becomes_views_that_duckdb_runs() -> None:
    made = cli("run", "tables.sql", "--warehouse", "wh", "--engine", "local", "-q")
    assert made.exit_code == OK, made.output
    inserts = []
    for name, rows in ROWS.items():
        put(f"{name}.tsv", "".join("\t".join(map(str, row)) + "\n" for row in rows))
        inserts += ["--insert", f"{name}={name}.tsv"]
    assert cli("apply", "wh", *inserts, "--engine", "local").exit_code == OK
    asked = ("wh", "--queries-from", "log.sql", "--selection", "budget", "--engine", "local")
    found = of_json(cli("advise", *asked, "--format", "json"))
    assert [each["count"] for each in found["log"]] == [1, 2, 1]
    assert found["log_skipped"] == 1
    assert found["queries"]["sql_2"]["frequency"] == 2
    view, summary = found["materialise"]
    assert view["sql"]["spark"].startswith("CREATE MATERIALIZED VIEW mv_sql_1_1")
    assert "CREATE MATERIALIZED VIEW mv_sql_3_1 AS" in summary["sql"]["spark"]
    with duckdb.connect() as engine:
        for name, rows in ROWS.items():
            engine.execute(f"CREATE TABLE {name} ({COLUMNS[name]})")
            places = ", ".join("?" * len(rows[0]))
            engine.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        engine.execute(view["sql"]["duckdb"])
        engine.execute(summary["sql"]["duckdb"])
        logged = LOG.split(";")
        for number, query in ((1, logged[0]), (2, logged[1]), (3, logged[3])):
            engine.execute(found["queries"][f"sql_{number}"]["sql"]["duckdb"])
            answers = engine.execute(f"SELECT * FROM sql_{number}").fetchall()
            assert sorted(answers) == sorted(engine.execute(query).fetchall())
    text = advise(*asked, "--sql", "spark", "--verify")
    assert "DIFFERS" not in text
    assert "CREATE VIEW sql_2 AS" in text


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("INSERT INTO sales VALUES (1, 2, 3);", INPUT, "C1108"),
        ("SELECT x FROM nowhere;", INPUT, "nowhere"),
        ("SELECT FROM;", INPUT, "log.sql:1"),
    ],
)
def test_logs_that_are_refused(text: str, status: int, said: str) -> None:
    put("log.sql", text)
    assert said in advise("tables.sql", "--queries-from", "log.sql", status=status)


def test_a_log_is_not_applied() -> None:
    assert "--sql" in advise(
        "tables.sql", "--queries-from", "log.sql", "--apply", "wh", status=USAGE
    )
