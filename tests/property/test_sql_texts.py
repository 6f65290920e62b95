"""SQL texts: values and names of any characters come through; nonsense is refused with a place."""

import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corollary.core.types import NUMBER, SYMBOL
from corollary.errors import InputError
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import ConstantValue, QueryColumn, Select, TableSource
from support.paths import REPOSITORY
from support.query_text import bind_text
from support.selection import examples

LARGE = settings(
    max_examples=examples(25, 100), suppress_health_check=list(HealthCheck), deadline=None
)

characters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
hostile = st.sampled_from(
    [
        *("'", '"', "`", "\\", "\\'", "--", "/*", "*/", ";", "\n", "'; DROP TABLE t; --", "${x}"),
        *(":p", "%", "_", "\\u0041", "\\%", "é", "\U0001f600", " ", "\t", "\r\n", "''", '""'),
        *("``", "a.b"),
    ]
)
texts = st.lists(st.one_of(st.text(characters, max_size=12), hostile), max_size=4).map("".join)
many_texts = st.lists(texts, min_size=100, max_size=100)


def quoted(text: str, quote: str = "'") -> str:
    """Returns a literal of Spark's SQL."""
    inner = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return f"{quote}{inner}{quote}"


def named(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def constants(tree: object) -> list[object]:
    assert isinstance(tree, Select)
    values = [expression for _, expression in tree.columns]
    return [value.value for value in values if isinstance(value, ConstantValue)]


@pytest.mark.smoke
@LARGE
@given(many_texts)
def test_values_come_through(values: list[str]) -> None:
    """Ten thousand texts, as literals in both kinds of quotes, and as parameters."""
    for quote in ("'", '"'):
        query = "SELECT " + ", ".join(quoted(value, quote) for value in values)
        assert constants(bind_text(query)) == values
    query = "SELECT " + ", ".join(f":p{i}" for i in range(len(values)))
    parameters = {f"p{i}": value for i, value in enumerate(values)}
    assert constants(bind_text(query, parameters)) == values


def distinct(names: Iterable[str]) -> list[str]:
    return list({name.lower(): name for name in names if name}.values())


@pytest.mark.slow
@LARGE
@given(many_texts, texts)
def test_names_come_through(names: list[str], relation: str) -> None:
    """Ten thousand texts as names of columns, aliases, and relations."""
    columns = distinct(names)
    relation = relation or "r"
    table = TableDefinition(relation, tuple(QueryColumn(name, NUMBER) for name in columns))
    source = named(relation)
    items = ", ".join(f"{named(name)}, s.{named(name)} AS {named(name + '!')}" for name in columns)
    found = bind_text(f"SELECT {items} FROM {source} AS s", catalog=SqlCatalog([table]))
    assert isinstance(found, Select)
    assert isinstance(found.source, TableSource)
    assert found.source.relation == relation
    expected = [each for name in columns for each in (name, name + "!")]
    assert [column.name for column, _ in found.columns] == expected
    numbers = [getattr(expression, "column", None) for _, expression in found.columns]
    assert numbers == [index for index in range(len(columns)) for _ in range(2)]


@LARGE
@given(texts, texts)
def test_a_value_never_becomes_a_condition(value: str, other: str) -> None:
    table = TableDefinition("v", (QueryColumn("name", SYMBOL),))
    query = f"SELECT 1 FROM v WHERE name = {quoted(value)} AND name <> {quoted(other, chr(34))}"
    found = bind_text(query, catalog=SqlCatalog([table]))
    assert isinstance(found, Select)
    assert isinstance(found.source, TableSource)
    assert found.where is not None
    left, right = found.where.arguments  # type: ignore[union-attr]
    assert left.arguments[1].value == value
    assert right.arguments[1].value == other


# ------------------------------------------------------------------------------------- nonsense

FOLDER = REPOSITORY / "tests" / "cases"
QUERIES = [
    query
    for kind in ("sql_trees", "sql_errors")
    for file in sorted((FOLDER / kind).glob("*.sql"))
    for query in file.read_text("utf-8").strip().split("\n\n")
]
WORD_TEXT = """
select from where group by having order limit ( ) , * + - / . ; ' " ` 1 2.5 1e9 'x' null not and or
in exists between is like case when then else end cast as int union all distinct join on using left
full over partition rows t u a k s d with recursive values interval day [ ] { } : ? @ $ % || :: <=>
<> = < lateral window filter
"""
WORDS = re.findall(r"\S+", WORD_TEXT)


def damaged(query: str, chance: random.Random) -> str:
    """Returns a query with some of its parts lost, doubled, swapped or replaced."""
    parts = query.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(parts))
        match chance.randrange(5):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, chance.choice(WORDS))
            case 2:
                parts[at] = chance.choice(WORDS)
            case 3:
                parts[at] += chance.choice("'\"`(),;.*\\\n\t-/0eé")
            case _:
                other = chance.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
        parts = parts or ["select"]
    return " ".join(parts)


def check_refused_with_place(query: str) -> None:
    try:
        bind_text(query, {"k": 5})
    except InputError as error:
        for found in error.diagnostics:
            assert found.span is not None, query
            lines = query.split("\n")
            assert 1 <= found.span.line <= len(lines), query
            assert 1 <= found.span.column <= len(lines[found.span.line - 1]) + 1, query
            assert (found.span.end_line, found.span.end_column) >= (
                found.span.line,
                found.span.column,
            )


@settings(max_examples=examples(25, 400), suppress_health_check=list(HealthCheck), deadline=None)
@given(st.sampled_from(QUERIES), st.randoms(use_true_random=False))
def test_damaged_queries_are_bound_or_refused_with_a_place(
    query: str, chance: random.Random
) -> None:
    check_refused_with_place(damaged(query, chance))


@settings(max_examples=examples(25, 200), suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_words_in_any_order(query: str) -> None:
    check_refused_with_place(query)


@settings(max_examples=examples(25, 200), suppress_health_check=list(HealthCheck), deadline=None)
@given(texts)
def test_any_text(query: str) -> None:
    check_refused_with_place(query)


@pytest.mark.smoke
@pytest.mark.parametrize(
    "query",
    [
        "select " + "(" * 5000 + "1" + ")" * 5000,
        "select " + "-" * 3001 + "1",
        "select " + " + ".join(["1"] * 5000),
        "select 1 where " + " and ".join(["k = 1"] * 3000),
        "select 1" + " union all select 1" * 3000,
        "select case " * 500 + "end " * 500,
        "select '" + "x" * 100_000 + "'",
    ],
    ids=["parentheses", "signs", "sum", "conjunction", "union", "case", "long text"],
)
def test_large_queries_are_bound_or_refused(query: str) -> None:
    check_refused_with_place(query)
