"""Window functions as SQL, with the order of rows that are equal in theirs written out.

Rows are ordered by all columns where the order of a window leaves them equal. As these columns
would tell peers apart, frames that end with peers are written in other words where a row is chosen:

| value, by the frame RANGE … | window, ordered by all columns |
|---|---|
| `first_value`, from the start | from the start to the row |
| `last_value`, to the end | from the row to the end |
| the same from or to the peers | the same, where the peers are a partition |
| `nth_value`, from the start to the peers | of the partition, if it is not after the peers |
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core import windows
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.logic import OrderColumn, RowFrame, WindowFunction, Windowing
from corollary.core.types import NUMBER, Type
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import NotExactError, SqlDialect
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.query_frames import aggregate_form, count_rows

AGGREGATE_CALLS = ("COUNT", "MIN", "MAX", "SUM")


def window_call(
    function: WindowFunction,
    windowing: Windowing,
    columns: Sequence[Node],
    called: Node | None = None,
) -> Node:
    """Return a window function of the rows with some columns.

    Args:
        function: which one.
        windowing: has partition and order.
        columns: those of the rows.
        called: an aggregate of them, if its form is not the plain one.

    Raises:
        NotExactError: it has no form.
    """
    frame, name = function.frame, function.name
    if name in HOLISTIC:
        raise NotExactError(f"`{name}` over a window has no exact form in SQL")
    if function.ignores_nulls or (frame is not None and (frame.first, frame.last) != (None, None)):
        raise NotExactError("IGNORE NULLS, and RANGE with a distance, have no exact form in SQL")
    if name == "nth_value" and frame == windows.RUNNING:
        counted = window_call(WindowFunction("count", (), windows.RUNNING), windowing, columns)
        number = exp.Literal.number(function.distance)
        whole = window_call(replace(function, frame=windows.WHOLE), windowing, columns)
        return nodes.case((nodes.binary(exp.GTE, counted, number), whole))
    arguments = [columns[at].copy() for at in function.arguments]
    if name in (*windows.NEIGHBOURS, "nth_value"):
        arguments.insert(1, exp.Literal.number(function.distance))
    if called is None:
        called = count_rows() if name == "count" and not arguments else nodes.call(name, *arguments)
    partition, order = list(windowing.partition), list(windowing.order)
    if frame is not None and not frame.is_rows and name in windows.FRAMED_VALUES:
        frame, is_of_peers = _frame_of_rows(function, frame)
        if is_of_peers:
            partition += [each.column for each in order]
            order = []
    if windows.tells_peers_apart(function):
        known = {*partition, *(each.column for each in order)}
        rest = [at for at in range(len(columns)) if at not in known]
        order += [OrderColumn(at, False, True) for at in rest]
        order = order or [OrderColumn(0, False, True)]  # a row that is alone
    return exp.Window(
        this=called,
        partition_by=[columns[at].copy() for at in partition],
        order=exp.Order(expressions=[_ordered(columns, each) for each in order]) if order else None,
        spec=None if frame is None or not order else _window_spec(frame),
    )


def _frame_of_rows(function: WindowFunction, frame: RowFrame) -> tuple[RowFrame, bool]:
    """Return a frame of rows that has the same chosen row, and whether peers are its partition."""
    if function.name == "first_value":
        return RowFrame(True, None, 0), frame.start is not None
    if function.name == "last_value":
        return RowFrame(True, 0, None), frame.end is not None
    if frame.start != frame.end:
        raise NotExactError("`nth_value` from the peers of a row on has no exact form in SQL")
    return RowFrame(True, None, None), frame.start is not None


def _ordered(columns: Sequence[Node], each: OrderColumn) -> Node:
    return exp.Ordered(
        this=columns[each.column].copy(), desc=each.is_descending, nulls_first=each.nulls_first
    )


def _window_spec(frame: RowFrame) -> exp.WindowSpec:
    parts: dict[str, object] = {"kind": "ROWS" if frame.is_rows else "RANGE"}
    sides = (("start", frame.start, "PRECEDING"), ("end", frame.end, "FOLLOWING"))
    for name, offset, unbounded in sides:
        if offset is None:
            parts |= {name: "UNBOUNDED", f"{name}_side": unbounded}
        elif not offset:
            parts[name] = "CURRENT ROW"
        else:
            side = "PRECEDING" if offset < 0 else "FOLLOWING"
            parts |= {name: exp.Literal.number(abs(offset)), f"{name}_side": side}
    return exp.WindowSpec(**parts)


def exact_window(
    function: WindowFunction,
    windowing: Windowing,
    columns: Sequence[tuple[Node, Type]],
    result: Type,
    dialect: SqlDialect,
) -> Node:
    """Return a window function of rows with some columns, exactly as the local engine computes it.

    Raises:
        NotExactError: it has no form.
    """
    rows, frame = [column for column, _ in columns], function.frame
    if frame is not None and frame.start is not None and frame.end is not None:
        if frame.start > frame.end:
            raise NotExactError("a frame that ends before it begins has no form in SQL")
    elif frame is None and not (windowing.order or windows.tells_peers_apart(function)):
        return nodes.integer(1, dialect.type_name(NUMBER))  # all rows are peers
    match function.name:
        case "sum" | "min" | "max":
            column, source = columns[function.arguments[0]]
            form = aggregate_form(function.name, source, dialect)
            value, inexact = form(column, source, result)
            if inexact is not None:
                raise NotExactError(f"`{function.name}` of {source} has no exact form in SQL")

            def window(node: Node) -> Node:
                if isinstance(node, exp.Anonymous) and node.this in AGGREGATE_CALLS:
                    return window_call(function, windowing, rows, node)
                return node

            return value.transform(window)
        case "count" if function.arguments:
            one = nodes.integer(1, dialect.type_name(NUMBER))
            test = nodes.every(*(nodes.is_present(rows[at]) for at in function.arguments))
            counted = nodes.call("COUNT", nodes.case((test, one)))
            return window_call(function, windowing, rows, counted)
        case _:
            return window_call(function, windowing, rows)
