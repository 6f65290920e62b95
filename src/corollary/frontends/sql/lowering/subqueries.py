"""Queries in conditions and in place of values.

Each is a test (a projection, so that it holds once) or alternatives that exclude each other:

    EXISTS Q          q.some(O)
    a IN Q            q(O, a), a = a             NOT IN: !q.some(O, a), also where it is unknown
    a scalar Q        (q(O, r) ; !q(O, _), r is null)
"""

from corollary.core.functors.catalog import COMPARISON_OPERATORS, OPPOSITES
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
    Truth,
    Variable,
    Wildcard,
)
from corollary.core.types import BOOL, NUMBER, Kind, Type
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.bodies import FALSE, NULL, ONE, TRUE, RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering
from corollary.frontends.sql.lowering.draft import names_of
from corollary.frontends.sql.lowering.selects import single_row

MANY_ROWS = "a subquery in place of a value has more than one row"


def negated(item: Atom | Truth) -> Negation | Truth:
    """Return the opposite of a test."""
    return Truth(value=not item.value) if isinstance(item, Truth) else Negation(item)


# --- EXISTS --------------------------------------------------------------------------------------


def existence(lowering: ViewLowering, exists: tree.Exists, body: RuleBody) -> Atom | Truth:
    """Return the literal that says that a query has a row."""
    query = exists.query
    # An order, and a limit of one row or more, leave no row only where there was none.
    while isinstance(query, tree.Ordered) and not query.offset:
        if query.limit == 0:
            return Truth(value=False)
        query = query.query
    if isinstance(query, tree.Select) and _is_plain(query):
        # Its columns are not asked for, so that they are not computed.
        inner = lowering.inner_body(query, body, is_set=True)
        lowering.open_select(query, inner)
        return lowering.project(inner.outer, inner, "some", query.span)
    lowered = lowering.lower(query, body, is_set=True)
    return _projection(lowering, lowered)


def _is_plain(select: tree.Select) -> bool:
    return select.group_by is None and select.grouping_sets is None and select.having is None


def _projection(lowering: ViewLowering, lowered: LoweredQuery) -> Atom:
    """Return a literal that says that a query has a row, which holds once."""
    name = lowering.draft.relation("some")
    draft = lowering.draft
    draft.declare(name, draft.columns_of(lowered.outer))
    draft.add(name, lowered.outer, [lowered.some()])
    return Atom(name, lowered.outer)


# --- IN, ANY, ALL --------------------------------------------------------------------------------


class _Comparison:
    """`x < ANY Q`: the relation of the query, and the terms that are compared with its columns."""

    def __init__(self, lowering: ViewLowering, quantified: tree.Quantified, body: RuleBody) -> None:
        self.lowering, self.body, self.quantified = lowering, body, quantified
        comparison = quantified.comparison
        # `x < ALL Q` is true if `x >= y` is false for every row: neither true nor unknown.
        self.comparison = OPPOSITES[comparison] if quantified.is_all else comparison
        self.left: list[Variable | Constant] = []
        for expression in quantified.left:
            term = lowering.term(expression, body)
            if not isinstance(term, Variable | Constant):
                # It is compared in several rules, and computed once.
                term = body.bind("value", term, expression.type)
            self.left.append(term)
        self.lowered = lowering.lower(tree.without_order(quantified.query), body, is_set=True)
        self._tests: dict[bool, Atom] = {}

    @property
    def is_never_null(self) -> bool:
        """Whether no comparison is unknown."""
        is_left = any(self.body.is_nullable(each) for each in self.left)
        return not is_left and not any(type_.nullable for type_ in self.lowered.types)

    def holds(self) -> list[BodyItem]:
        """Return the items that say that the comparison is true for some row."""
        # Only an equality can be looked up; for all others, some row has to be found.
        if self.comparison != "eq":
            return [self.some(or_unknown=False)]
        if NULL in (Constant(each.value) for each in self.left if isinstance(each, Constant)):
            return [Truth(value=False)]
        types = self.lowered.types
        pairs = zip(self.left, types, strict=True)
        # In literals of views null joins null, in SQL it equals nothing.
        tests = [
            Comparison("=", term, term)
            for term, type_ in pairs
            if self.body.is_nullable(term) and type_.nullable
        ]
        return [self.lowered.atom(tuple(self.left)), *tests]

    def some(self, *, or_unknown: bool) -> Atom:
        """Return the literal that says that the comparison is true (or unknown) for some row."""
        if or_unknown in self._tests:
            return self._tests[or_unknown]
        draft, lowered = self.lowering.draft, self.lowered
        items = self._row_items(or_unknown=or_unknown)
        keys: dict[str, Variable] = {}
        for each in (*self.left, *lowered.outer):
            if isinstance(each, Variable):
                keys.setdefault(draft.resolve(each).name, each)
        test = RuleBody(draft, tuple(keys.values()), is_set=True, items=items)
        test.take_nulls(test.outer, self.body)
        # What a true comparison compares is not null.
        if not or_unknown:
            test.known.not_null |= names_of(*self.left)
        test.make_outer = lambda: self.lowering.project(test.outer, self.body, "of")
        self._tests[or_unknown] = self.lowering.project(
            test.outer, test, "some", self.quantified.span
        )
        return self._tests[or_unknown]

    def _row_items(self, *, or_unknown: bool) -> list[BodyItem]:
        """Return the items that find a row for which the comparison is true (or unknown)."""
        draft, lowered = self.lowering.draft, self.lowered
        if or_unknown and len(self.left) == 1:
            return [self._known_or_not()]
        row = tuple(
            draft.variable(name, type_)
            for name, type_ in zip(lowered.names, lowered.types, strict=True)
        )
        items: list[BodyItem] = [lowered.atom(row)]
        for term, column, type_ in zip(self.left, row, lowered.types, strict=True):
            true: tuple[BodyItem, ...] = (
                Comparison(COMPARISON_OPERATORS[self.comparison], term, column),
            )
            alternatives = [true]
            if or_unknown and self.body.is_nullable(term):
                alternatives.append((Comparison("is", term, NULL),))
            if or_unknown and type_.nullable:
                alternatives.append((*self._is_present(term), Comparison("is", column, NULL)))
            items += true if len(alternatives) == 1 else [Disjunction(tuple(alternatives))]
        return items

    def _is_present(self, term: Term) -> tuple[BodyItem, ...]:
        return (Comparison("=", term, term),) if self.body.is_nullable(term) else ()

    def _known_or_not(self) -> Disjunction:
        """Return how a comparison of one column is not false: no alternative reads all rows."""
        draft, lowered = self.lowering.draft, self.lowered
        (term,), (type_,) = self.left, lowered.types
        alternatives: list[tuple[BodyItem, ...]] = []
        if self.comparison == "eq":
            alternatives.append(tuple(self.holds()))
        else:
            column = draft.variable(lowered.names[0], type_)
            compared = Comparison(COMPARISON_OPERATORS[self.comparison], term, column)
            alternatives.append((lowered.atom((column,)), compared))
        if self.body.is_nullable(term):
            some = _projection(self.lowering, lowered)
            alternatives.append((some, Comparison("is", term, NULL)))
        if type_.nullable:
            alternatives.append((lowered.atom((NULL,)), *self._is_present(term)))
        return Disjunction(tuple(alternatives))


def add_quantified(
    lowering: ViewLowering, quantified: tree.Quantified, body: RuleBody, *, is_true: bool
) -> None:
    """Add that a comparison with a query is true, or that it is false."""
    compared = _Comparison(lowering, quantified, body)
    if is_true is not quantified.is_all:
        body.items += compared.holds()
        for term in compared.left:
            if isinstance(term, Variable):
                body.known.not_null.add(term.name)
    else:
        body.items.append(_fails(compared))


def _fails(compared: _Comparison) -> Negation:
    """Return the literal that says that a comparison is false for all rows."""
    if compared.is_never_null and compared.comparison == "eq":
        return Negation(compared.lowered.atom(tuple(compared.left)))
    return Negation(compared.some(or_unknown=True))


def truth_value(
    lowering: ViewLowering, condition: tree.Exists | tree.Quantified, body: RuleBody
) -> Variable:
    """Return a variable that is true, false or null, as a condition with a query is."""
    if isinstance(condition, tree.Exists):
        test = existence(lowering, condition, body)
        result = lowering.draft.variable("found", BOOL)
        body.known.not_null.add(result.name)
        body.choose(
            [
                [test, Comparison("is", result, TRUE)],
                [negated(test), Comparison("is", result, FALSE)],
            ],
            lowering.cut,
            [result],
        )
        outer = test.arguments if isinstance(test, Atom) else ()
        body.known.add(names_of(*outer), {result.name})
        return result
    compared = _Comparison(lowering, condition, body)
    is_nullable = not compared.is_never_null
    result = lowering.draft.variable("found", BOOL.with_null(is_nullable))
    yes, no = (FALSE, TRUE) if condition.is_all else (TRUE, FALSE)
    alternatives: list[list[BodyItem]] = [
        [*compared.holds(), Comparison("is", result, yes)],
        [_fails(compared), Comparison("is", result, no)],
    ]
    if is_nullable:
        # A test with `x = x` cannot be negated as a whole: both ways in which it fails are there.
        unknown = compared.some(or_unknown=True)
        true = compared.some(or_unknown=False)
        alternatives[0] = [true, Comparison("is", result, yes)]
        alternatives.append([unknown, Negation(true), Comparison("is", result, NULL)])
    else:
        body.known.not_null.add(result.name)
    body.choose(alternatives, lowering.cut, [result])
    given = [*compared.left, *compared.lowered.outer]
    body.known.add(names_of(*given), {result.name})
    return result


# --- scalar subqueries ---------------------------------------------------------------------------


def scalar_value(
    lowering: ViewLowering, subquery: tree.ScalarSubquery, body: RuleBody, *, drops_null: bool
) -> Term:
    """Return the value of a query with at most one row; it is null if there is none."""
    query: tree.Query = tree.without_order(subquery.query)
    single = single_row(lowering, query, body, drops_null=drops_null)
    if single is not None:
        return single
    lowered = lowering.lower(query, body, is_set=False)
    column = tree.output_columns(query)[0]
    result = lowering.draft.variable(column.name, subquery.type.with_null(nullable=True))
    given = names_of(*lowered.outer)
    body.known.add(given, {result.name})
    found: list[BodyItem] = [lowered.atom((result,))]
    missing: list[BodyItem] = [Negation(lowered.some()), Comparison("is", result, NULL)]
    # A condition that null does not fulfil needs no alternative for a missing row.
    if lowered.has_one_row:
        body.choose([found] if drops_null else [found, missing], lowering.cut, [result])
        if drops_null:
            body.known.not_null.add(result.name)
        return result
    # Two rows are an error only where the value counts. So they are found as a value, and raised by
    # an expression without one, which is judged as all others are.
    many = _many_rows(lowering, lowered)
    is_many = lowering.draft.variable("many", BOOL)
    body.known.not_null.add(is_many.name)
    body.known.add(given, {is_many.name})
    no, yes = Comparison("is", is_many, FALSE), Comparison("is", is_many, TRUE)
    alternatives: list[list[BodyItem]] = [
        [*found, Negation(many), no],
        [many, Comparison("is", result, NULL), yes],
    ]
    if not drops_null:
        alternatives.append([*missing, no])
    body.choose(alternatives, lowering.cut, [result, is_many])
    return Functor("if", (is_many, _fault(subquery.type), result), subquery.type)


def _many_rows(lowering: ViewLowering, lowered: LoweredQuery) -> Atom:
    """Return a literal that says that a query has a second row or copy."""
    draft = lowering.draft
    name = draft.relation("many")
    outer = lowered.outer
    draft.declare(name, draft.columns_of(outer))
    number = draft.variable("n", NUMBER)
    wild = tuple(Wildcard() for _ in lowered.types)
    # Two copies of one row are two rows.
    if lowered.is_bag:
        copies = draft.variable("m", NUMBER)
        total = AggregateTerm("sum", copies, (lowered.atom(wild, copies),))
    else:
        total = AggregateTerm("count", None, (lowered.atom(wild),))
    is_more = Comparison(">", number, ONE)
    draft.add(name, outer, [lowered.some(), Comparison("=", number, total), is_more])
    return Atom(name, outer)


def _fault(type_: Type) -> Term:
    """Return a term of a type that has no value; the message of the error has its text."""
    # No conversion reads this text as a value, and its error quotes it.
    text = Constant(MANY_ROWS)
    match type_.logical_kind:
        case Kind.SYMBOL:
            return Functor("to_string", (Functor("to_number", (text,)),))
        case Kind.DECIMAL:
            return Functor("to_decimal", (text, Constant(type_.scale)))
        case Kind.ARRAY:
            assert type_.element is not None
            return Functor("array", (_fault(type_.element),))
        case Kind.MAP:
            keys, values = (Functor("array", (_fault(each),)) for _, each in type_.members)
            return Functor("map_from_arrays", (keys, values))
        case Kind.STRUCT:
            (first, inner), *rest = type_.members
            return Functor(
                "struct",
                (
                    *(Constant(first), _fault(inner)),
                    *(part for name, each in rest for part in (Constant(name), _fault(each))),
                ),
            )
        case Kind.BOOL:
            return Functor("eq", (Functor("to_number", (text,)), ONE))
        case Kind.BINARY:
            return Functor("from_hex", (text,))
        case Kind.TIMESTAMP_NTZ:
            return Functor("to_local", (Functor("to_timestamp", (text,)),))
        case Kind.FLOAT32:
            return Functor("parse_float32", (text,))
        case Kind.TIME_OF_DAY:
            return Functor("parse_time_of_day", (text,))
        case Kind.DURATION | Kind.MONTHS:
            return Functor(f"to_{type_.logical_kind}", (Functor("to_number", (text,)),))
        case _:
            return Functor(f"to_{type_.logical_kind}", (text,))
