"""Windows: the rows become a relation, and each of them gets its values in a rule of its own.

    v.join1(F, k) := body, k = range(0, n).                              each copy is a row
    v.window1(F, k, r) := v.join1(F, k), r = window("rank() over (…)", F).

Columns of `v.join1` are in the order of FROM: by all of them in turn, rows are ordered that the
order of a window leaves equal. Where it leaves none, those that nothing needs are left out.
"""

from collections.abc import Sequence
from dataclasses import replace

from corollary.core import logic, windows
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.bodies import NULL, RuleBody
from corollary.frontends.sql.lowering.context import ViewLowering
from corollary.frontends.sql.lowering.grouping import ZERO, mean_of, sum_type


@dataclass(frozen=True, slots=True)
class _Call:
    """A window function, its parts as variables of the rows."""

    call: tree.WindowCall
    arguments: tuple[logic.Variable, ...]
    partition: tuple[logic.Variable, ...]
    order: tuple[logic.Variable, ...]
    bounds: tuple[logic.Variable | None, ...]


def add_windows(lowering: ViewLowering, select: tree.Select, body: RuleBody) -> None:
    """Add the values of all window functions of a select list to a body, as known terms."""

    def bound(expression: tree.Expression, hint: str) -> logic.Variable:
        term = lowering.term(expression, body)
        return lowering.draft.resolve(body.bind(hint, term, expression.type))

    calls = [
        _Call(
            call,
            tuple(bound(each, "value") for each in _column_arguments(call)),
            tuple(bound(each, "part") for each in call.partition),
            tuple(bound(each.expression, "place") for each in call.order),
            tuple(None if each is None else bound(each, "bound") for each in _bounds(call)),
        )
        for call in tree.calls_in(select.columns, tree.WindowCall)
        if isinstance(call, tree.WindowCall)
    ]
    rows = WindowedRows(lowering, body)
    values = [rows.value(call) for call in calls]
    columns = [
        term
        for number in body.sources
        for term in lowering.columns[number]
        if any(rows.has_ties(call) for call in calls)
    ]
    rows.emit(columns)
    for call, value in zip(calls, values, strict=True):
        body.terms[call.call] = value


def _bounds(call: tree.WindowCall) -> tuple[tree.Expression | None, tree.Expression | None]:
    frame = call.frame
    return (None, None) if frame is None else (frame.first, frame.last)


def _column_arguments(call: tree.WindowCall) -> tuple[tree.Expression, ...]:
    """Return the arguments that are values of rows; distances are numbers."""
    if call.name not in (*windows.NEIGHBOURS, *windows.FRAMED_VALUES):
        return call.arguments
    value, *rest = call.arguments
    return (value, *(each for each in rest[1:] if not _is_null(each)))


def _is_null(expression: tree.Expression) -> bool:
    return isinstance(expression, tree.ConstantValue) and expression.value is None


class WindowedRows:
    """The rows of a body, and the window functions over them."""

    def __init__(self, lowering: ViewLowering, body: RuleBody) -> None:
        self.lowering, self.body = lowering, body
        self.draft = lowering.draft
        self._functions: dict[tuple[str, tuple[logic.Variable, ...]], logic.Variable] = {}

    # --- functions -------------------------------------------------------------------------------

    def value(self, call: _Call) -> logic.Term:
        """Return the value of a window function in each row."""
        name, type_ = call.call.name, call.call.type
        if name in windows.RANKS:
            return self._add(call, logic.WindowFunction(name), NUMBER)
        if name in windows.NEIGHBOURS:
            distance = tree.constant_of(call.call.arguments[1])
            assert isinstance(distance, int), "the binder asks for a literal"
            name, distance = _forward(name, distance)
            columns = tuple(range(len(call.arguments)))
            ignores_nulls = call.call.ignores_nulls
            function = logic.WindowFunction(name, columns, None, distance, ignores_nulls)
            return self._add(call, function, type_)
        frame = _frame(call.call)
        if name in windows.FRAMED_VALUES:
            distance = tree.constant_of(call.call.arguments[1]) if name == "nth_value" else 1
            assert isinstance(distance, int), "the binder asks for a literal"
            function = logic.WindowFunction(name, (0,), frame, distance, call.call.ignores_nulls)
            return self._add(call, function, type_)
        if name in HOLISTIC:
            every, parameters = tuple(range(len(call.arguments))), call.call.parameters
            function = logic.WindowFunction(name, every, frame, parameters=parameters)
            return self._add(call, function, type_.with_null(nullable=True))
        if name in ("min", "max"):
            return self._add(call, logic.WindowFunction(name, (0,), frame), type_)
        nullable = [each for each in call.arguments if self.body.is_nullable(each)]
        counted = tuple(range(len(call.arguments))) if nullable else ()
        count = logic.WindowFunction("count", counted, frame)
        if name == "count":
            return self._add(call, count, NUMBER)
        source = call.call.arguments[0].type
        total = self._add(call, logic.WindowFunction("sum", (0,), frame), sum_type(source))
        if name == "sum" and not type_.nullable:
            return total
        number = self._add(call, count, NUMBER)
        value = total if name == "sum" else mean_of(total, number, source, type_)
        if not type_.nullable:
            return value
        return logic.Functor("if", (logic.Functor("gt", (number, ZERO)), value, NULL), type_)

    def _add(self, call: _Call, function: logic.WindowFunction, type_: Type) -> logic.Variable:
        """Return the variable of a function's value; equal functions have one."""
        order = [
            (variable, item.is_descending, item.nulls_first)
            for variable, item in zip(call.order, call.call.order, strict=True)
        ]
        arguments = [call.arguments[at] for at in function.arguments]
        return self.add(function, arguments, call.partition, order, type_, bounds=call.bounds)

    def add(
        self,
        function: logic.WindowFunction,
        arguments: Sequence[logic.Variable],
        partition: Sequence[logic.Variable],
        order: Sequence[tuple[logic.Variable, bool, bool]],
        type_: Type,
        *,
        bounds: Sequence[logic.Variable | None] = (),
    ) -> logic.Variable:
        """Return the variable of a function's value.

        Args:
            function: its name, frame and distance.
            arguments: the variables of its arguments.
            partition: those that rows of a partition agree on, but for outer ones.
            order: those that rows are ordered by, whether descending, whether nulls come first.
            type_: of the value.
            bounds: those that have the values of the order where the frame begins and ends.
        """
        outer = tuple(self.body.outer)
        limits = tuple(each for each in bounds if each is not None)
        terms = (*arguments, *outer, *partition, *(variable for variable, _, _ in order), *limits)
        given = tuple(dict.fromkeys(self.draft.resolve(each) for each in terms))
        at = {each.name: number for number, each in enumerate(given)}

        def place(variable: logic.Variable) -> int:
            return at[self.draft.resolve(variable).name]

        frame = function.frame
        if frame is not None and limits:
            first, last = (None if each is None else place(each) for each in bounds)
            frame = replace(frame, first=first, last=last)
        window = windows.WindowExpression(
            replace(function, arguments=tuple(map(place, arguments)), frame=frame),
            tuple(map(place, (*outer, *partition))),
            tuple(logic.OrderColumn(place(each), *how) for each, *how in order),
        )
        key = windows.print_window(window), given
        if key not in self._functions:
            self._functions[key] = self.draft.variable(function.name, type_)
        return self._functions[key]

    def has_ties(self, call: _Call) -> bool:
        """Whether rows that are equal in partition and order may differ in their values."""
        function = logic.WindowFunction(call.call.name, (), self._framed(call.call))
        is_ordered = bool(call.order) or call.call.name not in windows.ORDERED_AGGREGATES
        if not (is_ordered and windows.tells_peers_apart(function)):
            return False
        names = {each.name for each in (*call.partition, *call.order, *self.body.outer)}
        witnesses = {each.name for each in self.body.witnesses}
        return bool(self.body.counts) or not self.body.known.determines(names, witnesses)

    def _framed(self, call: tree.WindowCall) -> logic.RowFrame | None:
        is_framed = call.name in (*windows.FRAMED_AGGREGATES, *windows.FRAMED_VALUES, "avg")
        return _frame(call) if is_framed else None

    # --- rules -----------------------------------------------------------------------------------

    def emit(self, columns: Sequence[logic.Term]) -> None:
        """Make the relations of the rows and of their values; the body is a literal of the latter.

        Args:
            columns: those that order rows which the windows leave equal.
        """
        body, draft = self.body, self.draft
        self._number_copies()
        used = [each for source in body.sources for each in self.lowering.used_columns(source)]
        row = self._only_literal([*columns, *used])
        if row is None:
            self.lowering.cut(body, columns or used, storage=draft.storage)
            (item,) = body.items
            assert isinstance(item, logic.Atom)
            row = item
        variables = [each for each in row.arguments if isinstance(each, logic.Variable)]
        values = list(self._functions.values())
        name = draft.relation("window")
        types = [
            (draft.hint(each), body.column_type(each, each.type or NUMBER)) for each in variables
        ]
        draft.declare(name, [*types, *draft.columns_of(values)])
        equations = [
            logic.Comparison(
                "is", value, logic.Functor(windows.WINDOW, (logic.Constant(text), *given))
            )
            for (text, given), value in self._functions.items()
        ]
        draft.add(name, [*variables, *values], [row, *equations], is_whole=True)
        body.items[:] = [logic.Atom(name, (*variables, *values))]
        body.values += values
        known = {each.name for each in variables}
        body.known.add(known, {each.name for each in values})
        body.known.add(
            {each.name for each in (*body.outer, *body.witnesses)}, {each.name for each in values}
        )
        body.known.not_null |= {
            each.name for each in values if each.type and not each.type.nullable
        }

    def _only_literal(self, columns: Sequence[logic.Term]) -> logic.Atom | None:
        """Return the literal that the body is, if it has just the columns that are needed."""
        body = self.body
        items = list(self.draft.plain_items(body.all_items()))
        if len(items) != 1 or not isinstance(items[0], logic.Atom):
            return None
        resolve = self.draft.resolve
        needed = {resolve(each).name for each in (*body.outer, *body.visible(columns))}
        names = [each.name for each in items[0].arguments if isinstance(each, logic.Variable)]
        if len(names) != len(items[0].arguments) or sorted(names) != sorted(needed):
            return None
        typed = {resolve(each).name: each for each in (*body.visible(columns), *body.outer)}
        return replace(items[0], arguments=tuple(typed[name] for name in names))

    def _number_copies(self) -> None:
        """Let each copy of a row be a row, told apart by its number."""
        body = self.body
        count = body.count_term()
        if count is None:
            return
        number = self.draft.variable("copy", NUMBER)
        body.items.append(logic.Comparison("=", number, logic.Functor("range", (ZERO, count))))
        body.known.not_null.add(number.name)
        body.counts.clear()
        body.witnesses.append(number)


def _forward(name: str, distance: int) -> tuple[str, int]:
    """Return a neighbour at a distance that is not negative."""
    if distance >= 0:
        return name, distance
    return ("lead" if name == "lag" else "lag"), -distance


def _frame(call: tree.WindowCall) -> logic.RowFrame:
    frame: tree.WindowFrame | None = call.frame
    if not call.order:
        return windows.WHOLE
    if frame is None:
        return windows.RUNNING
    start = None if frame.start is tree.FrameBound.UNBOUNDED else frame.start_offset
    end = None if frame.end is tree.FrameBound.UNBOUNDED else frame.end_offset
    if start is None and end is None:
        return windows.WHOLE
    return logic.RowFrame(frame.is_rows, start, end)
