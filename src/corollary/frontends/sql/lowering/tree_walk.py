"""Walks over query trees: what they contain, and which columns of queries around they name."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from corollary.core.logic import Value
from corollary.core.types import Type
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    ConstantRows,
    ConstantValue,
    Exists,
    Expression,
    FunctionCall,
    Ordered,
    Quantified,
    Query,
    QueryColumn,
    RecursiveSource,
    ScalarSubquery,
    SubquerySource,
    TableSource,
    WindowCall,
)
from corollary.source import Span

Node = object
NumberedSource = TableSource | SubquerySource | RecursiveSource
_LEAVES = (Type, Span, QueryColumn, str, int, float, bool, type(None), frozenset)


def walk(node: Node, *, into_subqueries: bool = True) -> Iterator[Node]:
    """Yield a node of a query tree and all nodes below it, parents first.

    Args:
        node: an expression, a source, a query, or a tuple of them.
        into_subqueries: whether the queries of subqueries in expressions are entered.
    """
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack += reversed(part)
        elif not isinstance(part, _LEAVES) and is_dataclass(part):
            yield part
            if isinstance(part, ConstantRows):
                continue
            is_closed = isinstance(part, ScalarSubquery | Exists | Quantified)
            names = [each.name for each in fields(part)]
            if is_closed and not into_subqueries:
                names.remove("query")
            stack += reversed([getattr(part, name) for name in names])


def sources_in(node: Node) -> Iterator[NumberedSource]:
    """Yield the sources with a number below a node."""
    for part in walk(node):
        if isinstance(part, TableSource | SubquerySource | RecursiveSource):
            yield part


def free_references(query: Query) -> tuple[ColumnReference, ...]:
    """Return the references to columns of the queries around a query, in order, each once."""
    own = {each.number for each in sources_in(query)}
    found = {
        (part.source, part.column): part
        for part in reversed(list(walk(query)))
        if isinstance(part, ColumnReference) and part.source not in own
    }
    return tuple(reversed(found.values()))


def has_subquery(expression: Expression | None) -> bool:
    """Whether a query stands inside an expression."""
    return any(isinstance(part, ScalarSubquery | Exists | Quantified) for part in walk(expression))


def calls_in(expressions: Node, kind: type[AggregateCall] | type[WindowCall]) -> list[Expression]:
    """Return the calls of a kind in expressions, not those of subqueries, each once."""
    found: dict[Expression, None] = {}
    for part in walk(expressions, into_subqueries=False):
        if isinstance(part, kind):
            found.setdefault(part)
    return list(found)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """Yield the parts of a condition that `AND` joins."""
    if isinstance(condition, FunctionCall) and condition.functor == "and":
        for each in condition.arguments:
            yield from conjuncts(each)
    elif condition is not None:
        yield condition


def constant_of(expression: Expression) -> Value:
    """Return the value of a literal; None for anything else."""
    return expression.value if isinstance(expression, ConstantValue) else None


def without_order(query: Query) -> Query:
    """Return a query without an `ORDER BY` that has no effect: one without `LIMIT`.

    Columns that are only there for the order go with it.
    """
    while isinstance(query, Ordered) and query.limit is None and not query.offset:
        shown = zip(query.columns, query.query.columns, strict=False)
        columns = tuple((column, expression) for column, (_, expression) in shown)
        query = replace(query.query, columns=columns)
    return query
