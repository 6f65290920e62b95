"""`ORDER BY … LIMIT k`: the rows whose number is not above k.

Rows that `ORDER BY` leaves equal are ordered by all columns, ascending, nulls first.
"""

from corollary.core.logic import Comparison, Constant, WindowFunction
from corollary.core.types import NUMBER
from corollary.errors import Diagnostic, Severity
from corollary.frontends.sql.lowering.blocks import ResultColumn, emit_block
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering, refuse
from corollary.frontends.sql.lowering.grouping import group_storage
from corollary.frontends.sql.lowering.tree_walk import without_order
from corollary.frontends.sql.lowering.windows import WindowedRows
from corollary.frontends.sql.query_tree import Ordered


def define_ordered(
    lowering: ViewLowering, ordered: Ordered, relation: str, body: RuleBody, *, storage: str
) -> LoweredQuery:
    """Make the rules of the first rows of a query."""
    draft = lowering.draft
    if ordered.limit is None and not ordered.offset:
        if relation == draft.view:
            draft.warnings.append(
                Diagnostic(
                    "C1340",
                    f"The order of `{draft.view}` has no effect: a view has none.",
                    ordered.span,
                    "leave `ORDER BY` out, and write it in the query that reads the view",
                    severity=Severity.WARNING,
                )
            )
        return lowering.define(without_order(ordered), relation, body, storage=storage)
    if not ordered.order:
        raise refuse(
            "C1341",
            "Which rows `LIMIT` takes is not defined without an order.",
            ordered.span,
            "add `ORDER BY`, or leave `LIMIT` out",
        )
    storage_of_rows = group_storage(lowering)  # arranged in their order
    inner = lowering.lower_part(ordered.query, body, is_set=False, storage=storage_of_rows)
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
    return emit_block(lowering, relation, rows, shown, storage=storage, span=ordered.span)
