"""GROUPING SETS, ROLLUP and CUBE are a UNION ALL of groupings, in which other keys are null."""

from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import Any

from corollary.core.types import NUMBER
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    ConstantValue,
    Exists,
    Expression,
    FunctionCall,
    Quantified,
    Query,
    ScalarSubquery,
    Select,
    SetOperation,
    SetOperator,
    output_columns,
)


def expand_grouping_sets(select: Select) -> Query:
    """Return the union of the groupings of a block."""
    assert select.grouping_sets is not None
    keys = select.group_by or ()
    parts: list[Query] = [_grouping(select, keys, chosen) for chosen in select.grouping_sets]
    columns = output_columns(select)

    def join(left: Query, right: Query) -> Query:
        return SetOperation(SetOperator.UNION, True, left, right, columns, select.span)

    union = reduce(join, parts)
    if select.is_distinct and isinstance(union, SetOperation):
        return replace(union, is_all=False)
    return union


def _grouping(select: Select, keys: tuple[Expression, ...], chosen: frozenset[int]) -> Select:
    """Return a block with one of its groupings."""
    missing = {key for number, key in enumerate(keys) if number not in chosen}
    columns = {(key.source, key.column) for key in missing if isinstance(key, ColumnReference)}

    def change(expression: Any) -> Any:
        if isinstance(expression, tuple):
            return tuple(change(each) for each in expression)
        if isinstance(expression, FunctionCall) and expression.functor == "grouping":
            return ConstantValue(int(expression.arguments[0] in missing), NUMBER, expression.span)
        if isinstance(expression, AggregateCall):
            return expression
        if hasattr(expression, "type") and expression in missing:
            return ConstantValue(None, expression.type.with_null(nullable=True), expression.span)
        if isinstance(expression, FunctionCall):
            return replace(expression, arguments=change(expression.arguments))
        if isinstance(expression, Quantified):
            expression = replace(expression, left=change(expression.left))
        if isinstance(expression, ScalarSubquery | Exists | Quantified):
            return replace(expression, query=_without_columns(expression.query, columns))
        return expression

    return replace(
        select,
        columns=tuple((column, change(expression)) for column, expression in select.columns),
        group_by=tuple(key for number, key in enumerate(keys) if number in chosen),
        grouping_sets=None,
        having=None if select.having is None else change(select.having),
    )


def _without_columns(node: Any, columns: set[tuple[int, int]]) -> Any:
    """Return a query, or a part of one, in which some columns of the query around are null."""
    if isinstance(node, ColumnReference):
        if (node.source, node.column) not in columns:
            return node
        return ConstantValue(None, node.type.with_null(nullable=True), node.span)
    if isinstance(node, tuple):
        return tuple(_without_columns(each, columns) for each in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {
        each.name: _without_columns(getattr(node, each.name), columns) for each in fields(node)
    }
    return replace(node, **changed)
