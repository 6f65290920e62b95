"""What `explain` says of steps that read partitioned relations."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from corollary.cli.main import group

PROGRAM = """
.decl sale(id: number, product: number, amount: number)
.decl product(id: number, category: symbol)
.decl line(category: symbol, id: number, amount: number) virtual
line(c, i, a) :- sale(i, p, a), product(p, c).
.decl totals(category: symbol, total: number)
totals(c, t) :- line(c, _, _), t = sum a : { line(c, _, a) }.
.decl each(x: number, y: number)
each(i, y) :- sale(i, _, a), y = range(0, a).
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.dl"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def explained(*arguments: str) -> list[str]:
    result = CliRunner().invoke(group, ["explain", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [line.strip() for line in result.output.splitlines()]


def test_steps_of_spark_sql_are_named(program: str) -> None:
    lines = explained(program, "--placement", "partitions", "--bulk", "always")
    both = "(Spark SQL: `sale`, `product` are in partitions)"
    assert f"derive line•next {both}" in lines
    assert any(
        line.startswith("derive each•next (not Spark SQL: ") and "range" in line for line in lines
    )


def test_an_aggregate_and_its_join_are_one_query(program: str) -> None:
    """Where the aggregate of a change is computed anew."""
    options = ("--added", "sale", "--placement", "partitions", "--bulk", "always")
    lines = explained(program, *options, "--algorithm", "recompute")
    rows, found = "totals.aggregate1•rows", "totals.aggregate1•found"
    why = "`sale`, `product` are in partitions"
    assert f"derive {rows} (Spark SQL, one query with {found}: {why})" in lines
    (total,) = (line for line in lines if line.startswith(f"total {found}"))
    assert total.endswith(f"(Spark SQL, one query with {rows})")


def test_window_functions_are_named(tmp_path: Path) -> None:
    """Each with the rule that gives its rows; of a change, the steps that compare them."""
    path = tmp_path / "program.sql"
    text = "CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, f DOUBLE NOT NULL);\n"
    windows = {
        "v": "LAG(b) OVER (PARTITION BY a ORDER BY b)",
        "w": "SUM(f) OVER (PARTITION BY a ORDER BY b)",
        "x": "LAG(k) OVER (ORDER BY b), SUM(f) OVER (ORDER BY b)",
    }
    for name, window in windows.items():
        text += f"CREATE MATERIALIZED VIEW {name} AS SELECT k, {window} FROM t;\n"
    path.write_text(text, encoding="utf-8")
    options = (str(path), "--placement", "partitions", "--bulk", "always")
    first = [line for line in explained(*options) if line.startswith("window ")]
    why = "not Spark SQL: `sum` of float has no exact form in SQL, and there is no `partition by`"
    for line, note in zip(first, [*["Spark SQL: `t` is in partitions"] * 2, why], strict=True):
        assert line.endswith(f"({note})")
    lines = explained(*options, "--added", "t")
    rows, found = "v [window 1]^fbfff•rows", "v [window 1]^fbfff•found"
    assert f"derive {rows} (Spark SQL, one query with {found}: `t` is in partitions)" in lines
    (window,) = (line for line in lines if line.startswith(f"window {found} = "))
    assert window.endswith(f"(Spark SQL, one query with {rows})")
    compared = next(at for at, line in enumerate(lines) if line.startswith("compare windows v"))
    assert lines[compared].endswith("(`t` is in partitions)")
    assert lines[compared + 1].startswith("derive v [window 1]•touched")


def test_little_is_looked_up(program: str) -> None:
    lines = explained(program, "--added", "sale", "--placement", "partitions")
    assert not any("Spark SQL" in line for line in lines), "no sizes are known"
    never = ("--placement", "partitions", "--bulk", "never")
    assert not any("Spark SQL" in line for line in explained(program, *never))
