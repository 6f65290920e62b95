"""Queries whose columns are converted: branches of set operations, sides of `IN`."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from corollary.core.types import SYMBOL, Type
from corollary.frontends.sql.binder.session import UNTYPED, BindingSession
from corollary.frontends.sql.binder.values.conversions import convert, is_untyped
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantRows,
    ConstantValue,
    Exists,
    Expression,
    Quantified,
    Query,
    QueryColumn,
    ScalarSubquery,
    Select,
    SubquerySource,
    Values,
    output_columns,
)
from corollary.source import Span

_NESTING = (ScalarSubquery, Exists, Quantified, SubquerySource)
_LEAVES = (Type, Span, ConstantValue, ConstantRows, QueryColumn)


def with_types(query: Query, types: Sequence[Type], session: BindingSession) -> Query:
    """Return a query whose columns are converted to types, as far as they differ.

    Whether a column may be null stays as it is.
    """
    columns = output_columns(query)
    if all(_is_same(c.type, t) for c, t in zip(columns, types, strict=True)):
        return query
    if isinstance(query, Select) and not query.is_distinct:
        pairs = zip(query.columns, types, strict=True)
        return replace(query, columns=tuple(_converted(c, e, t) for (c, e), t in pairs))
    if isinstance(query, Values):
        rows = tuple(
            tuple(convert(e, t) for e, t in zip(row, types, strict=True)) for row in query.rows
        )
        return replace(query, rows=rows, columns=_typed_columns(columns, types))
    number = session.next_source()
    source = wrapped(query, number)
    found = tuple(
        _converted(column, ColumnReference(number, i, column.type), type_)
        for i, (column, type_) in enumerate(zip(columns, types, strict=True))
    )
    return Select(found, source, span=query.span)


def wrapped(query: Query, number: int) -> SubquerySource:
    """Return a query as the source of another one around it."""
    plain = without_untyped(output_columns(query))
    inner = _deepened(query, 0) if _refers_outside(query) else query
    return SubquerySource(number, inner, plain, span=query.span)


def _refers_outside(query: Query) -> bool:
    """Whether some reference is to a query around the one that it stands in."""
    pending: list[Any] = [query]
    while pending:  # a chain of thousands is nested as deeply
        node = pending.pop()
        if isinstance(node, ColumnReference):
            if node.depth:
                return True
        elif isinstance(node, tuple):
            pending += node
        elif is_dataclass(node) and not isinstance(node, (type, *_LEAVES)):
            pending += [getattr(node, each.name) for each in fields(node)]
    return False


def _deepened(node: Any, level: int) -> Any:
    """Return a query, or a part of one, whose references to queries around go one further.

    `level` says how many queries, of the one that gets another around it, the part is inside of.
    """
    if isinstance(node, ColumnReference):
        return replace(node, depth=node.depth + 1) if node.depth > level else node
    if isinstance(node, tuple):
        return tuple(_deepened(each, level) for each in node)
    if not is_dataclass(node) or isinstance(node, (type, *_LEAVES)):
        return node
    changed: dict[str, Any] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, tuple) or is_dataclass(value):
            is_inner = each.name == "query" and isinstance(node, _NESTING)
            found = _deepened(value, level + is_inner)
            if found != value:
                changed[each.name] = found
    return replace(node, **changed) if changed else node


def _is_same(one: Type, other: Type) -> bool:
    return one.precision >= 0 and one.domain == other.domain


def _converted(
    column: QueryColumn, expression: Expression, type_: Type
) -> tuple[QueryColumn, Expression]:
    found = convert(expression, type_)
    nullable = column.type.nullable or is_untyped(expression)
    digits = max(type_.precision, column.type.precision)
    same = column.type if _is_same(column.type, type_) else type_
    return replace(column, type=replace(same, nullable=nullable, precision=digits)), found


def _typed_columns(
    columns: Sequence[QueryColumn], types: Sequence[Type]
) -> tuple[QueryColumn, ...]:
    pairs = zip(columns, types, strict=True)
    return tuple(replace(c, type=t.with_null(c.type.nullable)) for c, t in pairs)


def without_untyped(columns: Sequence[QueryColumn]) -> tuple[QueryColumn, ...]:
    """Return columns in which a `NULL` without a type is a text."""
    text = SYMBOL.with_null(True)
    return tuple(replace(c, type=text) if c.type == UNTYPED else c for c in columns)


def finished(query: Query, session: BindingSession) -> Query:
    """Return the query of a statement: its columns all have types."""
    columns = output_columns(query)
    if all(column.type != UNTYPED for column in columns):
        return query
    return with_types(query, [c.type for c in without_untyped(columns)], session)
