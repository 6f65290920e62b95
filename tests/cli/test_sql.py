"""`corollary sql`, `corollary shell`, and files of SQL on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CONSTRAINT, INPUT, OK, USAGE, cli, of_json, put

SHOP = """\
CREATE TABLE item (id INT PRIMARY KEY, name STRING, price DECIMAL(8, 2) CHECK (price > 0))
  USING csv OPTIONS (path 'item.csv', header 'true');
CREATE TABLE sale (item INT, day DATE) USING json OPTIONS (path 'sale.jsonl');
CREATE VIEW sold AS SELECT i.name, s.day, i.price FROM sale s JOIN item i ON s.item = i.id;
CREATE MATERIALIZED VIEW revenue AS SELECT name, SUM(price) AS total FROM sold GROUP BY name;
"""
RULES = """\
.decl best(name: symbol?)
best(n) :- revenue(n, t), t = max u : { revenue(_, u) }.
.output best
"""
ITEMS = 'id,name,price\n1,"a, b",2.50\n2,c,10.00\n'
SALES = '{"item": 1, "day": "2026-11-01"}\n' * 2 + '{"item": 2, "day": "2026-11-02"}\n'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("shop.sql", SHOP)
    put("rules.dl", RULES)
    put("data/item.csv", ITEMS)
    put("data/sale.jsonl", SALES)


@pytest.fixture
def warehouse() -> str:
    done = cli(
        "run", "shop.sql", "rules.dl", "-F", "data", "--warehouse", "wh", "--engine", "local"
    )
    assert done.exit_code == OK, done.output
    return "wh"


def test_files_of_sql_and_datalog_are_one_program() -> None:
    for order in (("shop.sql", "rules.dl"), ("rules.dl", "shop.sql")):
        assert cli("check", *order).exit_code == OK
        done = cli("run", *order, "-F", "data", "-D", "out", "--engine", "local")
        assert done.exit_code == OK, done.output
        assert Path("out/best.csv").read_text() == "c\n"
        assert Path("out/revenue.csv").read_text() == "a, b\t5.00\nc\t10.00\n"


def test_a_second_run_changes_nothing(warehouse: str) -> None:
    done = cli("run", "rules.dl", "shop.sql", "-F", "data", "--warehouse", warehouse)
    assert "nothing has changed" in done.output
    put("data/item.csv", ITEMS.replace("2.50", "3.50"))
    options = ("-F", "data", "--warehouse", warehouse, "--engine", "local", "--format", "json")
    changes = of_json(cli("run", "shop.sql", "rules.dl", *options))["changes"]
    assert changes["revenue"] == {"added": [["a, b", "7.00"]], "removed": [["a, b", "5.00"]]}


@pytest.mark.parametrize("command", ["show", "explain", "graph", "check"])
def test_commands_take_sql(command: str) -> None:
    done = cli(command, "shop.sql", "rules.dl")
    assert done.exit_code == OK, done.output


def test_explain_says_which_statement_a_stratum_is_made_of() -> None:
    lines = cli("explain", "shop.sql", "rules.dl").stdout.splitlines()
    place = SHOP.splitlines().index(next(x for x in SHOP.splitlines() if "VIEW revenue" in x)) + 1
    (revenue,) = [each for each in lines if each.startswith("stratum revenue (stored)")]
    assert f"SQL at shop.sql:{place}:" in revenue
    (best,) = [each for each in lines if each.startswith("stratum best (stored)")]
    assert "SQL" not in best


def test_show_as_sql_of_sql() -> None:
    """Spark's dialect has what was written; for others, a bag is the table of its counts."""
    spark = cli("show", "shop.sql", "rules.dl", "--as", "sql").stdout
    for statement in SHOP.split(";\n")[:-1]:
        assert f"{statement};\n" in spark
    assert "CREATE MATERIALIZED VIEW best AS" in spark
    assert "sold.rows" not in spark
    duckdb = cli("show", "shop.sql", "--as", "sql", "--dialect", "duckdb").stdout
    assert "-- sold is left out: it has copies, which are counted in sold.rows" in duckdb
    assert 'CREATE VIEW "sold.rows" AS' in duckdb
    assert "CREATE VIEW revenue AS" in duckdb


def test_trace_takes_sql() -> None:
    done = cli("trace", "shop.sql", "rules.dl", "-F", "data", "--remove", 'item(2, "c", 10.00)')
    assert done.exit_code == OK, done.output
    assert "revenue" in done.output


def test_errors_of_all_files_are_reported_with_their_places() -> None:
    put("more.sql", "CREATE VIEW x AS\n SELECT nme FROM item;\nCREATE VIEW y AS SELECT * FROM itm;")
    done = cli("check", "shop.sql", "more.sql")
    assert done.exit_code == INPUT
    assert "more.sql:2:9" in done.output
    assert "more.sql:3:32" in done.output
    assert "did you mean `item`?" in done.output


def test_a_comment_accepts_a_warning() -> None:
    view = "CREATE VIEW n AS SELECT id FROM item UNION SELECT id + 1 FROM n;\n"
    put("more.sql", view)
    assert cli("check", "shop.sql", "more.sql", "--strict").exit_code == INPUT
    put("more.sql", f"CREATE VIEW m AS SELECT 1 AS a;\n-- corollary: allow C1353\n{view}")
    assert cli("check", "shop.sql", "more.sql", "--strict").exit_code == OK


def test_sql_answers(warehouse: str) -> None:
    done = cli("sql", warehouse, "SELECT name, total FROM revenue ORDER BY total DESC")
    assert done.stdout == "name\ttotal\nc\t10.00\na, b\t5.00\n"
    text = "SELECT item, COUNT(*) AS n FROM sale WHERE item = :i GROUP BY item"
    done = cli("sql", warehouse, text, "--set", "i=1", "--format", "json")
    assert of_json(done) == {"columns": ["item", "n"], "rows": [[1, 2]]}
    assert cli("sql", warehouse, "SELECT * FROM sold").stdout.count("a, b") == 2
    assert cli("sql", warehouse, "SELECT name FROM best VERSION AS OF 1").stdout == "name\nc\n"
    assert cli("sql", warehouse, "SELECT name FROM best", "--at", "1").stdout == "name\nc\n"


def test_sql_answers_of_a_program() -> None:
    done = cli("sql", "rules.dl", "shop.sql", "-F", "data", "SELECT name FROM best")
    assert done.stdout == "name\nc\n"
    assert cli("sql", "shop.sql", "--at", "1", "SELECT 1").exit_code == USAGE


def test_sql_only_reads(warehouse: str) -> None:
    for text in ("DELETE FROM sale", "CREATE VIEW v AS SELECT 1 AS a", "SELECT 1; DROP VIEW sold"):
        done = cli("sql", warehouse, text)
        assert done.exit_code == INPUT
        assert "`corollary apply`" in done.output
    assert cli("sql", warehouse, "SELECT 1; SELECT 2").exit_code == INPUT


def test_sql_of_a_reader(warehouse: str) -> None:
    assert cli("grant", warehouse, "ann", "revenue").exit_code == OK
    assert cli("sql", warehouse, "SELECT * FROM revenue", "--as", "ann").exit_code == OK
    done = cli("sql", warehouse, "SELECT * FROM item", "--as", "ann")
    assert done.exit_code == INPUT
    assert "C1040" in done.output


def test_a_goal_in_sql_names_the_command(warehouse: str) -> None:
    assert "`corollary sql`" in cli("query", warehouse, "SELECT * FROM item").output


# --- the shell ---------------------------------------------------------------------------------


def shell(*lines: str, status: int = OK) -> list[str]:
    done = cli("shell", "wh", "--engine", "local", "-q", stdin="\n".join(lines))
    assert done.exit_code == status, done.output
    return done.output.splitlines()


@pytest.mark.usefixtures("warehouse")
def test_the_shell_takes_sql_and_datalog() -> None:
    assert shell("SELECT name", "FROM best;", "best(x).", "best(", '  "z").') == [
        *("name", "c", "x", "c", "no")
    ]


@pytest.mark.usefixtures("warehouse")
def test_the_shell_changes_data_and_program() -> None:
    lines = shell(
        "INSERT INTO sale VALUES (2, DATE '2026-11-09');",
        "CREATE VIEW late AS SELECT * FROM sale WHERE day > DATE '2026-11-05'; SELECT * FROM late;",
        ".decl cheap(x: number)",
        "cheap(x) :- item(x, _, p), p < 5.",
        '-sale(2, d"2026-11-09").',
        "cheap(x).",
    )
    assert lines[0] == "commit 2"
    assert ["sale", "+1"] in [line.split()[:2] for line in lines]
    assert "2\t2026-11-09" in lines
    assert lines[-2:] == ["x", "1"]


@pytest.mark.usefixtures("warehouse")
def test_errors_do_not_end_the_shell() -> None:
    lines = shell(
        "SELEC 1;",
        "SELECT * FROM nothing;",
        "INSERT INTO item VALUES (9, 'x', -1);",
        "nothing(x).",
        "\\nothing",
        "SELECT 1 AS one;",
        status=INPUT,
    )
    assert lines[-2:] == ["one", "1"]
    text = "\n".join(lines)
    assert all(code in text for code in ("C1363", "C1302", "C1051", "C0201"))
    assert "there is no command \\nothing" in text


@pytest.mark.usefixtures("warehouse")
def test_commands_of_the_shell() -> None:
    lines = shell("\\d", "\\d revenue", "\\d best", "\\explain SELECT * FROM sold WHERE name = 'c'")
    text = "\n".join(lines)
    assert ["revenue", "stored", "view", "2", "SQL"] in [line.split() for line in lines]
    assert "CREATE MATERIALIZED VIEW revenue AS SELECT name" in text
    assert "best(n) :- revenue(n, t)" in text
    assert "procedure" in text
    assert not any(line.startswith("item.range") for line in lines)
    assert "\\explain" in "\n".join(shell("\\?"))
    assert shell("\\timing", "\\q", "SELECT 1;") == ["timing is on"]


@pytest.mark.usefixtures("warehouse")
def test_transactions_in_the_shell() -> None:
    lines = shell("BEGIN;", "DELETE FROM sale;", "ROLLBACK;", "SELECT COUNT(*) AS n FROM sale;")
    assert lines[-2:] == ["n", "3"]


def test_constraints_give_their_exit_status(warehouse: str) -> None:
    put("bad.csv", "7,x,-1.00\n")
    done = cli("apply", warehouse, "--insert", "item=bad.csv", "--engine", "local")
    assert done.exit_code == CONSTRAINT
    assert "CHECK (price > 0) of item is false" in done.output
