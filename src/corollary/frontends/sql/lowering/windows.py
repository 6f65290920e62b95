"""Windows: aggregates over the partition of a row, or over its rows before.

The rows become a relation, `v.join1(F, n)`. A window without order is a grouping of it, joined to
its rows. With an order, it aggregates the rows of the partition that come before (and peers):

    v.rank1(P, X, b) := v.join1(…), b = sum n : { v.join1(…, n), before }.         RANK is b + 1

Where partition and order tell the rows apart, the rank is the number of a row: `v.numbered1`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corollary.core.logic import (
    AggregateTerm,
    Atom,
    BodyItem,
    Comparison,
    Constant,
    Disjunction,
    Functor,
    Negation,
    Term,
    Variable,
    Wildcard,
)
from corollary.core.types import NUMBER
from corollary.frontends.sql.lowering.blocks import ResultColumn
from corollary.frontends.sql.lowering.bodies import NULL, ONE, RuleBody
from corollary.frontends.sql.lowering.context import ViewLowering, refuse
from corollary.frontends.sql.lowering.grouping import AGGREGATES, Groups
from corollary.frontends.sql.lowering.top_rows import OrderTerm, before
from corollary.frontends.sql.lowering.tree_walk import calls_in, constant_of
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    Expression,
    FrameBound,
    Select,
    WindowCall,
    WindowFrame,
)

RANKS = ("rank", "dense_rank", "row_number")
NEIGHBOURS = ("lag", "lead")


@dataclass(frozen=True, slots=True)
class _Window:
    """A window function, its parts as variables of the rows."""

    call: WindowCall
    arguments: tuple[Variable, ...]
    partition: tuple[Variable, ...]
    order: tuple[Variable, ...]

    @property
    def keys(self) -> tuple[Variable, ...]:
        """The variables of partition and order."""
        return tuple(dict.fromkeys((*self.partition, *self.order)))


def add_windows(lowering: ViewLowering, select: Select, relation: str, body: RuleBody) -> None:
    """Add the values of all window functions of a select list to a body, as known terms."""

    def bound(expression: Expression, hint: str) -> Variable:
        term = lowering.term(expression, body)
        return lowering.draft.resolve(body.bind(hint, term, expression.type))

    windows = [
        _Window(
            call,
            tuple(bound(each, "value") for each in call.arguments),
            tuple(bound(each, "part") for each in call.partition),
            tuple(bound(each.expression, "place") for each in call.order),
        )
        for call in calls_in(select.columns, WindowCall)
        if isinstance(call, WindowCall)
    ]
    lowering.cut(body)
    (atom,) = body.items
    assert isinstance(atom, Atom)
    rows = _Rows(lowering, relation, body, atom)
    for window in windows:
        body.terms[window.call] = rows.value(window)


class _Rows:
    """The rows that windows are computed over: a relation, all of whose columns are variables."""

    def __init__(self, lowering: ViewLowering, relation: str, body: RuleBody, atom: Atom) -> None:
        self.lowering, self.relation, self.body, self.row = lowering, relation, body, atom
        self.draft = lowering.draft
        self._numbered: dict[object, Atom] = {}

    def value(self, window: _Window) -> Term:
        """Return the value of a window function in each row."""
        call = window.call
        if call.name in AGGREGATES:
            return self._aggregate(window)
        if call.name in RANKS:
            if call.name == "row_number":
                self._check_total(window)
            number = self._rank(window, is_dense=call.name == "dense_rank")
            return Functor("+", (number, ONE), call.type)
        if call.name in NEIGHBOURS:
            self._check_total(window)
            return self._neighbour(window)
        raise refuse(
            "C1342",
            f"The window function `{call.name}` cannot be maintained.",
            call.span,
            "use an aggregate, `rank`, `dense_rank`, `row_number`, `lag` or `lead`",
        )

    def _check_total(self, window: _Window) -> None:
        names = {each.name for each in (*window.keys, *self.body.outer)}
        witnesses = {each.name for each in self.body.witnesses}
        if self.body.counts or not self.body.known.determines(names, witnesses):
            raise refuse(
                "C1343",
                f"`{window.call.name}` is not defined: rows may be equal in partition and order.",
                window.call.span,
                "add the columns of a key to `ORDER BY`",
            )

    # --- rows ------------------------------------------------------------------------------------

    def _other(self, shared: Sequence[Variable]) -> dict[str, Variable]:
        """Return new variables for another row, with the same values in some columns."""
        kept = {each.name for each in (*shared, *self.body.outer)}
        return {
            each.name: each
            if each.name in kept
            else self.draft.variable(self.draft.hint(each), each.type or NUMBER)
            for each in self.row.arguments
            if isinstance(each, Variable)
        }

    def _atom(self, variables: Mapping[str, Variable]) -> Atom:
        return Atom(
            self.row.relation,
            tuple(
                variables[each.name] for each in self.row.arguments if isinstance(each, Variable)
            ),
        )

    def _body_of(self, variables: Mapping[str, Variable], *items: BodyItem) -> RuleBody:
        """Return a body whose rows are other rows."""
        body = self.body.empty_copy(is_set=False)
        resolve = self.draft.resolve
        body.items = [self._atom(variables), *items]
        body.counts = [variables[resolve(each).name] for each in self.body.counts]
        body.witnesses = [variables[resolve(each).name] for each in self.body.witnesses]
        for name, variable in variables.items():
            is_null = self.body.is_nullable(Variable(name, variable.type))
            (body.padded if is_null else body.known.not_null).add(variable.name)
        return body

    def _before(
        self, window: _Window, others: Mapping[str, Variable], *, or_equal: bool
    ) -> list[BodyItem]:
        terms: list[OrderTerm] = [
            (others[variable.name], variable, item.is_descending, item.nulls_first)
            for variable, item in zip(window.order, window.call.order, strict=True)
        ]
        found = before(terms, self.body, or_equal=or_equal)
        return list(found[0]) if len(found) == 1 else [Disjunction(found)]

    def _declare(self, label: str, variables: Sequence[Variable]) -> str:
        name = self.draft.relation(label)
        types = [
            (self.draft.hint(each), self.body.column_type(each, each.type or NUMBER))
            for each in variables
        ]
        self.draft.declare(name, types)
        return name

    def _places(self, window: _Window) -> Atom:
        """Return a literal of the different values of partition and order."""
        keys = (*self.body.outer, *window.keys)
        name = self._declare("places", keys)
        self.draft.add(name, keys, [self.row])
        return Atom(name, keys)

    # --- ranks -----------------------------------------------------------------------------------

    def _rank(self, window: _Window, *, is_dense: bool) -> Variable:
        """Return the number of rows (or of different places) before a row."""
        others = self._other(window.partition)
        earlier = self._before(window, others, or_equal=False)
        number = self.draft.variable("before", NUMBER)
        if is_dense:
            places = self._places(window)
            keys = (*self.body.outer, *window.keys)
            renamed = tuple(others.get(each.name, each) for each in keys)
            total = AggregateTerm("count", None, (Atom(places.relation, renamed), *earlier))
        else:
            rows = self._body_of(others)
            copies = rows.count_term()
            items = (self._atom(others), *earlier)
            total = (
                AggregateTerm("count", None, items)
                if copies is None
                else AggregateTerm("sum", copies, items)
            )
        keys = (*self.body.outer, *window.keys)
        name = self._declare("rank", (*keys, number))
        self.draft.add(name, (*keys, number), [self.row, Comparison("=", number, total)])
        self.body.items.append(Atom(name, (*keys, number)))
        self._note(number, window.keys)
        return number

    def _note(self, number: Variable, keys: Sequence[Variable]) -> None:
        self.body.values.append(number)
        self.body.known.not_null.add(number.name)
        self.body.known.add({each.name for each in (*self.body.outer, *keys)}, {number.name})

    def _number(self, window: _Window) -> tuple[str, Variable]:
        """Return a relation of the rows with their number first, and the number of this row."""
        call = window.call
        key = window.partition, window.order, call.order
        if key not in self._numbered:
            number = self._rank(window, is_dense=False)
            arguments = (number, *self.row.arguments)
            variables = [each for each in arguments if isinstance(each, Variable)]
            name = self._declare("numbered", variables)
            self.draft.add(name, variables, [self.row, self.body.items[-1]])
            self._numbered[key] = Atom(name, arguments)
        atom = self._numbered[key]
        first = atom.arguments[0]
        assert isinstance(first, Variable)
        return atom.relation, first

    # --- aggregates ------------------------------------------------------------------------------

    def _aggregate(self, window: _Window) -> Term:
        frame = window.call.frame
        if not window.order or _is_whole(frame):
            others = self._other(())
            return self._grouped(window, self._body_of(others), others, window.partition)
        if frame is not None and frame.is_rows:
            self._check_total(window)
            if not _is_running(frame):
                return self._framed(window, frame)
        elif frame is not None and not _is_running(frame):
            raise refuse(
                "C1344",
                "A frame of `RANGE` with an offset or after the current row cannot be maintained.",
                window.call.span,
                "use `ROWS`, or the frame from the first row of the partition to the current row",
            )
        others = self._other(window.partition)
        places = self._places(window)
        rows = self._body_of(others, places, *self._before(window, others, or_equal=True))
        rows.take_nulls(window.keys, self.body)
        this = {each.name: each for each in window.keys}
        return self._grouped(window, rows, {**others, **this}, window.keys, values=others)

    def _grouped(
        self,
        window: _Window,
        rows: RuleBody,
        variables: Mapping[str, Variable],
        keys: Sequence[Variable],
        *,
        values: Mapping[str, Variable] | None = None,
        may_be_empty: bool = False,
    ) -> Term:
        """Return the value of an aggregate over rows, by keys that this row has."""
        call = window.call
        aggregate = AggregateCall(call.name, call.arguments, call.type, span=call.span)
        for expression, variable in zip(call.arguments, window.arguments, strict=True):
            rows.terms[expression] = (values or variables)[variable.name]
        columns = [
            ResultColumn(self.draft.hint(each), variables[each.name], each.type or NUMBER)
            for each in keys
        ]
        groups = Groups(
            self.lowering, self.draft.relation("window"), rows, columns, may_be_empty=may_be_empty
        )
        groups.add(aggregate)
        literal = groups.to_relation()
        atom = Atom(literal.relation, (*self.body.outer, *keys, *groups.totals))
        if may_be_empty:
            self.body.choose(groups.alternatives(atom), self.lowering.cut, groups.totals)
        else:
            self.body.items.append(atom)
            self.body.values += groups.totals
        groups.note_totals(self.body)
        given = {each.name for each in (*self.body.outer, *keys)}
        self.body.known.add(given, {each.name for each in groups.totals})
        return groups.terms[aggregate]

    def _framed(self, window: _Window, frame: WindowFrame) -> Term:
        """Return the value of an aggregate over rows with near numbers."""
        relation, number = self._number(window)
        others = self._other(window.partition)
        place = self.draft.variable("place", NUMBER)
        this = Atom(
            relation,
            (
                number,
                *(
                    each if each in (*window.partition, *self.body.outer) else Wildcard()
                    for each in self.row.arguments
                ),
            ),
        )
        rows = self._body_of(others, this)
        rows.items[0] = Atom(relation, (place, *self._atom(others).arguments))
        if frame.start is not FrameBound.UNBOUNDED:
            first = Functor("+", (number, Constant(frame.start_offset)))
            rows.items.append(Comparison(">=", place, first))
        if frame.end is not FrameBound.UNBOUNDED:
            last = Functor("+", (number, Constant(frame.end_offset)))
            rows.items.append(Comparison("<=", place, last))
        rows.known.not_null |= {number.name, place.name}
        rows.take_nulls(window.partition, self.body)
        keys = (*window.partition, number)
        variables = {**others, **{each.name: each for each in keys}}
        return self._grouped(window, rows, variables, keys, values=others, may_be_empty=True)

    # --- LAG, LEAD -------------------------------------------------------------------------------

    def _neighbour(self, window: _Window) -> Term:
        call = window.call
        relation, number = self._number(window)
        distance = constant_of(call.arguments[1]) if len(call.arguments) > 1 else 1
        assert isinstance(distance, int), "the binder asks for a literal"
        if call.name == "lag":
            distance = -distance
        place = self.draft.variable("place", NUMBER)
        result = self.draft.variable(call.name, call.type.with_null(nullable=True))
        others = self._other(window.partition)
        (value, *rest) = window.arguments
        others[value.name] = result if value not in window.partition else value
        there = Atom(relation, (place, *self._atom(others).arguments))
        kept = (*window.partition, *self.body.outer)
        wild = tuple(each if each in kept else Wildcard() for each in self.row.arguments)
        default: Term = rest[1] if len(rest) > 1 else NULL
        found: list[BodyItem] = [there]
        if value in window.partition:
            found.append(Comparison("is", result, value))
        missing: list[BodyItem] = [
            Negation(Atom(relation, (place, *wild))),
            Comparison("is", result, default),
        ]
        step = Comparison("=", place, Functor("+", (number, Constant(distance))))
        self.body.items.append(step)
        self.body.values.append(place)
        self.body.choose([found, missing], self.lowering.cut, [result])
        self.body.known.add({each.name for each in (*kept, number)}, {result.name})
        return result


def _is_whole(frame: WindowFrame | None) -> bool:
    return (
        frame is not None
        and frame.start is FrameBound.UNBOUNDED
        and frame.end is FrameBound.UNBOUNDED
    )


def _is_running(frame: WindowFrame) -> bool:
    """Whether a frame goes from the first row of the partition to the current one."""
    return frame.start is FrameBound.UNBOUNDED and frame.end is FrameBound.CURRENT
