"""Window functions: `f(x) OVER (PARTITION BY … ORDER BY … frame)`."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from corollary.core.functors.spec import WHOLE
from corollary.core.types import BOOL, FLOAT, INT, NUMBER, NUMERIC
from corollary.frontends.sql.binder.aggregates import (
    AGGREGATES,
    completed,
    counts_nothing,
    filtered,
    pop_flag,
    read_aggregate,
    without_nulls,
)
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions.arguments import fitted
from corollary.frontends.sql.binder.functions.table import check_accepted
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.values.common_types import (
    as_known,
    call,
    decimal_of,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.values.intervals import combine
from corollary.frontends.sql.binder.values.operators import Site, aligned, choose
from corollary.frontends.sql.binder.widening import wrapped
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantValue,
    Expression,
    FrameBound,
    FunctionCall,
    OrderItem,
    QueryColumn,
    Select,
    WindowCall,
    WindowFrame,
    walk,
)

RANKS = frozenset({"rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile"})
NEIGHBOURS = frozenset({"lag", "lead"})
VALUES = {
    **dict.fromkeys(("first", "first_value", "any_value"), "first_value"),
    **dict.fromkeys(("last", "last_value"), "last_value"),
    "nth_value": "nth_value",
}
"""The functions that choose a row of the frame."""
WINDOW_FUNCTIONS = RANKS | NEIGHBOURS | VALUES.keys()
"""The functions that need a window; aggregates may have one."""

_Window = tuple[tuple[Expression, ...], tuple[OrderItem, ...], WindowFrame | None]


def window_call(context: ExpressionContext, node: exp.Window) -> Expression:
    """Return a window function."""
    session = context.session
    if not context.with_windows:
        message = f"A window function cannot stand in {context.clause}."
        note = "compute it in a subquery, and use its result"
        raise session.error("C1316", message, node, note)
    session.check(node, "this", "partition_by", "order", "spec", "alias", "over")
    called, ignores_nulls = without_nulls(node.this, session)
    tests = []
    inner = replace(context, with_windows=False, clause="a window function")
    if isinstance(called, exp.Filter):
        session.check(called, "this", "expression")
        tests = [inner.bind_condition(called.args["expression"].this, "`FILTER`")]
        called = called.this
    whole, called = called, called.this if isinstance(called, exp.WithinGroup) else called
    if not isinstance(called, exp.Anonymous):
        raise session.unsupported(called)
    window = _window(inner, node)
    name, site = name_of(called), inner.site(node, name=name_of(called))
    if ignores_nulls and name not in NEIGHBOURS | VALUES.keys():
        message = f"`{name}` does not take IGNORE NULLS."
        raise session.error("C1316", message, node, "leave it out")
    if name in AGGREGATES and name not in VALUES:
        assert isinstance(whole, exp.Anonymous | exp.WithinGroup)
        return _aggregate(inner, whole, tests, window, site)
    if tests or name not in WINDOW_FUNCTIONS:
        check_accepted(name, site)
        message = f"`{name}` cannot be used with a window like this."
        known = ", ".join(sorted(WINDOW_FUNCTIONS))
        raise session.error("C1316", message, called, f"use an aggregate, or one of {known}")
    if not window[1] and name not in VALUES.keys() - {"nth_value"}:
        note = "write `OVER (… ORDER BY …)`"
        raise session.error("C1316", f"`{name}` needs an order.", node, note)
    arguments = [inner.bind(each) for each in called.expressions]
    if name in RANKS:
        return _rank(name, arguments, window, site)
    if window[2] is not None and name in NEIGHBOURS:
        raise session.error("C1316", f"`{name}` has no frame.", node, "leave the frame out")
    most = 4 if name in NEIGHBOURS else 3 if name == "nth_value" else 2
    ignores_nulls |= pop_flag(arguments, most)
    found = _neighbour(VALUES.get(name, name), arguments, window, site)
    return replace(found, ignores_nulls=ignores_nulls)


def _aggregate(
    context: ExpressionContext,
    node: exp.Anonymous | exp.WithinGroup,
    tests: list[Expression],
    window: _Window,
    site: Site,
) -> Expression:
    found = read_aggregate(context, node, tests)
    partition, order, frame = window
    is_unordered = site.name in _UNORDERED or isinstance(node, exp.WithinGroup)
    if is_unordered and (order or frame is not None):
        note = "write `OVER (PARTITION BY …)`, or use `percentile`, which takes them"
        raise site.error("C1316", f"`{site.name}` takes no ORDER BY and no frame.", note)
    if counts_nothing(found):
        return sized(integer(0, site.span), 64)
    if found.is_distinct:
        note = "count distinct values in a grouped subquery, and join it"
        raise site.error("C1316", "DISTINCT cannot be used with a window.", note)
    arguments, type_ = found.arguments, found.type
    if found.condition is not None:
        arguments = arguments or (integer(1),)
        arguments = tuple(filtered(each, found.condition) for each in arguments)
        type_ = type_ if found.name == "count" else type_.with_null(True)
    if frame is not None and not order and not _is_whole(frame):
        note = "write `OVER (… ORDER BY …)`, or leave the frame out for the whole partition"
        raise site.error("C1316", "A frame needs an order.", note)
    # A frame without the present row may be empty.
    if found.name != "count" and frame is not None and not _has_current(frame):
        type_ = type_.with_null(True)
    made = WindowCall(
        found.name, arguments, partition, order, frame, type_, site.span, found.parameters
    )
    return completed(made, site)


_UNORDERED = frozenset({"median", "percentile_cont", "percentile_disc"})
"""Aggregates whose window has no order, as in Spark."""


def _is_whole(frame: WindowFrame) -> bool:
    return frame.start is frame.end is FrameBound.UNBOUNDED


def _has_current(frame: WindowFrame) -> bool:
    """Whether the present row is always in its frame."""
    starts_before = frame.start is not FrameBound.OFFSET or frame.start_offset <= 0
    ends_after = frame.end is not FrameBound.OFFSET or frame.end_offset >= 0
    return starts_before and ends_after


def _rank(name: str, arguments: list[Expression], window: _Window, site: Site) -> Expression:
    partition, order, frame = window
    if frame is not None:
        raise site.error("C1316", f"`{name}` has no frame.", "leave the frame out")
    if name == "ntile":
        return _part(arguments, partition, order, site)
    if arguments and name in ("row_number", "cume_dist"):  # others may name the order again
        raise site.error("C1306", f"`{name}` takes no arguments.", f"write `{name}()`")
    if name in ("rank", "dense_rank", "row_number"):
        return WindowCall(name, (), partition, order, None, INT, site.span)
    total = WindowCall("count", (), partition, (), None, NUMBER, site.span)
    if name == "cume_dist":
        upto = WindowCall("count", (), partition, order, None, NUMBER, site.span)
        return call("/", (convert(upto, FLOAT), convert(total, FLOAT)), FLOAT, site.span)
    rank = WindowCall("rank", (), partition, order, None, NUMBER, site.span)
    before, others = (
        convert(call("-", (each, integer(1)), NUMBER, site.span), FLOAT) for each in (rank, total)
    )
    share = call("/", (before, others), FLOAT, site.span)
    is_alone = FunctionCall("eq", (total, integer(1)), BOOL, site.span)
    return choose([(is_alone, ConstantValue(0.0, FLOAT))], share, FLOAT, site.span)


def _part(
    arguments: list[Expression],
    partition: tuple[Expression, ...],
    order: tuple[OrderItem, ...],
    site: Site,
) -> Expression:
    """Return `ntile(n)`: the first parts have one row more, where rows do not divide evenly."""
    number = arguments[0] if len(arguments) == 1 else None
    count = number.value if isinstance(number, ConstantValue) else None
    if not isinstance(count, int) or count < 1:
        raise site.error("C1306", "`ntile` takes a literal above 0.", "write `ntile(4)`")

    def compute(sign: str, left: Expression, right: Expression | int) -> Expression:
        other = integer(right) if isinstance(right, int) else right
        return call({"%": "rem"}.get(sign, sign), (left, other), NUMBER, site.span)

    total = WindowCall("count", (), partition, (), None, NUMBER, site.span)
    place = WindowCall("row_number", (), partition, order, None, NUMBER, site.span)
    before = compute("-", place, 1)
    size, larger = compute("/", total, count), compute("%", total, count)
    above = compute("+", size, 1)
    rows = compute("*", larger, above)
    first = compute("+", compute("/", before, above), 1)
    rest = compute("+", compute("/", compute("-", before, rows), size), compute("+", larger, 1))
    is_first = call("lt", (before, rows), BOOL, site.span)
    return choose([(is_first, first)], rest, INT, site.span)


def _neighbour(name: str, arguments: list[Expression], window: _Window, site: Site) -> WindowCall:
    """Return `lag`, `lead` (value, distance, default) or `first_value` and its like."""
    partition, order, frame = window
    most = 3 if name in NEIGHBOURS else 2 if name == "nth_value" else 1
    if not 1 <= len(arguments) <= most:
        raise site.error("C1306", f"`{name}` takes 1 to {most} arguments.", f"write `{name}(x)`")
    value, *rest = arguments
    value = as_known(value)
    if is_untyped(value):
        raise site.error(
            "C1307", f"`{name}` of NULL has no type.", "cast it, as in `CAST(NULL AS INT)`"
        )
    if name not in NEIGHBOURS:
        given = (value, *(fitted(each, WHOLE, site) for each in rest))
        number = given[-1].value if isinstance(given[-1], ConstantValue) else None
        if name == "nth_value" and (len(given) < 2 or not isinstance(number, int) or number < 1):
            message = "`nth_value` takes a literal above 0."
            raise site.error("C1306", message, "write `nth_value(x, 2)`")
        may_be_empty = name == "nth_value" or (frame is not None and not _has_current(frame))
        type_ = value.type.with_null(True) if may_be_empty else value.type
        return WindowCall(name, given, partition, order, frame, type_, site.span)
    distance = fitted(rest[0], WHOLE, site) if rest else integer(1)
    if not isinstance(distance, ConstantValue) or not isinstance(distance.value, int):
        raise site.error("C1316", f"The distance of `{name}` must be a literal.", "write a number")
    default = rest[1] if len(rest) > 1 else ConstantValue(None, value.type.with_null(True))
    value, default = aligned((value, default), site, f"`{name}`")
    type_ = value.type.with_null(value.type.nullable or default.type.nullable)
    return WindowCall(name, (value, distance, default), partition, order, None, type_, site.span)


# --- queries around windows --------------------------------------------------------------------


def chosen_by_windows(select: Select, condition: Expression, session: BindingSession) -> Select:
    """Return a query around a block that has its rows for which a condition over windows holds."""
    number = session.next_source()
    columns = list(select.columns)
    positions = {expression: at for at, (_, expression) in enumerate(columns)}

    def read(part: Expression) -> Expression:
        """Return a part of the condition that reads the block, which computes the windows."""
        if isinstance(part, FunctionCall) and has_window(part):
            return replace(part, arguments=tuple(map(read, part.arguments)))
        if isinstance(part, ConstantValue):
            return part
        at = positions.setdefault(part, len(columns))
        if at == len(columns):
            columns.append((QueryColumn(f"part{at + 1}", part.type), part))
        return ColumnReference(number, at, part.type, span=part.span)

    where = read(condition)
    inner = replace(select, columns=tuple(columns), is_distinct=False)
    shown = tuple(
        (column, ColumnReference(number, at, column.type, span=column.span))
        for at, (column, _) in enumerate(select.columns)
    )
    source = wrapped(over_grouping_sets(inner, session), number)
    return Select(shown, source, where, is_distinct=select.is_distinct, span=select.span)


# --- windows over grouping sets ----------------------------------------------------------------


def over_grouping_sets(select: Select, session: BindingSession) -> Select:
    """Return a block whose windows are over the rows of all its grouping sets: a query around."""
    if select.grouping_sets is None or not has_window(select.columns):
        return select
    number = session.next_source()
    inner: dict[Expression, QueryColumn] = {}

    def move(part: Any) -> Any:
        """Return a part that reads the inner query, which computes all but the windows."""
        if isinstance(part, tuple):
            return tuple(map(move, part))
        if isinstance(part, OrderItem):
            return replace(part, expression=move(part.expression))
        if isinstance(part, WindowCall):
            names = ("arguments", "partition", "order", "frame")
            return replace(part, **{name: move(getattr(part, name)) for name in names})
        if isinstance(part, WindowFrame):
            return replace(part, first=move(part.first), last=move(part.last))
        if part is None:
            return None
        if isinstance(part, FunctionCall) and has_window(part):
            return replace(part, arguments=move(part.arguments))
        if isinstance(part, ConstantValue):
            return part
        column = inner.setdefault(part, QueryColumn(f"part{len(inner) + 1}", part.type))
        return ColumnReference(number, list(inner).index(part), column.type, span=part.span)

    columns = tuple((column, move(expression)) for column, expression in select.columns)
    if not inner:
        inner[integer(1)] = QueryColumn("part1", NUMBER)
    groups = replace(
        select,
        columns=tuple((column, expression) for expression, column in inner.items()),
        is_distinct=False,
    )
    source = wrapped(groups, number)
    return Select(columns, source, is_distinct=select.is_distinct, span=select.span)


def has_window(node: Any) -> bool:
    """Whether a window function stands in expressions, not in their subqueries."""
    if isinstance(node, tuple):
        return any(map(has_window, node))
    if isinstance(node, FunctionCall):
        return has_window(node.arguments)
    return isinstance(node, WindowCall)


# --- the window --------------------------------------------------------------------------------


def _window(context: ExpressionContext, node: exp.Window) -> _Window:
    """Return partition, order and frame; a named window is looked up."""
    session = context.session
    alias = node.args.get("alias")
    partition = tuple(context.bind(each) for each in node.args.get("partition_by") or [])
    order, spec = _order(context, node.args.get("order")), node.args.get("spec")
    if alias is None:
        return partition, *_framed(context, spec, order)
    named = context.windows.get(alias.name.lower())
    if named is None:
        known = ", ".join(f"`{each}`" for each in context.windows) or "none"
        message = f"There is no window `{alias.name}`."
        raise session.error("C1316", message, node, f"WINDOW defines {known}")
    session.check(named, "this", "partition_by", "order", "spec", "alias")
    rest = {name: each for name, each in context.windows.items() if each is not named}
    base = _window(replace(context, windows=rest), named)
    if partition or (order and base[1]) or (spec and base[2]):
        message = f"The window `{alias.name}` has this part already."
        raise session.error("C1316", message, node, "write the whole window")
    order = order or base[1]
    if spec is None:
        return base[0], order, base[2]
    return base[0], *_framed(context, spec, order)


def _order(context: ExpressionContext, node: exp.Order | None) -> tuple[OrderItem, ...]:
    if node is None:
        return ()
    context.session.check(node, "expressions")
    return tuple(order_item(context, each) for each in node.expressions)


def order_item(context: ExpressionContext, node: exp.Expr) -> OrderItem:
    """Return a term of an order."""
    if not isinstance(node, exp.Ordered):
        return OrderItem(context.bind(node))
    context.session.check(node, "this", "desc", "nulls_first")
    expression = context.bind(node.this)
    return OrderItem(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _framed(
    context: ExpressionContext, node: exp.WindowSpec | None, order: tuple[OrderItem, ...]
) -> tuple[tuple[OrderItem, ...], WindowFrame | None]:
    """Return an order, and the frame of rows in it."""
    if node is None:
        return order, None
    session = context.session
    session.check(node, "kind", "start", "start_side", "end", "end_side")
    kind = str(node.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE"):
        raise session.error("C1316", f"`{kind}` is not supported.", node, "write ROWS or RANGE")
    start, start_offset = _bound(context, node, "start", kind)
    end, end_offset = FrameBound.CURRENT, 0
    if node.args.get("end") is not None:
        end, end_offset = _bound(context, node, "end", kind)
    first = -(10**9) if start is FrameBound.UNBOUNDED else start_offset
    last = 10**9 if end is FrameBound.UNBOUNDED else end_offset
    if first > last:
        raise session.error("C1316", "The frame ends before it begins.", node, "swap its ends")
    frame = WindowFrame(kind == "ROWS", start, end, start_offset, end_offset)
    if frame.is_rows or FrameBound.OFFSET not in (start, end):
        return order, frame
    if len(order) != 1:
        note = "write `ORDER BY x RANGE BETWEEN 3 PRECEDING AND CURRENT ROW`"
        raise session.error("C1316", "RANGE with a distance needs one ORDER BY.", node, note)
    (by,) = order
    bounds = [
        _moved(context, node.args[which], by, offset)
        for which, offset in (("start", start_offset), ("end", end_offset))
        if offset
    ]
    value, *bounds = aligned((by.expression, *bounds), context.site(node), "RANGE")
    given = [bounds.pop(0) if offset else None for offset in (start_offset, end_offset)]
    return (replace(by, expression=value),), replace(frame, first=given[0], last=given[1])


def _moved(context: ExpressionContext, node: exp.Expr, by: OrderItem, offset: int) -> Expression:
    """Return the value of an order at a distance before a row, or after it."""
    site, value, distance = context.site(node), by.expression, context.bind(node)
    amount = distance.value if isinstance(distance, ConstantValue) else None
    type_ = value.type
    is_number = type_.logical_kind in NUMERIC
    if is_number and isinstance(amount, int | float | Decimal) and not isinstance(amount, bool):
        if type_.is_number:
            distance = integer(int(amount))
        elif type_.is_decimal and decimal_of(distance).scale > type_.scale:
            message = "The distance has more digits after the point than the order."
            raise site.error("C1316", message, f"write at most {type_.scale} of them")
    elif is_number or not (type_.is_time or type_.is_interval) or _reads_columns(distance):
        message = f"RANGE has no such distance in an order by {type_name(type_)}."
        note = "write a literal: a number, or an interval beside dates, times and intervals"
        raise site.error("C1316", message, note)
    return combine("-" if (offset < 0) != by.is_descending else "+", value, distance, site)


def _reads_columns(expression: Expression) -> bool:
    return not all(isinstance(each, ConstantValue | FunctionCall) for each in walk(expression))


def _bound(
    context: ExpressionContext, node: exp.WindowSpec, which: str, kind: str
) -> tuple[FrameBound, int]:
    """Return a bound of a frame; of RANGE, -1 and 1 are a distance before and after the row."""
    value = node.args.get(which)
    side = str(node.args.get(f"{which}_side") or "").upper()
    word = value.upper() if isinstance(value, str) else ""
    if word == "CURRENT ROW":
        return FrameBound.CURRENT, 0
    if word == "UNBOUNDED":
        if side != ("PRECEDING" if which == "start" else "FOLLOWING"):
            raise context.session.error("C1316", "The frame is empty.", node, "swap its ends")
        return FrameBound.UNBOUNDED, 0
    distance = context.bind(value) if isinstance(value, exp.Expr) else None
    number = distance.value if isinstance(distance, ConstantValue) else None
    if kind == "RANGE":
        number = 0 if number == 0 else 1
    if not isinstance(number, int):
        raise context.session.error(
            "C1316", "The frame needs literal numbers.", node, "write a number"
        )
    offset = -number if side == "PRECEDING" else number
    return (FrameBound.OFFSET, offset) if offset else (FrameBound.CURRENT, 0)
