"""Statements are read and translated in time that grows with their length, up to a limit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import time, timedelta

import pytest
from sqlglot import exp

from corollary.serve.postgres.parameter_types import type_parameters
from corollary.serve.postgres.parameters import ParameterValue, decode_parameter
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import (
    SelectStatement,
    WriteStatement,
    parse_source,
    read_statements,
)
from corollary.serve.postgres.translation import with_values
from corollary.serve.postgres.wire_types import INT8

DAY = "'2026-01-05'"
COLUMNS = [{"name": "n", "type": "number"}, {"name": "d", "type": "date"}]
RELATIONS = VisibleRelations.of_json(
    {"relations": [{"name": "sample", "columns": COLUMNS, "kind": "base", "tuples": 4}]}
)


def parse_tree(text: str) -> exp.Expr:
    """Return the tree of a query or a write."""
    (statement,) = read_statements(text)
    assert isinstance(statement, SelectStatement | WriteStatement)
    return parse_source(statement.source)


def translate(text: str, values: list[ParameterValue] | None = None) -> str:
    """Return the statement of a text in Corollary's SQL; parameters without values are 1."""
    typed, types = type_parameters(parse_tree(text), [], RELATIONS, is_catalog=False)
    return with_values(typed, values or [1] * len(types)).sql


def count_calls(work: Callable[[], object]) -> int:
    """Return how many functions are called by some work, built-in ones too."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def many(text: str, count: int) -> str:
    return ", ".join(text.replace("#", str(at)) for at in range(1, count + 1))


@pytest.mark.parametrize(
    "write",
    [
        lambda n: f"SELECT n FROM sample WHERE n IN ({many('#', n)})",
        lambda n: f"SELECT n FROM sample WHERE d IN ({many(DAY, n)})",
        lambda n: f"SELECT n FROM sample WHERE unknown IN ({many(DAY, n)})",
        lambda n: f"SELECT n FROM sample WHERE n IN ({many('$#', n)})",
        lambda n: f"SELECT {many('1', n)} FROM sample",
        lambda n: f"SELECT n FROM sample WHERE n = {' + '.join(['1'] * n)}",
        lambda n: f"SELECT {many('n / 2', n)} FROM sample",
        lambda n: f"INSERT INTO sample VALUES {many(f'(#, {DAY})', n)}",
        lambda n: f"SELECT {many('t#.n', n)} FROM {many('sample t#', n)}",
    ],
    ids=["in", "texts", "unknown", "parameters", "columns", "sums", "quotients", "rows", "tables"],
)
def test_work_grows_with_the_length(write: Callable[[int], str]) -> None:
    translate(write(2))  # what is made once is made
    short, long = (count_calls(lambda n=n: translate(write(n))) for n in (60, 240))
    assert long < 5 * short


@pytest.mark.parametrize("count", [100_000, 200_000])
@pytest.mark.parametrize("text", ["/*", "$a$b", "''", '"', "$", " ", "E'\\"])
def test_nothing_that_is_not_closed_is_read_again_and_again(text: str, count: int) -> None:
    """Each of them took hours, in the thread that answers everybody."""
    with suppress(PgError):
        read_statements(f"SELECT {text * (count // len(text))}")


def test_many_spaces_are_one() -> None:
    with pytest.raises(PgError, match="FETCH needs a cursor"):
        read_statements(f"FETCH{' /**/' * 50_000})")
    with pytest.raises(PgError, match="A name is missing"):
        read_statements(f"RELEASE {'a' * 500_000}!")
    with pytest.raises(PgError, match="at most 1,000 characters"):
        read_statements(f"RELEASE {'a' * 500_000}")


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("SELECT '" + "a" * (1 << 20) + "'", "54000", "at most 1,048,576 bytes"),
        (f"SELECT 1 WHERE 1 IN ({'1,' * 60_000} 1)", "54001", "at most 100,000 words"),
    ],
    ids=["bytes", "tokens"],
)
def test_statements_that_are_too_large(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(PgError, match=message) as caught:
        translate(text)
    assert caught.value.sqlstate == sqlstate


def test_lists_that_are_too_large() -> None:
    text = "SELECT n FROM sample WHERE n = ANY($1)"
    assert translate(text, [[1, 2]]).endswith("IN (:p1_0, :p1_1)")
    given = b"{" + b"7," * 100_000 + b"7}"
    values = decode_parameter(given, INT8.array, 0)
    assert isinstance(values, list)
    assert values == [7] * 100_001
    with pytest.raises(PgError, match="at most 100,000 words"):
        translate(text, [values])


@pytest.mark.parametrize("text", [f"{'DATE(' * 30}1{')' * 30}", "(" * 500, f"n{'::int' * 1000}"])
def test_deep_statements_end(text: str) -> None:
    with pytest.raises(RecursionError):
        translate(f"SELECT {text} FROM sample")


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT n FROM sample WHERE n = $1 AND $2 > d", ["int8", "date"]),
        ("SELECT n FROM sample WHERE (n, d) IN (($1, $2))", ["int8", "date"]),
        ("SELECT n FROM sample WHERE d = ANY($1) LIMIT $2", ["_date", "int8"]),
        ("SELECT round(n, $1), substring($2, $3) FROM sample", ["int8", "text", "int8"]),
        ("SELECT n FROM sample WHERE n / $1 = $2 AND $3::int4 = n", ["int8", "int8", "int4"]),
        ("WITH q AS (SELECT d FROM sample) SELECT d FROM q UNION SELECT $1", ["date"]),
        ("INSERT INTO sample (d, n) VALUES ($1, $2), ('2026-01-05', 7)", ["date", "int8"]),
        ("INSERT INTO sample SELECT n, $1 FROM sample WHERE d = $2", ["date", "date"]),
        ("UPDATE sample SET d = $1 WHERE n IN ($2, 7)", ["date", "int8"]),
        ("DELETE FROM sample WHERE d BETWEEN $1 AND $2", ["date", "date"]),
        ("SELECT n FROM sample WHERE nothing = $1 LIMIT $2", ["text", "int8"]),
    ],
)
def test_parameters_have_the_types_that_are_around_them(text: str, types: list[str]) -> None:
    found = type_parameters(parse_tree(text), [], RELATIONS, is_catalog=False)[1]
    assert [each.name for each in found] == types


def test_names_of_names_end() -> None:
    """Each name stands for two of the one before, and the last one for a billion."""
    names = ", ".join(f"a{at} + a{at} AS a{at + 1}" for at in range(30))
    assert count_calls(lambda: translate(f"SELECT n AS a0, {names} FROM sample")) < 2_000_000


@pytest.mark.parametrize(
    ("value", "sql", "text"),
    [
        (b"\0\xff", "SELECT UNHEX(:p1)", "00ff"),
        (time(10, 11, 12), "SELECT CAST(:p1 AS TIME)", "10:11:12"),
        (timedelta(-1, 3), "SELECT CAST(:p1 AS INTERVAL DAY TO SECOND)", "-1 0:00:03"),
    ],
)
def test_values_travel_between_processes(value: ParameterValue, sql: str, text: str) -> None:
    found = with_values(exp.select(exp.Placeholder(this="p1")), [value])
    assert found.sql == sql
    assert json.loads(json.dumps(found.parameters)) == {"p1": text}
