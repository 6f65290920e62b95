"""SELECT blocks: plain, grouped, with grouping sets or windows, and their first rows.

GROUPING SETS, ROLLUP and CUBE are a UNION ALL of groupings, in which other keys are null. `ORDER BY
… LIMIT k` takes the rows whose number is not above k; rows that `ORDER BY` leaves equal are ordered
by all columns, ascending, nulls first.
"""

from dataclasses import replace
from functools import reduce
from typing import Any

from corollary.core.logic import Comparison, Constant, Term, Variable, WindowFunction
from corollary.core.types import NUMBER
from corollary.errors import Diagnostic, Severity
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.blocks import ResultColumn, emit_block
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering, refuse
from corollary.frontends.sql.lowering.grouping import (
    Groups,
    is_null_without_rows,
)
from corollary.frontends.sql.lowering.windows import WindowedRows, add_windows


def is_grouped(select: tree.Select) -> bool:
    """Whether the rows of a block are groups."""
    return select.group_by is not None or bool(
        tree.calls_in((select.columns, select.having), tree.AggregateCall)
    )


def define_select(
    lowering: ViewLowering, select: tree.Select, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make the rules of a block."""
    has_windows = bool(tree.calls_in(select.columns, tree.WindowCall))
    is_set = body.is_set or select.is_distinct
    body.is_set = is_set and not has_windows  # a window sees each copy of a row
    if is_grouped(select):
        lowering.draft.kept.add(relation)
        body = _grouped_body(lowering, select, relation, body)
        lowering.add_condition(select.having, body)
    else:
        lowering.open_select(select, body)
    if has_windows:
        add_windows(lowering, select, body)
        body.is_set = is_set
    columns = [
        ResultColumn(column.name, lowering.term(expression, body), column.type)
        for column, expression in select.columns
    ]
    return emit_block(lowering, relation, body, columns)


def _make_groups(
    lowering: ViewLowering, select: tree.Select, relation: str, rows: RuleBody
) -> Groups:
    """Return the groups of a block, with the totals of all its aggregates."""
    lowering.open_select(select, rows)
    keys = [
        ResultColumn(_name(lowering, key), lowering.term(key, rows), key.type)
        for key in select.group_by or ()
    ]
    groups = Groups(lowering, relation, rows, keys)
    for call in tree.calls_in((select.columns, select.having), tree.AggregateCall):
        assert isinstance(call, tree.AggregateCall)
        groups.add(call)
    return groups


def _name(lowering: ViewLowering, expression: tree.Expression) -> str:
    """Return a name for a key."""
    if isinstance(expression, tree.ColumnReference):
        term = lowering.columns[expression.source][expression.column]
        return lowering.draft.hint(term) if isinstance(term, Variable) else "key"
    return "key"


def _grouped_body(
    lowering: ViewLowering, select: tree.Select, relation: str, body: RuleBody
) -> RuleBody:
    """Return a body whose rows are the groups of a block."""
    rows = body.empty_copy(is_set=False)
    groups = _make_groups(lowering, select, relation, rows)
    body.terms.update(groups.terms)
    for key, variable in zip(select.group_by or (), groups.variables, strict=True):
        body.terms[key] = variable
        if isinstance(key, tree.ColumnReference):
            lowering.columns[key.source][key.column] = variable
    is_read_again = bool(tree.calls_in(select.columns, tree.WindowCall)) or any(
        tree.has_subquery(each) for each in (select.having, *(each for _, each in select.columns))
    )
    if not groups.keys:
        body.choose(groups.alternatives(groups.to_relation()), lowering.cut)
    elif is_read_again or not _shows_keys(select):
        body.items.append(groups.to_relation())
    else:
        body.items += groups.items()
    body.values += groups.totals
    body.witnesses += groups.variables
    groups.note_totals(body)
    return body


def _shows_keys(select: tree.Select) -> bool:
    """Whether all keys are columns of the result, so that its rows are the groups."""
    shown = [expression for _, expression in select.columns]
    return all(key in shown for key in select.group_by or ())


def single_row(
    lowering: ViewLowering, query: tree.Query, body: RuleBody, *, drops_null: bool
) -> Term | None:
    """Return the value of a block that is one group, and so has always one row."""
    if (
        not isinstance(query, tree.Select)
        or query.group_by
        or query.grouping_sets is not None
        or query.having is not None
        or not tree.calls_in(query.columns, tree.AggregateCall)
        or tree.calls_in(query.columns, tree.WindowCall)
        or len(query.columns) != 1
    ):
        return None
    rows = lowering.inner_body(query, body, is_set=False)
    relation = lowering.draft.relation("q")
    groups = _make_groups(lowering, query, relation, rows)
    literal = groups.to_relation()
    ((_, expression),) = query.columns
    alternatives = groups.alternatives(literal)
    if drops_null and is_null_without_rows(expression):
        alternatives = alternatives[:1]
    body.choose(alternatives, lowering.cut, groups.totals)
    groups.note_totals(body)
    return lowering.term(expression, body, terms=groups.terms, drops_null=drops_null)


# --- grouping sets -------------------------------------------------------------------------------


def expand_grouping_sets(select: tree.Select) -> tree.Query:
    """Return the union of the groupings of a block."""
    assert select.grouping_sets is not None
    keys = select.group_by or ()
    parts: list[tree.Query] = [_grouping(select, keys, chosen) for chosen in select.grouping_sets]
    columns = tree.output_columns(select)

    def join(left: tree.Query, right: tree.Query) -> tree.Query:
        return tree.SetOperation(tree.SetOperator.UNION, True, left, right, columns, select.span)

    union = reduce(join, parts)
    if select.is_distinct and isinstance(union, tree.SetOperation):
        return replace(union, is_all=False)
    return union


def _grouping(
    select: tree.Select, keys: tuple[tree.Expression, ...], chosen: frozenset[int]
) -> tree.Select:
    """Return a block with one of its groupings."""
    missing = {key for number, key in enumerate(keys) if number not in chosen}
    present = {*keys} - missing
    columns = {(key.source, key.column) for key in missing if isinstance(key, tree.ColumnReference)}

    def without_key(reference: tree.ColumnReference, _: int) -> tree.Expression:
        """Return null for a key that is missing, in a query inside this one."""
        if (reference.source, reference.column) not in columns:
            return reference
        return tree.ConstantValue(None, reference.type.with_null(nullable=True), reference.span)

    def change(expression: Any) -> Any:
        if isinstance(expression, tuple):
            return tuple(change(each) for each in expression)
        if isinstance(expression, tree.FunctionCall) and expression.functor == "grouping":
            return tree.ConstantValue(
                int(expression.arguments[0] in missing), NUMBER, expression.span
            )
        if isinstance(expression, tree.AggregateCall):
            return expression
        if hasattr(expression, "type") and expression in present:  # with missing keys in it, too
            return expression
        if hasattr(expression, "type") and expression in missing:
            return tree.ConstantValue(
                None, expression.type.with_null(nullable=True), expression.span
            )
        if isinstance(expression, tree.FunctionCall):
            return replace(expression, arguments=change(expression.arguments))
        if isinstance(expression, tree.Quantified):
            expression = replace(expression, left=change(expression.left))
        if isinstance(expression, tree.ScalarSubquery | tree.Exists | tree.Quantified):
            return replace(expression, query=tree.map_references(expression.query, without_key))
        return expression

    return replace(
        select,
        columns=tuple((column, change(expression)) for column, expression in select.columns),
        group_by=tuple(key for number, key in enumerate(keys) if number in chosen),
        grouping_sets=None,
        having=None if select.having is None else change(select.having),
    )


# --- the first rows ------------------------------------------------------------------------------


def define_ordered(
    lowering: ViewLowering, ordered: tree.Ordered, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make the rules of the first rows of a query."""
    draft = lowering.draft
    if ordered.limit is None and not ordered.offset:
        if relation == draft.view and not ordered.has_chosen:
            draft.warnings.append(
                Diagnostic(
                    "C1340",
                    f"The order of `{draft.view}` has no effect: a view has none.",
                    ordered.span,
                    "leave `ORDER BY` out, and write it in the query that reads the view",
                    severity=Severity.WARNING,
                )
            )
        return lowering.define(tree.without_order(ordered), relation, body)
    if not ordered.order:
        raise refuse(
            "C1341",
            "Which rows `LIMIT` takes is not defined without an order.",
            ordered.span,
            "add `ORDER BY`, or leave `LIMIT` out",
        )
    inner = lowering.lower_part(ordered.query, body, is_set=False, is_kept=True)  # in their order
    rows = body.empty_copy(is_set=body.is_set)
    this = lowering.read(inner, rows)
    shown = [
        ResultColumn(column.name, variable, variable.type or NUMBER)
        for column, variable in zip(ordered.columns, this, strict=False)
    ][: ordered.width]
    windows = WindowedRows(lowering, rows)
    order = [(this[at], down, nulls) for at, down, nulls in ordered.order]
    number = windows.add(WindowFunction("row_number"), (), (), order, NUMBER)
    windows.emit(this)
    if ordered.limit is not None:
        end = Constant(ordered.offset + ordered.limit)
        rows.items.append(Comparison("<=", number, end))
    if ordered.offset:
        rows.items.append(Comparison(">", number, Constant(ordered.offset)))
    return emit_block(lowering, relation, rows, shown)
