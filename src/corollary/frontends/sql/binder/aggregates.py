"""Aggregates: their arguments, types, and where they may stand."""

from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from sqlglot import exp

from corollary.core.functors.holistic import HOLISTIC
from corollary.core.functors.spec import DOUBLE, INTEGRAL, TEXT, TRUTH
from corollary.core.logic import Value
from corollary.core.types import BOOL, DECIMAL_MAX_DIGITS, FLOAT, NUMBER, Type, array_of, decimal
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions.arguments import fitted, literal_text, numeric
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.values.common_types import (
    NUMBER_DIGITS,
    as_known,
    bits_of,
    column_type,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.conversions import (
    amount_of,
    convert,
    interval_of,
    to_decimal,
)
from corollary.frontends.sql.binder.values.intervals import scaled
from corollary.frontends.sql.binder.values.operators import (
    Site,
    check_comparable,
    choose,
    connect,
    negate,
)
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    ConstantValue,
    Expression,
    FunctionCall,
    WindowCall,
    constant_of,
)

AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "try_sum": "sum",
    "try_avg": "avg",
    "min": "min",
    "max": "max",
    "bool_and": "min",
    "every": "min",
    "bool_or": "max",
    "some": "max",
    "any": "max",
    "count_if": "count",
    "regr_count": "count",
    "regr_avgx": "avg",
    "regr_avgy": "avg",
    **{name: name for name in HOLISTIC},
    "variance": "var_samp",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "median": "percentile_cont",
    "percentile": "percentile_cont",
    "string_agg": "listagg",
    "array_agg": "collect_list",
    "first_value": "first",
    "any_value": "first",
    "last_value": "last",
}
"""The aggregates by their names; those of conditions are the smallest and the largest one."""

_CONDITIONS = frozenset({"bool_and", "every", "bool_or", "some", "any", "count_if"})
_PAIRS = frozenset({"regr_count", "regr_avgx", "regr_avgy"})
_ORDERED = frozenset({"percentile_cont", "percentile_disc"})
"""Aggregates of what `WITHIN GROUP (ORDER BY …)` names; others may have it."""


def aggregate_call(context: ExpressionContext, node: exp.Expr) -> Expression:
    """Return an aggregate, perhaps with FILTER, WITHIN GROUP or IGNORE NULLS."""
    session, condition, whole = context.session, None, node
    node, ignores_nulls = without_nulls(node, session)
    if isinstance(node, exp.Filter):
        session.check(node, "this", "expression")
        session.check(node.args["expression"], "this")
        node, condition = node.this, node.args["expression"].this
    called = node.this if isinstance(node, exp.WithinGroup) else node
    if not isinstance(called, exp.Anonymous) or name_of(called) not in AGGREGATES:
        note = "write it after an aggregate, as in `sum(x) FILTER (WHERE …)`"
        message = "FILTER, WITHIN GROUP and IGNORE NULLS belong to aggregates."
        raise session.error("C1310", message, node, note)
    assert isinstance(node, exp.Anonymous | exp.WithinGroup)
    if (shares := _shares(called)) is not None:
        return _each_share(context, whole, shares, called)
    if not context.with_aggregates:
        note = "aggregate in a subquery, and use its result"
        if context.clause == "WHERE":
            note = "write the condition in HAVING"
        message = f"`{called.name}` is an aggregate, which cannot stand in {context.clause}."
        raise session.error("C1312", message, node, note)
    inner = context.ungrouped("an aggregate")
    tests = [] if condition is None else [inner.bind_condition(condition, "`FILTER`")]
    call = read_aggregate(inner, node, tests)
    if ignores_nulls:
        if call.name not in ("first", "last"):
            message = f"`{called.name}` does not take IGNORE NULLS."
            raise session.error("C1310", message, node, "leave it out")
        call = replace(call, parameters=(True,))
    if counts_nothing(call):
        return sized(integer(0, call.span), 64)
    is_nullable = call.type.nullable or (
        call.name != "count" and (context.is_one_group or bool(tests))
    )
    call = replace(call, type=call.type.with_null(is_nullable))
    return completed(call, context.site(node, name=name_of(called)))


def _shares(called: exp.Anonymous) -> exp.Anonymous | None:
    """Return the array of shares of a percentile, if it has one."""
    if AGGREGATES[name_of(called)] in _ORDERED and called.expressions:
        last = called.expressions[-1]
        if isinstance(last, exp.Anonymous) and name_of(last) == "array" and last.expressions:
            return last
    return None


def _each_share(
    context: ExpressionContext, whole: exp.Expr, shares: exp.Anonymous, called: exp.Anonymous
) -> Expression:
    """Return the array of the percentiles of several shares, which is null if they are."""
    values: list[Expression] = []
    for share in shares.expressions:
        one = whole.copy()
        place = next(each for each in one.find_all(exp.Anonymous) if each == called)
        place.expressions[-1].replace(share.copy())
        one.parent = whole.parent  # for the place of what has none
        values.append(aggregate_call(context, one))
    span = context.session.span(whole)
    made = FunctionCall("array", tuple(values), array_of(values[0].type), span)
    is_missing = FunctionCall("is_null", (values[0],), BOOL, span)
    nothing = ConstantValue(None, made.type.with_null(True), span)
    return choose([(is_missing, nothing)], made, made.type, span)


_Call = TypeVar("_Call", AggregateCall, WindowCall)


def completed(call: _Call, site: Site) -> Expression:
    """Return the value of a call; a sum or mean of intervals is that of their amounts."""
    if call.name in HOLISTIC and HOLISTIC[call.name].is_array:
        nothing = ConstantValue((), call.type.with_null(False))  # of no rows, as in Spark
        return FunctionCall("coalesce", (call, nothing), nothing.type, call.span)
    if site.name == "try_sum" and call.type.is_number:
        return _tried_sum(call)
    type_ = call.arguments[0].type if call.name in ("sum", "avg") else NUMBER
    if not type_.is_interval:
        return call
    is_nullable = call.type.nullable
    amounts = tuple(map(amount_of, call.arguments))
    total = replace(call, name="sum", arguments=amounts, type=NUMBER.with_null(is_nullable))
    found = interval_of(total, type_, call.span)
    if call.name == "sum":
        return found
    count = replace(call, name="count", arguments=amounts, type=NUMBER)
    return scaled("/", interval_of(total, type_, call.span), count, site)


def _tried_sum(call: _Call) -> Expression:
    """Return the sum of integers, added up with more digits; null where it is too large."""
    wide = to_decimal(call.arguments[0], 0, NUMBER_DIGITS)
    total = replace(call, arguments=(wide,), type=_result("sum", (wide,)).with_null(True))
    number = FunctionCall("to_integer", (total, integer(64)), NUMBER.with_null(True), call.span)
    return FunctionCall("try", (number,), number.type, call.span)


def without_nulls(node: exp.Expr, session: BindingSession) -> tuple[exp.Expr, bool]:
    """Return a call without IGNORE NULLS or RESPECT NULLS, and whether the former is there."""
    inside = node.expressions[0] if isinstance(node, exp.Anonymous) and node.expressions else node
    if not isinstance(inside, exp.IgnoreNulls | exp.RespectNulls):
        return node, False
    session.check(inside, "this")
    if inside is node:
        return inside.this, isinstance(inside, exp.IgnoreNulls)
    inside.replace(inside.this)
    return node, isinstance(inside, exp.IgnoreNulls)


def read_aggregate(
    context: ExpressionContext, node: exp.Anonymous | exp.WithinGroup, tests: list[Expression]
) -> AggregateCall:
    """Return an aggregate whose arguments are bound in a context, with the conditions of FILTER."""
    session, order = context.session, None
    if isinstance(node, exp.WithinGroup):
        session.check(node, "this", "expression")
        node, order = node.this, node.expression
    name = name_of(node)
    session.check(node, "this", "expressions")
    parts, is_distinct = list(node.expressions), False
    if len(parts) == 1 and isinstance(parts[0], exp.Distinct):
        session.check(parts[0], "expressions")
        parts, is_distinct = list(parts[0].expressions), True
    site = context.site(node, *parts, name=name)
    if AGGREGATES[name] in HOLISTIC:
        call = _Holistic(context, name, parts, order, site).read()
        for each in call.arguments if call.name != "collect_list" else ():
            check_comparable(each.type, site)
        test = connect("and", tests, site.span) if tests else None
        return replace(call, is_distinct=is_distinct, condition=test)
    if order is not None:
        raise site.error("C1310", f"`{name}` does not take WITHIN GROUP.", "leave it out")
    arguments = _arguments(context, name, parts, site)
    for each in arguments if name != "count" else ():
        check_comparable(each.type, site)
    if name == "count" and not is_distinct:
        arguments = _countable(arguments)
    if name == "count_if":
        if is_distinct:
            raise site.error(
                "C1310", "`count_if` does not take DISTINCT.", "write `count(DISTINCT …)`"
            )
        tests, arguments = [*tests, *arguments], ()
    test = connect("and", tests, site.span) if tests else None
    type_ = _result(AGGREGATES[name], arguments)
    if AGGREGATES[name] == "avg" and arguments[0].type.is_number and bits_of(arguments[0]) > 32:
        arguments = (to_decimal(arguments[0], 0, NUMBER_DIGITS),)  # whose sum always fits
    if name.startswith("try_") and (
        arguments[0].type.is_interval or arguments[0].type.precision > DECIMAL_MAX_DIGITS - 10
    ):
        message = f"`{name}` takes numbers of at most 28 digits."
        raise site.error("C1310", message, "cast them, as in `CAST(x AS DECIMAL(28, 2))`")
    return AggregateCall(AGGREGATES[name], arguments, type_, is_distinct, test, site.span)


def _arguments(
    context: ExpressionContext, name: str, parts: list[exp.Expr], site: Site
) -> tuple[Expression, ...]:
    is_star = len(parts) == 1 and isinstance(parts[0], exp.Star)
    if name == "count" and is_star:
        context.session.check(parts[0])
        is_all = isinstance(parts[0].parent, exp.Anonymous)  # without DISTINCT
        return () if is_all else tuple(_typed(each.expression) for each in context.scope.visible)
    if name in _PAIRS:
        return _pair(context, name, parts, site)
    if not parts or (len(parts) > 1 and name != "count"):
        raise site.error("C1306", f"`{name}` takes one argument.", f"write `{name}(x)`")
    for part in parts:
        if isinstance(part, exp.Star) or isinstance(part.this, exp.Star):
            note = "write `count(*)`, or name columns"
            raise context.session.error("C1310", "`*` cannot stand here.", part, note)
    values = [context.bind(part) for part in parts]
    if name in _CONDITIONS:
        return tuple(fitted(value, TRUTH, site) for value in values)
    if AGGREGATES[name] in ("sum", "avg"):
        if values[0].type.is_interval:
            return (values[0],)
        # Spark reads a NULL without a type as DOUBLE.
        return (convert(values[0], FLOAT) if is_untyped(values[0]) else numeric(values[0], site),)
    if name == "count":
        return tuple(_typed(value) for value in values)
    return (_with_type(values[0], name, site),)


def _with_type(value: Expression, name: str, site: Site) -> Expression:
    known = as_known(value)
    if is_untyped(known):
        raise site.error(
            "C1307", f"`{name}` of NULL has no type.", "cast it, as in `CAST(NULL AS INT)`"
        )
    return known


def _pair(
    context: ExpressionContext, name: str, parts: list[exp.Expr], site: Site
) -> tuple[Expression, ...]:
    """Return what is aggregated of pairs `(y, x)` both of which are there."""
    if len(parts) != 2:
        raise site.error("C1306", f"`{name}` takes two arguments.", f"write `{name}(y, x)`")
    y, x = (numeric(context.bind(part), site) for part in parts)
    if name == "regr_count":
        return y, x
    value, other = (x, y) if name == "regr_avgx" else (y, x)
    is_missing = FunctionCall("is_null", (other,), BOOL, site.span)
    return (filtered(value, negate(is_missing, site.span)),)


def pop_flag(arguments: list[Expression], count: int) -> bool:
    """Return whether the last of so many arguments is `true`; it is taken away."""
    is_flag = len(arguments) == count and isinstance(constant_of(arguments[-1]), bool)
    return is_flag and constant_of(arguments.pop()) is True


def counts_nothing(call: AggregateCall) -> bool:
    """Whether it is `count(NULL)`, which is 0."""
    values = [value.value for value in call.arguments if isinstance(value, ConstantValue)]
    return call.name == "count" and None in values


def _typed(value: Expression) -> Expression:
    return replace(value, type=NUMBER.with_null(True)) if is_untyped(value) else value


def _countable(values: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return the arguments of `count` without those that are never null and cannot fail."""
    return tuple(
        value
        for value in values
        if value.type.nullable or not isinstance(value, ColumnReference | ConstantValue)
    )


def _result(functor: str, arguments: tuple[Expression, ...]) -> Type:
    if functor == "count":
        return NUMBER
    type_ = arguments[0].type
    if functor in ("min", "max"):
        return column_type(arguments[0])
    if type_.is_decimal:
        if functor == "sum":
            precision = min(DECIMAL_MAX_DIGITS, type_.precision + 10)
            return decimal(precision, type_.scale).with_null(type_.nullable)
        precision = min(DECIMAL_MAX_DIGITS, type_.precision + 4)
        scale = min(DECIMAL_MAX_DIGITS, type_.scale + 4)
        return decimal(precision, scale).with_null(type_.nullable)
    if functor == "avg":
        return FLOAT.with_null(type_.nullable)
    return replace(type_, bits=0)


_Read = tuple[list[Expression], tuple[Value, ...]]
"""The arguments of an aggregate, and its constants."""


@dataclass(frozen=True, slots=True)
class _Holistic:
    """Reads an aggregate of the bag of values."""

    context: ExpressionContext
    name: str
    parts: list[exp.Expr]
    order: exp.Expr | None
    site: Site

    def read(self) -> AggregateCall:
        """Return the aggregate; what its order names is an argument."""
        operator, site = AGGREGATES[self.name], self.site
        arguments = [self.context.bind(part) for part in self.parts]
        parameters: tuple[Value, ...] = ()
        match operator:
            case "percentile_cont" | "percentile_disc":
                values, parameters = self._percentile(arguments)
                values = [fitted(values[0], DOUBLE, site)]
            case "mode":
                values, parameters = self._mode(arguments)
            case "listagg":
                values, parameters = self._listagg(arguments)
            case "collect_list" | "collect_set":
                values = [self._known(each) for each in self._counted(arguments, 1, "x")]
            case "first" | "last":
                parameters = (pop_flag(arguments, 2),)
                value = self._known(self._counted(arguments, 1, "x")[0])
                values = [integer(1), value]
            case "max_by" | "min_by":
                value, by = self._counted(arguments, 2, "x, y")
                values = [self._known(by), self._known(value)]
            case "bit_and" | "bit_or" | "bit_xor":
                values = [fitted(each, INTEGRAL, site) for each in self._counted(arguments, 1, "x")]
            case _:
                count = HOLISTIC[operator].columns
                given = self._counted(arguments, count, "x" if count == 1 else "y, x")
                values = [fitted(numeric(each, site), DOUBLE, site) for each in given]
        typed_by = HOLISTIC[operator].typed_by
        type_ = FLOAT if typed_by is None else values[typed_by].type
        type_ = array_of(type_) if HOLISTIC[operator].is_array else type_
        span = site.span
        return AggregateCall(
            operator, tuple(values), type_.with_null(True), span=span, parameters=parameters
        )

    def _percentile(self, arguments: list[Expression]) -> _Read:
        """Return what is ordered, the share of rows before it, and whether the order descends."""
        if self.name == "median":
            return self._counted(arguments, 1, "x"), (0.5, False)
        if self.name in _ORDERED:
            share = self._counted(arguments, 1, "0.5", " WITHIN GROUP (ORDER BY x)")[0]
            value, is_descending = self._ordered(" WITHIN GROUP (ORDER BY x)")
        else:
            value, share = self._counted(arguments, 2, "x, 0.5")
            is_descending = False
        number = share.value if isinstance(share, ConstantValue) else None
        if not isinstance(number, int | float | Decimal) or not 0 <= number <= 1:
            message = f"`{self.name}` needs a literal number from 0 to 1."
            raise self.site.error("C1306", message, "write one such as 0.5")
        return [value], (float(number), is_descending)

    def _mode(self, arguments: list[Expression]) -> _Read:
        if not arguments:
            value, is_descending = self._ordered(" WITHIN GROUP (ORDER BY x)")
            return [value], (is_descending,)
        if len(arguments) == 2 and isinstance(arguments[1], ConstantValue):
            arguments = arguments[:1]
        return [self._known(each) for each in self._counted(arguments, 1, "x")], (False,)

    def _listagg(self, arguments: list[Expression]) -> _Read:
        form = " WITHIN GROUP (ORDER BY x)"
        separator = literal_text(arguments.pop(), self.site) if len(arguments) == 2 else ""
        text = fitted(self._counted(arguments, 1, "x, ', '", form)[0], TEXT, self.site)
        if self.order is None:  # any order is one of Spark's: that of the texts
            return [text, text], (separator, False)
        key, is_descending = self._ordered(form, "x, ', '")
        return [text, key], (separator, is_descending)

    def _ordered(self, form: str, example: str = "0.5") -> tuple[Expression, bool]:
        """Return what WITHIN GROUP orders by, and whether it descends."""
        items = [] if self.order is None else self.order.expressions
        if len(items) != 1:
            wanted = "needs an order" if not items else "takes an order by one column"
            example = "" if self.name == "mode" else example
            note = f"write `{self.name}({example}){form}`"
            raise self.site.error("C1306", f"`{self.name}` {wanted}.", note)
        (item,) = items
        is_descending = isinstance(item, exp.Ordered) and bool(item.args.get("desc"))
        value = self.context.bind(item.this if isinstance(item, exp.Ordered) else item)
        return self._known(value), is_descending

    def _counted(
        self, arguments: list[Expression], count: int, example: str, form: str = ""
    ) -> list[Expression]:
        if len(arguments) != count:
            wanted = "one argument" if count == 1 else "two arguments"
            note = f"write `{self.name}({example}){form}`"
            raise self.site.error("C1306", f"`{self.name}` takes {wanted}.", note)
        if self.order is not None and not form:
            note = f"write `{self.name}({example})`"
            raise self.site.error("C1310", f"`{self.name}` does not take WITHIN GROUP.", note)
        return arguments

    def _known(self, value: Expression) -> Expression:
        return _with_type(value, self.name, self.site)


def filtered(value: Expression, test: Expression) -> Expression:
    """Return a value where a condition holds, and null elsewhere."""
    nothing = ConstantValue(None, value.type.with_null(True), value.span)
    return FunctionCall("if", (test, value, nothing), value.type.with_null(True), value.span)
