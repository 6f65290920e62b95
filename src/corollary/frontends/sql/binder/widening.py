"""Queries whose columns are converted: branches of set operations, sides of `IN`."""

from collections.abc import Sequence
from dataclasses import replace

from corollary.core.types import SYMBOL, Type, is_same
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.binder.session import UNTYPED, BindingSession
from corollary.frontends.sql.binder.values.common_types import is_untyped
from corollary.frontends.sql.binder.values.conversions import convert


def with_types(query: tree.Query, types: Sequence[Type], session: BindingSession) -> tree.Query:
    """Return a query whose columns are converted to types, as far as they differ.

    Whether a column may be null stays as it is.
    """
    columns = tree.output_columns(query)
    if all(_is_same(c.type, t) for c, t in zip(columns, types, strict=True)):
        return query
    if isinstance(query, tree.Select) and not query.is_distinct:
        pairs = zip(query.columns, types, strict=True)
        return replace(query, columns=tuple(_converted(c, e, t) for (c, e), t in pairs))
    if isinstance(query, tree.Values):
        rows = tuple(
            tuple(convert(e, t) for e, t in zip(row, types, strict=True)) for row in query.rows
        )
        return replace(query, rows=rows, columns=_typed_columns(columns, types))
    number = session.next_source()
    source = wrapped(query, number)
    found = tuple(
        _converted(column, tree.ColumnReference(number, i, column.type), type_)
        for i, (column, type_) in enumerate(zip(columns, types, strict=True))
    )
    return tree.Select(found, source, span=query.span)


def wrapped(query: tree.Query, number: int) -> tree.SubquerySource:
    """Return a query as the source of another one around it."""
    plain = without_untyped(tree.output_columns(query))
    parts = tree.walk(
        query
    )  # a chain of thousands is nested as deeply, and refers to nothing outside
    has_outer = any(isinstance(each, tree.ColumnReference) and each.depth for each in parts)
    inner = tree.map_references(query, _deepened) if has_outer else query
    return tree.SubquerySource(number, inner, plain, span=query.span)


def _deepened(reference: tree.ColumnReference, level: int) -> tree.ColumnReference:
    """Return a reference that goes one query further, if it is to one around all of them."""
    if reference.depth > level:
        return replace(reference, depth=reference.depth + 1)
    return reference


def _is_same(one: Type, other: Type) -> bool:
    has_room = not one.is_number or (one.bits or 64) <= (other.bits or 64)
    is_alike = one.domain == other.domain and one.logical is other.logical
    is_alike = is_alike and (not one.members or is_same(one, other))
    return one.precision >= 0 and is_alike and has_room


def _converted(
    column: tree.QueryColumn, expression: tree.Expression, type_: Type
) -> tuple[tree.QueryColumn, tree.Expression]:
    found = convert(expression, type_)
    nullable = column.type.nullable or is_untyped(expression)
    digits = type_.precision
    if not type_.is_interval:
        digits = max(digits, column.type.precision)
    same = replace(column.type, bits=type_.bits) if _is_same(column.type, type_) else type_
    return replace(column, type=replace(same, nullable=nullable, precision=digits)), found


def _typed_columns(
    columns: Sequence[tree.QueryColumn], types: Sequence[Type]
) -> tuple[tree.QueryColumn, ...]:
    pairs = zip(columns, types, strict=True)
    return tuple(replace(c, type=t.with_null(c.type.nullable)) for c, t in pairs)


def without_untyped(columns: Sequence[tree.QueryColumn]) -> tuple[tree.QueryColumn, ...]:
    """Return columns in which a `NULL` without a type is a text."""
    text = SYMBOL.with_null(True)
    return tuple(replace(c, type=text) if c.type == UNTYPED else c for c in columns)


def finished(
    query: tree.Query, session: BindingSession, targets: Sequence[Type] = ()
) -> tree.Query:
    """Return the query of a statement: its columns all have types.

    Those without one get that of the columns that they are written to, or are texts.
    """
    columns = tree.output_columns(query)
    if all(column.type != UNTYPED for column in columns):
        return query
    wanted = [*targets, *[SYMBOL.with_null(True)] * len(columns)]
    types = [
        target if column.type == UNTYPED else column.type
        for column, target in zip(columns, wanted, strict=False)
    ]
    return with_types(query, types, session)
