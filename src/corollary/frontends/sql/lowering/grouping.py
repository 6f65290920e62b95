"""Grouped blocks: each aggregate is a running total over one relation, `v.each`.

    v.each(K, x, W, n) := body.
    v(K, A) := v.each(K, _, _, _), c = sum n : { v.each(K, _, _, n) }, s = sum x : { … }, HAVING.

All that an aggregate adds up is a column of `v.each`: `x * n` for `SUM(x)`, `if(is_null(x), 0, n)`
for `COUNT(x)`. So all aggregates have the groups of `v.each`, and none of them is ever empty.
Without keys there may be no row at all: then the counts are 0 and the rest is null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from corollary.core.functors.catalog import can_fail, is_strict
from corollary.core.functors.holistic import ARGUMENTS, HOLISTIC
from corollary.core.logic import (
    AggregateTerm,
    Atom,
    BodyItem,
    Comparison,
    Constant,
    Functor,
    Negation,
    Term,
    Value,
    Variable,
    Wildcard,
)
from corollary.core.types import DECIMAL_MAX_DIGITS, NUMBER, Kind, Type
from corollary.data_class import dataclass
from corollary.frontends.sql.lowering.blocks import EachRow, ResultColumn, emit_each
from corollary.frontends.sql.lowering.bodies import NULL, ONE, RuleBody
from corollary.frontends.sql.lowering.context import ViewLowering
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ConstantValue,
    Expression,
    FunctionCall,
)

ZERO = Constant(0)
NOTHING: Mapping[int, Term] = {}
EVERY_ROW = None
"""Stands for `v.each` among the relations that are aggregated; the others are projections of it."""

Projection = tuple[int, ...]
"""The columns of `v.each` whose different values are aggregated."""


@dataclass(frozen=True, slots=True)
class _Total:
    """An aggregate over a column.

    Attributes:
        source: the projection of `v.each` that has the column.
        may_be_null: whether a group may have no value, and is null then.
        others: of a holistic aggregate, the further columns, the last one perhaps with copies.
        parameters: its constants.
    """

    operator: str
    variable: Variable
    source: Projection | None
    column: int | None
    may_be_null: bool = False
    others: tuple[int, ...] = ()
    parameters: tuple[Value, ...] = ()


@dataclass(slots=True)
class Groups:
    """The groups of a body: their keys, and the totals that aggregates need.

    Attributes:
        relation: the name that those of its relations begin with.
        rows: the body whose rows are grouped.
        keys: the keys in it.
        may_be_empty: whether a group without rows is asked for too.
        variables: the keys of a group.
        terms: the value of each aggregate, over the variables of the totals.
    """

    lowering: ViewLowering
    relation: str
    rows: RuleBody
    keys: list[ResultColumn]
    may_be_empty: bool = False
    variables: list[Variable] = field(default_factory=list)
    terms: dict[Expression, Term] = field(default_factory=dict)
    _columns: list[ResultColumn] = field(default_factory=list)
    _totals: dict[object, _Total] = field(default_factory=dict)
    _each: EachRow | None = None
    _projections: dict[Projection, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draft = self.lowering.draft
        self.variables = [
            draft.variable(key.name, self.rows.column_type(key.term, key.type)) for key in self.keys
        ]
        self.may_be_empty = self.may_be_empty or not self.keys

    # --- aggregates ------------------------------------------------------------------------------

    def add(self, call: AggregateCall) -> None:
        """Make the totals of an aggregate."""
        arguments = [self.lowering.term(each, self.rows) for each in call.arguments]
        if call.condition is not None:
            # Aggregates pass over nulls, and a row that FILTER leaves out gives one.
            condition = self.lowering.term(call.condition, self.rows)
            arguments = [Functor("if", (condition, each, NULL)) for each in (arguments or [ONE])]
        self.terms[call] = self._value(call, arguments)

    def _value(self, call: AggregateCall, arguments: list[Term]) -> Term:
        if call.name == "count":
            return (
                self._distinct(call, arguments)[1] if call.is_distinct else self._count(arguments)
            )
        term, type_ = arguments[0], call.arguments[0].type
        match call.name:
            case "sum" | "avg":
                may_be_null = self.may_be_empty or self.rows.is_nullable(term)
                if call.is_distinct:
                    source, number = self._distinct(call, arguments)
                    total = self._total("sum", source, source[0], "total", sum_type(type_))
                else:
                    weighted = self._weighted(term, type_)
                    # A value times its copies may have more digits than its column.
                    wide = type_ if weighted is term else sum_type(type_)
                    column = self._column("value", weighted, wide)
                    total = self._total("sum", EVERY_ROW, column, "total", sum_type(type_))
                    if call.name == "sum" and not may_be_null:
                        return total
                    if (
                        call.type.is_float
                        and isinstance(term, Functor)
                        and term.name == "to_decimal"
                    ):
                        term = term.arguments[0]  # the integer, which others count, too
                    number = self._count([term] if self.rows.is_nullable(term) else [])
                value = total if call.name == "sum" else mean_of(total, number, type_, call.type)
                if not may_be_null:
                    return value
                # The total of nulls only is 0, the sum of them is null.
                return Functor("if", (Functor("gt", (number, ZERO)), value, NULL), call.type)
            case "min" | "max":
                hint = "least" if call.name == "min" else "greatest"
                return self._extreme(call.name, hint, term, type_)
            case _:
                return self._holistic(call, arguments)

    def _count(self, terms: Sequence[Term]) -> Variable:
        """Return the number of rows in which no term is null, or the error of one."""
        copies = self.rows.count_term()
        nullable = [each for each in terms if self.rows.is_nullable(each) or can_fail(each)]
        if not nullable and copies is None:
            return self._total("count", EVERY_ROW, None, "counted", NUMBER)
        counted = copies or ONE
        if nullable:
            counted = _if_present(nullable, counted)
        column = self._column("counted", counted, NUMBER)
        return self._total("sum", EVERY_ROW, column, "counted", NUMBER)

    def _extreme(self, operator: str, hint: str, term: Term, type_: Type) -> Variable:
        column = self._column("value", term, type_)
        is_nullable = self.rows.is_nullable(term)
        result = type_.with_null(is_nullable or self.may_be_empty)
        return self._total(operator, EVERY_ROW, column, hint, result, may_be_null=is_nullable)

    def _holistic(self, call: AggregateCall, arguments: list[Term]) -> Variable:
        """Return an aggregate of the bag of values: of each copy of a row, or of distinct ones."""
        columns = [
            self._column("value", term, expression.type)
            for term, expression in zip(arguments, call.arguments, strict=True)
        ]
        source: Projection | None = EVERY_ROW
        if HOLISTIC[call.name].is_open:  # the order is that of FROM
            columns += [
                self._column("place", term, term.type)
                for number in self.rows.sources
                for term in self.lowering.columns[number]
                if isinstance(term, Variable) and term.type is not None
            ]
        elif call.is_distinct:
            source = tuple(dict.fromkeys(columns))
        elif (copies := self.rows.count_term()) is not None:
            columns.append(self._column("copies", copies, NUMBER))
        first, *others = columns
        return self._total(
            call.name,
            source,
            first,
            call.name,
            call.type.with_null(nullable=True),
            may_be_null=True,
            others=tuple(others),
            parameters=call.parameters,
        )

    def _distinct(self, call: AggregateCall, arguments: list[Term]) -> tuple[Projection, Variable]:
        """Return the projection on different values, and the number of those without a null."""
        columns = [
            self._column("value", term, expression.type)
            for term, expression in zip(arguments, call.arguments, strict=True)
        ]
        nullable = [each for each in arguments if self.rows.is_nullable(each)]
        if not nullable:
            source = tuple(columns)
            return source, self._total("count", source, None, "counted", NUMBER)
        present = self._column("present", _if_present(nullable, ONE), NUMBER)
        source = (*columns, present)
        return source, self._total("sum", source, present, "counted", NUMBER)

    # --- columns and totals ----------------------------------------------------------------------

    def _column(self, hint: str, term: Term, type_: Type) -> int:
        """Return the number of the column of `v.each` that holds a term."""
        for number, each in enumerate(self._columns):
            if each.term == term:
                return number
        self._columns.append(ResultColumn(hint, term, self.rows.column_type(term, type_)))
        return len(self._columns) - 1

    def _weighted(self, term: Term, type_: Type) -> Term:
        """Return a term times the number of copies of the row."""
        copies = self.rows.count_term()
        if copies is None:
            return term
        # Factors have one type in the language of rules.
        if type_.kind is Kind.FLOAT:
            copies = Functor("to_float", (copies,))
        elif type_.kind is Kind.DECIMAL:
            copies = Functor("to_decimal", (copies, ZERO))
        return Functor("*", (term, copies))

    def _total(
        self,
        operator: str,
        source: Projection | None,
        column: int | None,
        hint: str,
        type_: Type,
        *,
        may_be_null: bool = False,
        others: tuple[int, ...] = (),
        parameters: tuple[Value, ...] = (),
    ) -> Variable:
        key = operator, source, column, others, parameters
        if key not in self._totals:
            variable = self.lowering.draft.variable(hint, type_)
            total = _Total(operator, variable, source, column, may_be_null, others, parameters)
            self._totals[key] = total
        return self._totals[key].variable

    # --- rules -----------------------------------------------------------------------------------

    @property
    def totals(self) -> list[Variable]:
        """The variables of the totals."""
        return [each.variable for each in self._totals.values()]

    def items(self) -> list[BodyItem]:
        """Make the rules of the rows, and return the items that find groups and totals."""
        draft = self.lowering.draft
        columns = [*self.keys, *self._columns]
        typed = [
            replace(each, type=self.rows.column_type(each.term, each.type)) for each in columns
        ]
        self._each = emit_each(draft, self.relation, self.rows, typed)
        for source in {each.source: None for each in self._totals.values()}:
            if source is not EVERY_ROW:
                self._project(source)
        found: list[BodyItem] = []
        for total in self._totals.values():
            # The literal binds the keys of groups; the aggregate has one for each.
            found += [self._atom(total.source), self._item(total)]
        return list(dict.fromkeys(found)) or [self._atom(EVERY_ROW)]

    def _atom(self, source: Projection | None, known: Mapping[int, Term] = NOTHING) -> Atom:
        """Return a literal of `v.each` or of a projection of it, with terms for columns."""
        assert self._each is not None
        chosen = range(len(self._columns)) if source is EVERY_ROW else source
        terms = [known.get(each, Wildcard()) for each in chosen]
        if source is EVERY_ROW:
            return self._each.atom([*self.variables, *terms])
        return Atom(self._projections[source], (*self.rows.outer, *self.variables, *terms))

    def _item(self, total: _Total) -> Comparison:
        """Return the equation that gives a total its value."""
        if total.column is None:
            value = AggregateTerm(total.operator, None, (self._atom(total.source),))
        else:
            columns = total.column, *total.others
            members: dict[int, Term] = {
                at: self.lowering.draft.variable("value", self._columns[at].type) for at in columns
            }
            target = members[total.column]
            if total.others or total.parameters:
                constants = map(Constant, total.parameters)
                target = Functor(ARGUMENTS, (*(members[at] for at in columns), *constants))
            value = AggregateTerm(total.operator, target, (self._atom(total.source, members),))
        return Comparison("is" if total.may_be_null else "=", total.variable, value)

    def _project(self, source: Projection) -> None:
        """Make the relation of the different values of some columns."""
        draft = self.lowering.draft
        name = self._projections[source] = draft.relation("distinct", of=self.relation)
        columns = [*self.keys, *(self._columns[each] for each in source)]
        draft.declare(
            name,
            [
                *draft.columns_of(self.rows.outer),
                *((each.name, self.rows.column_type(each.term, each.type)) for each in columns),
            ],
        )
        head = [*self.rows.outer, *(each.term for each in columns)]
        draft.add(name, head, self.rows.closed_items())

    def to_relation(self) -> Atom:
        """Make a relation of the groups and their totals, and return a literal of it."""
        draft = self.lowering.draft
        items = self.items()
        variables = [*self.rows.outer, *self.variables, *self.totals]
        name = draft.relation("groups", is_numbered=False, of=self.relation)
        draft.declare(name, draft.columns_of(variables), storage=draft.storage)
        draft.add(name, variables, items)
        return Atom(name, tuple(variables))

    def alternatives(self, groups: Atom) -> list[list[BodyItem]]:
        """Return how a group that is asked for has its totals: it has rows, or it has none."""
        keys = groups.arguments[: len(groups.arguments) - len(self._totals)]
        wild = tuple(Wildcard() for _ in self._totals)
        absent = Negation(Atom(groups.relation, (*keys, *wild)))
        empty = [
            Comparison("is", each.variable, ZERO if each.operator in ("sum", "count") else NULL)
            for each in self._totals.values()
        ]
        return [[groups], [absent, *empty]]

    def note_totals(self, body: RuleBody) -> None:
        """Note in a body what is known of the totals."""
        given = {each.name for each in (*self.rows.outer, *self.variables)}
        body.known.add(given, {each.name for each in self.totals})
        for each in (*self.variables, *self.totals):
            assert each.type is not None
            if not each.type.nullable:
                body.known.not_null.add(each.name)


def is_null_without_rows(expression: Expression) -> bool:
    """Whether an expression over aggregates is null for a group without rows."""
    match expression:
        case AggregateCall(name=name):
            return name != "count"
        case ConstantValue(value=value):
            return value is None
        case FunctionCall(functor=functor, arguments=arguments):
            return is_strict(functor) and any(map(is_null_without_rows, arguments))
        case _:
            return False


def _if_present(nullable: Sequence[Term], number: Term) -> Term:
    """Return a number, or 0 where one of some terms is null."""
    tests: list[Term] = [Functor("is_null", (each,)) for each in nullable]
    is_missing = tests[0] if len(tests) == 1 else Functor("or", tuple(tests))
    return Functor("if", (is_missing, ZERO, number))


def sum_type(type_: Type) -> Type:
    """Return the type of a sum: a decimal with all digits that there are."""
    plain = type_.with_null(nullable=False)
    is_decimal = plain.kind is Kind.DECIMAL
    return replace(plain, precision=DECIMAL_MAX_DIGITS) if is_decimal else plain


def mean_of(total: Term, number: Term, type_: Type, result: Type) -> Term:
    """Return the quotient of a sum and a count."""
    if result.kind is Kind.DECIMAL:
        total = total if type_.kind is Kind.DECIMAL else Functor("to_decimal", (total, ZERO))
        divisor = Functor("to_decimal", (number, ZERO))
        return Functor("divide", (total, divisor, Constant(result.scale)), result)
    total = total if type_.kind is Kind.FLOAT else Functor("to_float", (total,))
    return Functor("/", (total, Functor("to_float", (number,))), result)
