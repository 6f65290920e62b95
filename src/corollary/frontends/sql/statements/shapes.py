"""Shapes of statements: texts whose constants are parameters, which differ run by run.

A question that is asked again and again, such as `SELECT … FROM v WHERE k = 5`, differs in its
constants only. Here they are cut out of the text, and taken out of its tree: the parameters become
the columns of a relation that has one row, joined with the sources of every block that uses them.
What is compiled then does not know their values, so it is the same for all.

    SELECT s FROM v WHERE k = 5
    SELECT s FROM v WHERE k = :corollary_1                                        the shape
    SELECT s FROM v CROSS JOIN "•given" WHERE k = "•given".corollary_1            what is compiled

| statement | constants that are cut out |
|---|---|
| SELECT | those that something is compared with |
| DELETE, UPDATE | these, and those that are assigned |
| INSERT | the values of `VALUES` |
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from corollary.core.functors.catalog import COMPARISON_OPERATORS
from corollary.core.logic import Value
from corollary.core.types import (
    DATE,
    DECIMAL_MAX_DIGITS,
    NUMBER,
    SHORT_DECIMAL_DIGITS,
    TIMESTAMP,
    Type,
)
from corollary.data_class import dataclass
from corollary.frontends.sql import query_tree
from corollary.frontends.sql.binder.values.common_types import column_type, is_untyped
from corollary.frontends.sql.binder.values.literals import read_time, value_literal
from corollary.frontends.sql.catalog import TableDefinition

PREFIX = "corollary_"
"""What the names of constants that were cut out begin with."""
SHAPE_MAX_CHARS = 10_000
"""A longer text has no shape."""

_FIRST_WORD = re.compile(r"[\s(]*(select|with|insert|update|delete)\b", re.IGNORECASE)
_VALUES = re.compile(r"[\s\w\"`.]*(?:\([^()']*\)\s*)?values\s*\(", re.IGNORECASE)
_UNREADABLE = re.compile(rf"\\|--|/\*|{PREFIX}", re.IGNORECASE)
"""Texts with these have constants, comments or names that only the parser can tell apart."""
_CONSTANT = r"(?:(?P<number>-?[0-9]{1,18})|'(?P<text>[^']*)')"
_QUOTED = r"""'[^']*' | "[^"]*" | `[^`]*`"""
_SIGN = r"""(?P<sign>(?<=[\w"`])\s*(?:=|<>|!=|<=|>=|<|>)\s*)"""
_END = r"$|[);]|\s(?:and|or|group|order|limit|having|union|except|intersect)\b"
_COMPARED = re.compile(
    rf"{_SIGN}{_CONSTANT}(?=\s*(?:{_END})) | {_QUOTED}", re.VERBOSE | re.IGNORECASE
)
_ASSIGNED = re.compile(
    rf"{_SIGN}{_CONSTANT}(?=\s*(?:{_END}|,|\swhere\b)) | {_QUOTED}", re.VERBOSE | re.IGNORECASE
)
_LISTED = re.compile(rf"(?P<sign>[(,]\s*){_CONSTANT}(?=\s*[,)]) | {_QUOTED}", re.VERBOSE)
_CAST = re.compile(
    rf"cast\(\s*:(?P<name>\w+)\s+as\s+(?P<type>date|timestamp)\s*\) | {_QUOTED}",
    re.VERBOSE | re.IGNORECASE,
)
_PARAMETER = re.compile(r":(\w+)")
_READ_TYPES = {"date": DATE, "timestamp": TIMESTAMP}
_ARITHMETIC = frozenset("+-*")

Constant = int | str


def is_question(text: str) -> bool:
    """Whether a text may be a question that differs from others in its constants only."""
    return _first_word(text) in ("select", "with")


def is_write(text: str) -> bool:
    """Whether a text may be a write that differs from others in its constants only."""
    return _first_word(text) in ("insert", "update", "delete")


def _first_word(text: str) -> str:
    """Return the word that a text begins with; an empty one if it has no shape."""
    first = None if len(text) > SHAPE_MAX_CHARS else _FIRST_WORD.match(text)
    return "" if first is None else first[1].lower()


def cut_constants(text: str, mark: str = f":{PREFIX}") -> tuple[str, list[Constant]]:
    """Return a text with parameters in place of its constants, where they can differ.

    The parameters are numbered, with a mark before their numbers.

    >>> cut_constants("SELECT 'a', s FROM v WHERE k = 5")
    ("SELECT 'a', s FROM v WHERE k = :corollary_1", [5])
    >>> cut_constants("INSERT INTO t VALUES (5, 'a', NULL)")
    ('INSERT INTO t VALUES (:corollary_1, :corollary_2, NULL)', [5, 'a'])
    """
    first = _FIRST_WORD.match(text)
    if first is None or _UNREADABLE.search(text):
        return text, []
    match first[1].lower():
        case "insert":
            pattern = _LISTED if _VALUES.match(text, first.end()) else None
        case "update" | "delete":
            pattern = _ASSIGNED
        case _:
            pattern = _COMPARED
    if pattern is None:
        return text, []
    constants: list[Constant] = []

    def cut(found: re.Match[str]) -> str:
        sign, number, quoted = found.group("sign", "number", "text")
        if sign is None:
            return found[0]
        constants.append(quoted if number is None else int(number))
        return f"{sign}{mark}{len(constants)}"

    return pattern.sub(cut, text), constants


@dataclass(frozen=True, slots=True)
class TextShape:
    """A statement without its constants, and the values that it has them from.

    Attributes:
        types: those of the parameters, the cut out constants first.
        values: of the parameters, by name.
    """

    text: str
    types: tuple[tuple[str, Type], ...]
    values: Mapping[str, Value]

    @property
    def key(self) -> Hashable:
        """What statements of this shape have in common; types do not differ by their bits."""
        return self.text, self.types, tuple(type_.bits for _, type_ in self.types)

    @classmethod
    def of(cls, text: str, parameters: Mapping[str, Any]) -> "TextShape | None":
        """Return the shape of a text; None if a value has no type that others have."""
        plain, parameters = _read_casts(text, parameters)
        cut, constants = cut_constants(plain)
        given = {**{f"{PREFIX}{at}": each for at, each in enumerate(constants, 1)}, **parameters}
        types, values = [], {}
        for name, value in given.items():
            found = value_literal(value, None)
            if not isinstance(found, query_tree.ConstantValue) or is_untyped(found):
                return None
            types.append((name, _common(column_type(found))))
            values[name] = found.value
        return cls(cut, tuple(types), values)


def _read_casts(text: str, parameters: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return a text without casts of text parameters to dates and timestamps, and their values.

    Clients of servers send dates as texts.

    >>> _read_casts("SELECT k FROM t WHERE day = CAST(:p AS DATE)", {"p": "2026-01-05"})
    ('SELECT k FROM t WHERE day = :p', {'p': datetime.date(2026, 1, 5)})
    """
    casts = [(each["name"], each["type"].lower()) for each in _CAST.finditer(text) if each["name"]]
    if not casts or _UNREADABLE.search(text):
        return text, parameters
    uses, values = Counter(_PARAMETER.findall(text)), dict(parameters)
    for (name, type_), count in Counter(casts).items():
        value = parameters.get(name)
        found = read_time(value, _READ_TYPES[type_]) if isinstance(value, str) else None
        if found is None or uses[name] != count:
            return text, parameters
        values[name] = found
    plain = _CAST.sub(lambda each: f":{each['name']}" if each["name"] else each[0], text)
    return plain, values


def _common(type_: Type) -> Type:
    """Return the type that all decimals have with the same digits after the point."""
    if not type_.is_decimal:
        return type_
    is_short = type_.precision <= SHORT_DECIMAL_DIGITS
    return replace(type_, precision=SHORT_DECIMAL_DIGITS if is_short else DECIMAL_MAX_DIGITS)


def plain_cells(query: exp.Expr) -> list[list[str | None]] | None:
    """Return the cells of `VALUES`: names of parameters, None for NULL; None for anything else."""
    if not isinstance(query, exp.Values):
        return None
    rows = [
        each.expressions if isinstance(each, exp.Tuple) else [each] for each in query.expressions
    ]
    if not all(isinstance(cell, exp.Placeholder | exp.Null) for row in rows for cell in row):
        return None
    return [
        [None if isinstance(cell, exp.Null) else str(cell.this) for cell in row] for row in rows
    ]


def take_parameters(tree: exp.Expr, given: str) -> bool:
    """Read the parameters of a question from the relation of their values, in place.

    Returns:
        Whether all of them are in select lists and conditions of WHERE, of blocks with a FROM.
    """
    for block in list(tree.find_all(exp.Select)):
        where = block.args.get("where")
        parts = block.expressions if where is None else [*block.expressions, where]
        placed = [each for part in parts for each in _own_parameters(part)]
        if not placed:
            continue
        if block.args.get("from_") is None:
            return False
        for each in placed:
            each.replace(exp.column(str(each.this), table=given, quoted=True))
        block.append("joins", exp.Join(this=exp.table_(given, quoted=True), kind="CROSS"))
    return tree.find(exp.Placeholder) is None


def _own_parameters(part: exp.Expr) -> Iterator[exp.Placeholder]:
    """Yield the parameters in a part of a block, without those of queries inside it."""
    for node in part.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(node, exp.Placeholder):
            yield node


def given_table(given: str, types: Mapping[str, Type]) -> TableDefinition:
    """Return the relation of the values of parameters: it has one row."""
    columns = tuple(query_tree.QueryColumn(name, type_) for name, type_ in types.items())
    return TableDefinition(given, columns, keys=(frozenset(),), is_hidden=True)


def is_same_for_all_values(query: query_tree.Query, given: str) -> bool:
    """Whether a question does nothing with its parameters that may depend on their values.

    They may be selected, compared with their own kind, and added to numbers; conversions, for one,
    depend on what they convert.
    """
    nodes = list(query_tree.walk(query))
    numbers = {
        each.number
        for each in nodes
        if isinstance(each, query_tree.TableSource) and each.relation == given
    }

    def uses(expressions: Iterable[object]) -> int:
        return sum(
            isinstance(each, query_tree.ColumnReference) and each.source in numbers
            for each in expressions
        )

    left = uses(nodes)
    for node in nodes:
        if isinstance(node, query_tree.Select):
            left -= uses(expression for _, expression in node.columns)
        elif isinstance(node, query_tree.FunctionCall) and _is_uniform(node):
            left -= uses(node.arguments)
    return left == 0


def _is_uniform(call: query_tree.FunctionCall) -> bool:
    """Return whether a call does the same with all values of its arguments' types."""
    domains = {each.type.domain for each in call.arguments}
    if call.functor in COMPARISON_OPERATORS:
        return len(domains) == 1
    return call.functor in _ARITHMETIC and domains == {NUMBER.domain}
