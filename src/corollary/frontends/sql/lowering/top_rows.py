"""`ORDER BY … LIMIT k`: the rows with fewer than k rows before them.

Rows that `ORDER BY` leaves tied are ordered by all columns, ascending, nulls first.
"""

from collections.abc import Sequence

from corollary.core.logic import (
    AggregateTerm,
    BodyItem,
    Comparison,
    Constant,
    Disjunction,
    Functor,
    Term,
    Variable,
)
from corollary.core.types import NUMBER
from corollary.errors import Diagnostic, Severity
from corollary.frontends.sql.lowering.blocks import ResultColumn, emit_block
from corollary.frontends.sql.lowering.bodies import NULL, RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering, refuse
from corollary.frontends.sql.lowering.tree_walk import without_order
from corollary.frontends.sql.query_tree import Ordered

OrderTerm = tuple[Variable, Variable, bool, bool]
"""A value of another row, that of this row, whether descending, whether nulls come first."""


def before(
    terms: Sequence[OrderTerm], body: RuleBody, *, or_equal: bool = False
) -> tuple[tuple[BodyItem, ...], ...]:
    """Return the alternatives, which exclude each other, in which another row comes before.

    Args:
        terms: what is compared, the most important first.
        body: where the values of this row are.
        or_equal: whether rows with equal values count too.
    """
    found: list[tuple[BodyItem, ...]] = []
    ties: tuple[BodyItem, ...] = ()
    for other, this, is_descending, nulls_first in terms:
        less = Comparison(">" if is_descending else "<", other, this)
        found.append((*ties, less))
        if body.is_nullable(this):
            absent, present = (other, this) if nulls_first else (this, other)
            found.append((*ties, Comparison("is", absent, NULL), Comparison("=", present, present)))
        ties = (*ties, Comparison("is", other, this))
    if or_equal:
        found.append(ties)
    return tuple(found)


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
    inner = lowering.lower_part(ordered.query, body, is_set=False)
    rows = body.empty_copy(is_set=body.is_set)
    this = lowering.read(inner, rows)
    shown = [
        ResultColumn(column.name, variable, variable.type or NUMBER)
        for column, variable in zip(ordered.columns, this, strict=False)
    ][: ordered.width]
    others = [draft.variable(draft.hint(each), each.type or NUMBER) for each in this]
    copies = draft.variable("m", NUMBER) if inner.is_bag else None
    chosen = [number for number, _, _ in ordered.order]
    terms = [(others[at], this[at], down, nulls) for at, down, nulls in ordered.order]
    ties = [at for at in range(len(this)) if at not in chosen]
    terms += [(others[at], this[at], False, True) for at in ties]
    earlier = before(terms, rows)
    body_items: list[BodyItem] = [inner.atom(tuple(others), copies)]
    body_items += [Disjunction(earlier)] if len(earlier) > 1 else earlier[0]
    number = draft.variable("before", NUMBER)
    total = (
        AggregateTerm("count", None, tuple(body_items))
        if copies is None
        else AggregateTerm("sum", copies, tuple(body_items))
    )
    rows.items.append(Comparison("=", number, total))
    rows.known.add({each.name for each in this}, {number.name})
    _take(lowering, ordered, rows, number)
    return emit_block(lowering, relation, rows, shown, storage=storage, span=ordered.span)


def _take(
    lowering: ViewLowering,
    ordered: Ordered,
    rows: RuleBody,
    number: Variable,
) -> None:
    """Keep the rows, and as many copies of them, that lie between offset and limit."""
    offset = Constant(ordered.offset)
    count = rows.count_term()
    end: Term | None = None
    if ordered.limit is not None:
        end = Constant(ordered.offset + ordered.limit)
        rows.items.append(Comparison("<", number, end))
    if count is None:
        if ordered.offset:
            rows.items.append(Comparison(">=", number, offset))
        return
    last: Term = Functor("+", (number, count))
    rows.items.append(Comparison(">", last, offset))
    first: Term = Functor("max", (number, offset)) if ordered.offset else number
    if end is not None:
        last = Functor("min", (last, end))
    kept = lowering.draft.variable("n", NUMBER)
    rows.items.append(Comparison("=", kept, Functor("-", (last, first))))
    rows.counts[:] = [kept]
