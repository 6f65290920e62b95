"""Window functions as rules write them: `r = window("rank() over (order by $1 desc)", x)`.

The text is that of SQL, with `$1`, `$2`, … for the terms that follow it. A rule with windows has
one literal, and a head with all its variables, then the values:

    ranked(x, y, r) :- p(x, y), r = window("rank() over (partition by $1 order by $2)", x, y).
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from corollary.core.functors.holistic import HOLISTIC
from corollary.core.logic import (
    Clause,
    Comparison,
    Constant,
    Functor,
    OrderColumn,
    RowFrame,
    WindowFunction,
    Windowing,
    applies_functor,
)
from corollary.data_class import dataclass

WINDOW = "window"
"""The functor; its first argument is the text."""

RANKS = ("rank", "dense_rank", "row_number")
NEIGHBOURS = ("lag", "lead")
FRAMED_VALUES = ("first_value", "last_value", "nth_value")
FRAMED_AGGREGATES = ("count", "sum", "min", "max", *HOLISTIC)
ORDERED_AGGREGATES = ("collect_list", "listagg", "max_by", "min_by")
"""Those whose value depends on the order of a window, if it has one."""
WINDOW_FUNCTIONS = (*RANKS, *NEIGHBOURS, *FRAMED_VALUES, *FRAMED_AGGREGATES)

WHOLE = RowFrame(is_rows=False, start=None, end=None)
RUNNING = RowFrame(is_rows=False, start=None, end=0)
"""The frame of SQL where there is an order, and none is written."""


@dataclass(frozen=True, slots=True)
class WindowExpression:
    """A window function; its columns are the numbers of terms, from 0."""

    function: WindowFunction
    partition: tuple[int, ...]
    order: tuple[OrderColumn, ...]

    def renumbered(self, place: Callable[[int], int]) -> "WindowExpression":
        """Return the window over columns with other numbers."""
        frame = self.function.frame
        if frame is not None:
            first, last = (None if at is None else place(at) for at in (frame.first, frame.last))
            frame = replace(frame, first=first, last=last)
        arguments = tuple(map(place, self.function.arguments))
        return WindowExpression(
            replace(self.function, arguments=arguments, frame=frame),
            tuple(dict.fromkeys(map(place, self.partition))),
            tuple(replace(each, column=place(each.column)) for each in self.order),
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are read."""
        frame, ordered = self.function.frame, (each.column for each in self.order)
        bounds = () if frame is None else (frame.first, frame.last)
        given = (at for at in bounds if at is not None)
        return (*self.function.arguments, *self.partition, *ordered, *given)


_ARGUMENT = r'(\$[1-9]\d*|[-+.\w]+|"([^"\\]|\\.)*")'
_TERM = r"\$\d+( desc)?( nulls first| nulls last)?"
_TEXT = re.compile(
    rf"(?P<name>\w+)\((?P<arguments>({_ARGUMENT}( *, *{_ARGUMENT})*)?)\)"
    r"(?P<skips> ignore nulls)? over \("
    r"(partition by (?P<partition>\$\d+(, \$\d+)*))? ?"
    rf"(order by (?P<order>{_TERM}(, {_TERM})*))? ?"
    r"((?P<kind>rows|range) between (?P<start>[$\w ]+) and (?P<end>[$\w ]+))?\)"
)
_ORDER = re.compile(r"\$(\d+)( desc)?( nulls first| nulls last)?")


def parse_window(text: str) -> WindowExpression | None:
    """Return the window that a text says; None if it says none. Null is the least value.

    >>> found = parse_window("lag($1, 2) over (partition by $2 order by $3 desc)")
    >>> found.function.distance, found.partition, found.order[0].is_descending
    (2, (1,), True)
    >>> print_window(found)
    'lag($1, 2) over (partition by $2 order by $3 desc nulls last)'
    """
    found = _TEXT.fullmatch(text)
    if found is None or found["name"] not in WINDOW_FUNCTIONS:
        return None
    name, texts = found["name"], [each[0] for each in re.findall(_ARGUMENT, found["arguments"])]
    columns = tuple(int(each[1:]) - 1 for each in texts if each[0] == "$")
    try:
        values = tuple(json.loads(each) for each in texts if each[0] != "$")
    except ValueError:
        return None
    is_holistic = name in HOLISTIC
    if is_holistic and (len(columns), len(values)) != (
        HOLISTIC[name].columns,
        HOLISTIC[name].parameters,
    ):
        return None
    if not is_holistic and (len(values) > 1 or not all(type(each) is int for each in values)):
        return None
    partition = tuple(int(each) - 1 for each in re.findall(r"\$(\d+)", found["partition"] or ""))
    order = tuple(
        OrderColumn(int(number) - 1, bool(down), nulls == " nulls first" if nulls else not down)
        for number, down, nulls in _ORDER.findall(found["order"] or "")
    )
    frame = _parse_frame(found, has_order=bool(order))
    if frame is None:
        return None
    has_frame = name in (*FRAMED_VALUES, *FRAMED_AGGREGATES)
    function = WindowFunction(
        name,
        columns,
        frame if has_frame else None,
        values[0] if values and not is_holistic else 1,
        found["skips"] is not None,
        values if is_holistic else (),
    )
    return WindowExpression(function, partition, order)


def _parse_frame(found: "re.Match[str]", *, has_order: bool) -> RowFrame | None:
    if found["kind"] is None:
        return RUNNING if has_order else WHOLE
    bounds: list[int | None] = []
    columns: list[int | None] = []
    for text, unbounded in ((found["start"], "preceding"), (found["end"], "following")):
        offset = re.fullmatch(r"(\$?)(\d+) (preceding|following)", text)
        columns.append(int(offset[2]) - 1 if offset is not None and offset[1] else None)
        if text == f"unbounded {unbounded}":
            bounds.append(None)
        elif text == "current row":
            bounds.append(0)
        elif offset is not None and bool(offset[1]) == (found["kind"] == "range"):
            distance = 1 if offset[1] else int(offset[2])
            bounds.append(-distance if offset[3] == "preceding" else distance)
        else:
            return None
    return RowFrame(found["kind"] == "rows", *bounds, *columns)


def print_window(window: WindowExpression) -> str:
    """Return the text of a window.

    >>> function = WindowFunction("sum", (0,), RowFrame(True, -2, 0))
    >>> print_window(WindowExpression(function, (), (OrderColumn(1),)))
    'sum($1) over (order by $2 nulls last rows between 2 preceding and current row)'
    """
    function = window.function
    arguments = [f"${at + 1}" for at in function.arguments]
    if function.name in (*NEIGHBOURS, "nth_value"):
        arguments.insert(1, str(function.distance))
    arguments += map(json.dumps, function.parameters)
    over = []
    if window.partition:
        over.append(f"partition by {', '.join(f'${at + 1}' for at in window.partition)}")
    if window.order:
        over.append(f"order by {', '.join(map(_print_order, window.order))}")
    frame = function.frame
    if frame is not None and frame != (RUNNING if window.order else WHOLE):
        kind = "rows" if frame.is_rows else "range"
        start = _print_bound(frame.start, "preceding", frame.first)
        end = _print_bound(frame.end, "following", frame.last)
        over.append(f"{kind} between {start} and {end}")
    skips = " ignore nulls" if function.ignores_nulls else ""
    return f"{function.name}({', '.join(arguments)}){skips} over ({' '.join(over)})"


def print_functions(windowing: Windowing) -> str:
    """Return the window functions of a relation, with the numbers of columns from 1."""
    windows = (
        WindowExpression(function, windowing.partition, windowing.order)
        for function in windowing.functions
    )
    texts = list(map(print_window, windows))
    if windowing.top is not None:
        at, most = windowing.top
        texts[at] += f" <= {most}"
    return ", ".join(texts)


def _print_order(each: OrderColumn) -> str:
    direction = " desc" if each.is_descending else ""
    return f"${each.column + 1}{direction} nulls {'first' if each.nulls_first else 'last'}"


def _print_bound(offset: int | None, unbounded: str, column: int | None) -> str:
    if offset is None:
        return f"unbounded {unbounded}"
    if not offset:
        return "current row"
    distance = abs(offset) if column is None else f"${column + 1}"
    return f"{distance} {'preceding' if offset < 0 else 'following'}"


def reach_of(function: WindowFunction) -> int | None:
    """Return how many rows before or after a row its value depends on; None without a bound."""
    frame = function.frame
    if function.name in NEIGHBOURS:
        return None if function.ignores_nulls else function.distance
    if frame is None or not frame.is_rows or frame.start is None or frame.end is None:
        return None
    return max(abs(frame.start), abs(frame.end))


def sees_rows_before(windowing: Windowing) -> bool:
    """Whether the values of a row depend on its peers and the rows before them only."""
    return all(
        function.name != "lead"
        if function.frame is None
        else function.frame.end is not None and function.frame.end <= 0
        for function in windowing.functions
    )


def is_running(function: WindowFunction) -> bool:
    """Whether a value is a total of all rows before a row and its peers, or before it."""
    if function.frame is None:
        return function.name in RANKS
    is_total = function.name in ("count", "sum") and len(function.arguments) < 2
    return is_total and function.frame.start is None and function.frame.end == 0


def arranging_order(windowing: Windowing, arity: int) -> tuple[int, ...]:
    """Return the columns of a body in the order of its windows: partition, order, all others."""
    columns = (*windowing.partition, *(each.column for each in windowing.order))
    return tuple(dict.fromkeys((*columns, *range(arity))))


def tells_peers_apart(function: WindowFunction) -> bool:
    """Whether the order of rows that are equal in the window's order matters."""
    if function.frame is None:
        return function.name not in ("rank", "dense_rank")
    is_chosen = function.name in (*FRAMED_VALUES, *ORDERED_AGGREGATES)
    return function.frame.is_rows or is_chosen


def window_of(term: object) -> WindowExpression | None:
    """Return the window that a term is; None for other terms, and for one without a right text."""
    match term:
        case Functor(name=name, arguments=(Constant(value=str(text)), *rest)) if name == WINDOW:
            found = parse_window(text)
            if found is None:
                return None
            return found if all(0 <= at < len(rest) for at in found.columns) else None
        case _:
            return None


def has_window(clause: Clause) -> bool:
    """Whether a clause applies a window function."""
    return applies_functor(clause, (WINDOW,))


def window_equations(clause: Clause) -> Iterator[Comparison]:
    """Yield the equations of a rule whose right sides are windows."""
    for item in clause.body:
        if isinstance(item, Comparison) and window_of(item.right) is not None:
            yield item


def may_be_null(term: Functor, arguments: Sequence[bool]) -> bool:
    """Whether a window function may be null, given which of the functor's arguments may be."""
    found = window_of(term)
    if found is None:
        return True
    function = found.function
    given = [arguments[1 + at] for at in function.arguments]
    if function.name in (*RANKS, "count", "sum"):
        return False
    if function.name in NEIGHBOURS:
        return given[0] or len(given) < 2 or given[1]
    is_chosen = function.name in FRAMED_VALUES
    is_there = function.name != "nth_value" and _has_current(function.frame)
    return any(given) or not is_there or not (is_chosen or function.name in ("min", "max"))


def _has_current(frame: RowFrame | None) -> bool:
    """Whether a row is always in its frame."""
    return frame is None or ((frame.start or 0) <= 0 <= (frame.end or 0))
