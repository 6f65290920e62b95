"""Shapes of questions: texts whose compared constants are parameters, which differ run by run.

A question that is asked again and again, such as `SELECT … FROM v WHERE k = 5`, differs in its
constants only. Here they are cut out of the text, and taken out of its tree: the parameters become
the columns of a relation that has one row, joined with the sources of every block that compares
something with them. What is compiled then does not know their values, so it is the same for all.

    SELECT s FROM v WHERE k = 5
    SELECT s FROM v WHERE k = :corollary_1                                        the shape
    SELECT s FROM v CROSS JOIN "•given" WHERE k = "•given".corollary_1            what is compiled
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from sqlglot import exp

from corollary.core.functors import COMPARISON_OPERATORS
from corollary.core.types import NUMBER, SYMBOL, Type
from corollary.core.values import NUMBER_RANGE, is_encodable
from corollary.frontends.sql.catalog import TableDefinition
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    FunctionCall,
    Query,
    QueryColumn,
    TableSource,
)

PREFIX = "corollary_"
"""What the names of constants that were cut out begin with."""
SHAPE_MAX_CHARS = 10_000
"""A longer text has no shape."""

_QUESTION = re.compile(r"[\s(]*(?:select|with)\b", re.IGNORECASE)

_UNREADABLE = re.compile(rf"\\|--|/\*|{PREFIX}", re.IGNORECASE)
"""Texts with these have constants, comments or names that only the parser can tell apart."""
_COMPARED = re.compile(
    r"""
    (?P<sign>(?<=[\w"`])\s*(?:=|<>|!=|<=|>=|<|>)\s*)
    (?:(?P<number>-?[0-9]{1,18})|'(?P<text>[^']*)')
    (?=\s*(?:$|[);]|\s(?:and|or|group|order|limit|having|union|except|intersect)\b))
    | '[^']*' | "[^"]*" | `[^`]*`
    """,
    re.VERBOSE | re.IGNORECASE,
)

Constant = int | str


def has_shape(text: str) -> bool:
    """Whether a text may be a question that differs from others in its constants only."""
    return len(text) <= SHAPE_MAX_CHARS and _QUESTION.match(text) is not None


def cut_constants(text: str, mark: str = f":{PREFIX}") -> tuple[str, list[Constant]]:
    """Return a text with parameters in place of the constants that something is compared with.

    The parameters are numbered, with a mark before their numbers.

    >>> cut_constants("SELECT 'a', s FROM v WHERE k = 5")
    ("SELECT 'a', s FROM v WHERE k = :corollary_1", [5])
    """
    if _UNREADABLE.search(text):
        return text, []
    constants: list[Constant] = []

    def cut(found: re.Match[str]) -> str:
        sign, number, quoted = found.group("sign", "number", "text")
        if sign is None:
            return found[0]
        constants.append(quoted if number is None else int(number))
        return f"{sign}{mark}{len(constants)}"

    return _COMPARED.sub(cut, text), constants


def parameter_type(value: object) -> Type | None:
    """Return the type of a value that a compiled question need not know; None for others."""
    match value:
        case bool():
            return None
        case int() if NUMBER_RANGE[0] <= value <= NUMBER_RANGE[1]:
            return NUMBER
        case str() if is_encodable(value):
            return SYMBOL
        case _:
            return None


def values_of_parameters(query: exp.Expr) -> list[list[str]] | None:
    """Return the parameters in the rows of `VALUES`; None if there is anything else."""
    if not isinstance(query, exp.Values):
        return None
    rows = [
        each.expressions if isinstance(each, exp.Tuple) else [each] for each in query.expressions
    ]
    if not all(isinstance(cell, exp.Placeholder) for row in rows for cell in row):
        return None
    return [[str(cell.this) for cell in row] for row in rows]


def take_parameters(tree: exp.Expr, given: str) -> bool:
    """Read the parameters of a question from the relation of their values, in place.

    Returns:
        Whether all of them are in conditions of WHERE, of blocks that have a FROM.
    """
    for block in list(tree.find_all(exp.Select)):
        where = block.args.get("where")
        placed = [] if where is None else list(_own_parameters(where))
        if not placed:
            continue
        if block.args.get("from_") is None:
            return False
        for each in placed:
            column = exp.to_identifier(str(each.this), quoted=True)
            each.replace(exp.Column(this=column, table=exp.to_identifier(given, quoted=True)))
        table = exp.Table(this=exp.to_identifier(given, quoted=True))
        block.append("joins", exp.Join(this=table, kind="CROSS"))
    return tree.find(exp.Placeholder) is None


def _own_parameters(where: exp.Expr) -> Iterator[exp.Placeholder]:
    """Yield the parameters in a condition, without those of queries inside it."""
    for node in where.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(node, exp.Placeholder):
            yield node


def given_table(given: str, types: Mapping[str, Type]) -> TableDefinition:
    """Return the relation of the values of parameters: it has one row."""
    columns = tuple(QueryColumn(name, type_) for name, type_ in types.items())
    return TableDefinition(given, columns, keys=(frozenset(),), is_hidden=True)


def compares_only(query: Query, given: str) -> bool:
    """Whether a question does nothing with its parameters but compare them with their own kind.

    Anything else may depend on their values, as conversions do.
    """
    nodes = list(_nodes(query))
    numbers = {
        each.number for each in nodes if isinstance(each, TableSource) and each.relation == given
    }
    uses = sum(isinstance(each, ColumnReference) and each.source in numbers for each in nodes)
    for node in nodes:
        if not isinstance(node, FunctionCall) or node.functor not in COMPARISON_OPERATORS:
            continue
        kinds = {each.type.kind for each in node.arguments}
        used = [
            each
            for each in node.arguments
            if isinstance(each, ColumnReference) and each.source in numbers
        ]
        if len(kinds) == 1 and len(used) == 1:
            uses -= 1
    return uses == 0


def _nodes(root: object) -> Iterator[object]:
    """Yield the nodes of a query tree."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
        elif is_dataclass(node) and not isinstance(node, Type):
            yield node
            waiting += [getattr(node, each.name) for each in fields(node) if each.name != "span"]
