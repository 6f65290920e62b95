"""The examples that Spark prints of its functions, and what they are over the columns of a table.

A literal of an example becomes a column where both engines take one, rows after `VALUES` become
those of a table, so that there are rows to insert and to delete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot.dialects import Spark
from sqlglot.tokens import Token, TokenType

from support.sql.spark_values import is_near

SORTED = "Spark's elements are in the order of rows, here they are sorted"
FIRST = "Spark takes the row that comes first, here it is the least one"
DIFFERENT = {
    "mode": "Spark takes any of the most frequent values",
    **dict.fromkeys(("array_agg", "collect_list"), SORTED),
    **dict.fromkeys(("any_value", "first", "first_value", "last", "last_value"), FIRST),
}
"""Functions whose examples may have other values, and why."""

GENERATORS = re.compile(r"(?:pos)?explode|inline|stack|json_tuple", re.IGNORECASE)
"""Functions of which a SELECT has one, and which make rows."""

LITERALS = {
    *(TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING, TokenType.TRUE, TokenType.FALSE)
}
INTERVAL = re.compile(r"INTERVAL\s+(?:-?\s*'[^']*'|-?\d+)\s+\w+(?:\s+TO\s+\w+)?", re.IGNORECASE)
TYPED = re.compile(r"(?:DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ|TIME)", re.IGNORECASE)
"""Words that stand before the text of a literal."""


class Example(NamedTuple):
    """A query that Spark shows for a function, and the group of functions that it is in."""

    function: str
    group: str
    query: str


def printed_examples(spark: Any) -> list[Example]:
    utilities = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    return [
        Example(info.getName(), info.getGroup(), query)
        for info in utilities.listBuiltinFunctionInfos()
        for query in re.findall(r"^ *> (SELECT.*?);$", info.getExamples(), re.DOTALL | re.MULTILINE)
    ]


# ---------------------------------------------------------------------------------------- compared


def type_text(type_: pa.DataType) -> str:
    """Return a type; all integers are alike, as texts are, and what may be null is not told."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list of {type_text(type_.value_type)}"
    if pa.types.is_map(type_):
        return f"map of {type_text(type_.key_type)} to {type_text(type_.item_type)}"
    if pa.types.is_struct(type_):
        fields = (f"{field.name}: {type_text(field.type)}" for field in type_.fields)
        return f"struct of {', '.join(fields)}"
    if pa.types.is_integer(type_):
        return "integer"
    return "time" if pa.types.is_time(type_) else str(type_).removeprefix("large_")


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; the entries of maps are in the order of their keys."""
    values = column.to_pylist()
    is_map = pa.types.is_map(column.type)
    return [sorted(each, key=repr) if is_map and each else each for each in values]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*map(values_of, table.columns), strict=True), key=repr)


def is_same(here: pa.Table, there: pa.Table) -> bool:
    """Whether two answers have the same types, and values but for the last digits of a float."""
    if list(map(type_text, here.schema.types)) != list(map(type_text, there.schema.types)):
        return False
    return here.num_rows == there.num_rows and all(
        is_near(one, other)
        for left, right in zip(rows_of(here), rows_of(there), strict=True)
        for one, other in zip(left, right, strict=True)
    )


def shown(answer: pa.Table | str | None) -> str:
    if not isinstance(answer, pa.Table):
        return "an error"
    types = ", ".join(map(type_text, answer.schema.types))
    return f"{[tuple(row.values()) for row in answer.to_pylist()]} ({types})"


# ------------------------------------------------------------------------------------------ lifted


@dataclass
class Lifted:
    """A query over a table; the last column of its rows is their number."""

    example: Example
    items: list[str]
    """Expressions over the columns of the table, or…"""
    query: str = ""
    """…a whole query, with `{table}` in the place of its rows."""
    literals: dict[str, str] = field(default_factory=dict)
    """The literals that are columns."""
    names: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    """The names of columns and the rows of a query of its own."""

    @property
    def is_alone(self) -> bool:
        """Whether it needs a SELECT of its own."""
        return any(GENERATORS.match(each) for each in self.items)


def lifted(example: Example, name: str, accepts: Callable[[str], bool]) -> Lifted | None:
    """Return an example over a table; None if it has no form of this kind.

    Args:
        example: a query without `FROM`, or one with `FROM VALUES`.
        name: with which the names of its columns begin.
        accepts: whether a query without `FROM` is one, with the columns that are named so far as
            literals in it.
    """
    text = example.query.removeprefix("SELECT").strip()
    tokens = Spark().tokenize(text)
    if any(each.text.upper() == "FROM" for each in top_level(tokens)):
        return of_rows(example, text, tokens)
    literals = [*literals_of(text, tokens)]
    chosen = literals
    if not accepts(*replaced(text, name, chosen)):
        chosen = []
        for each in literals:
            if accepts(*replaced(text, name, [*chosen, each])):
                chosen.append(each)
    text, columns = replaced(text, name, chosen)
    if not accepts(text, columns):
        return None
    return Lifted(example, [without_alias(each) for each in items_of(text)], literals=columns)


def literals_of(text: str, tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield where literals stand; a word such as `DATE` belongs to its text."""
    intervals = [each.span() for each in INTERVAL.finditer(text)]
    yield from intervals
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type in LITERALS:
            word = before.text if before else ""
            start = before.start if before and TYPED.fullmatch(word) else token.start
            if not any(begin <= token.start < end for begin, end in intervals):
                suffix = re.match(r"(?:BD|[LSYDF])\b", text[token.end + 1 :], re.IGNORECASE)
                yield start, token.end + 1 + (suffix.end() if suffix else 0)


def replaced(text: str, name: str, chosen: list[tuple[int, int]]) -> tuple[str, dict[str, str]]:
    """Return a text with names of columns in the place of literals, and these."""
    columns = {}
    for number, (start, end) in reversed([*enumerate(sorted(chosen))]):
        columns[f"{name}_{number}"] = text[start:end]
        text = f"{text[:start]}{name}_{number}{text[end:]}"
    return text, dict(reversed(columns.items()))


def of_rows(example: Example, text: str, tokens: list[Token]) -> Lifted | None:
    """Return a query over a table that has the rows after `FROM VALUES`."""
    words = [each.text.upper() for each in tokens]
    at = next((n for n in range(len(words)) if words[n : n + 2] == ["FROM", "VALUES"]), None)
    if at is None or words.count("VALUES") > 1:
        return None
    start, rows, at = tokens[at + 1].start, [], at + 2
    while True:
        end = closing(words, at)
        inside = text[tokens[at].start : tokens[end].end + 1]
        rows.append(items_of(inside[1:-1]) if words[at] == "(" else [inside])
        at = end + 2
        if words[end + 1] != ",":
            break
    at = end + 2 if words[end + 1] == "AS" else end + 1
    end = closing(words, at + 1)
    names = [each.text for each in tokens[at + 2 : end] if each.text != ","]
    table = f"{{table}} AS {tokens[at].text}"
    query = f"SELECT {text[:start]}{table}{text[tokens[end].end + 1 :]}"
    return Lifted(example, [], query, names=names, rows=rows)


def closing(words: list[str], at: int) -> int:
    """Return where what begins at a place ends: an expression before a comma, or parentheses."""
    depth = 0
    for end in range(at, len(words)):
        depth += (words[end] == "(") - (words[end] == ")")
        following = words[end + 1] if end + 1 < len(words) else ""
        if not depth and (words[at] == "(" or following in {",", "AS", "TAB", "PEOPLE"}):
            return end
    return len(words) - 1


def top_level(tokens: Iterable[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
        if not depth:
            yield token


def items_of(text: str) -> list[str]:
    """Return the parts of a text that commas divide."""
    commas = [
        each.start
        for each in top_level(Spark().tokenize(text))
        if each.token_type is TokenType.COMMA
    ]
    ends = [-1, *commas, len(text)]
    return [text[start + 1 : end].strip() for start, end in pairwise(ends)]


def without_alias(item: str) -> str:
    alias = [each.start for each in top_level(Spark().tokenize(item)) if each.text.upper() == "AS"]
    return item[: alias[-1]].strip() if alias else item
