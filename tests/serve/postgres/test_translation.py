"""Statements are read and translated in time that grows with their length, up to a limit."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from corollary.serve.postgres.inference import parameter_types
from corollary.serve.postgres.parameters import ParameterValue, decode_parameter
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import read_statement, split_statements
from corollary.serve.postgres.translation import Translator, parse_tree
from corollary.serve.postgres.wire_types import INT8

DAY = "'2026-01-05'"
COLUMNS = [{"name": "n", "type": "number"}, {"name": "d", "type": "date"}]
RELATIONS = VisibleRelations.of_json(
    {"relations": [{"name": "sample", "columns": COLUMNS, "kind": "base", "tuples": 4}]}
)


def translate(text: str, values: list[ParameterValue] | None = None) -> str:
    """Return the statement of a text in Corollary's SQL; parameters without values are 1."""
    (statement,) = split_statements(text)
    tree = parse_tree(statement)
    types = parameter_types(tree, [], RELATIONS)
    return Translator(RELATIONS, values or [1] * len(types)).translate(tree).sql


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
    split_statements(f"SELECT {text * (count // len(text))}")


def test_many_spaces_are_one() -> None:
    with pytest.raises(PgError, match="FETCH needs a cursor"):
        read_statement(split_statements(f"FETCH{' /**/' * 50_000})")[0])
    with pytest.raises(PgError, match="at most 1,000 characters"):
        read_statement(f"RELEASE {'a' * 500_000}!")


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
