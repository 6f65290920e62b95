"""Aggregates: their arguments, types, and where they may stand."""

from dataclasses import replace

from sqlglot import exp

from corollary.core.functors.spec import TRUTH
from corollary.core.types import DECIMAL_MAX_DIGITS, FLOAT, NUMBER, Type, decimal
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions.arguments import fitted, numeric
from corollary.frontends.sql.binder.values.conversions import as_known, is_untyped
from corollary.frontends.sql.binder.values.operators import Site, connect
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    ConstantValue,
    Expression,
    FunctionCall,
)

AGGREGATES = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "bool_and": "min",
    "every": "min",
    "bool_or": "max",
    "some": "max",
    "any": "max",
    "count_if": "count",
}
"""The aggregates by their names; those of conditions are the smallest and the largest one."""

_CONDITIONS = frozenset({"bool_and", "every", "bool_or", "some", "any", "count_if"})


def aggregate_call(
    context: ExpressionContext, node: exp.Anonymous, condition: exp.Expr | None
) -> Expression:
    """Return an aggregate; `condition` is that of FILTER."""
    session = context.session
    if not context.with_aggregates:
        note = "aggregate in a subquery, and use its result"
        if context.clause == "WHERE":
            note = "write the condition in HAVING"
        message = f"`{node.name}` is an aggregate, which cannot stand in {context.clause}."
        raise session.error("C1312", message, node, note)
    inner = context.ungrouped("an aggregate")
    tests = [] if condition is None else [inner.bind_condition(condition, "`FILTER`")]
    call = read_aggregate(inner, node, tests)
    if counts_nothing(call):
        return ConstantValue(0, NUMBER, call.span)
    is_nullable = call.type.nullable or (
        call.name != "count" and (context.is_one_group or bool(tests))
    )
    return replace(call, type=call.type.with_null(is_nullable))


def read_aggregate(
    context: ExpressionContext, node: exp.Anonymous, tests: list[Expression]
) -> AggregateCall:
    """Return an aggregate whose arguments are bound in a context, with the conditions of FILTER."""
    session, name = context.session, name_of(node)
    session.check(node, "this", "expressions")
    parts, is_distinct = list(node.expressions), False
    if len(parts) == 1 and isinstance(parts[0], exp.Distinct):
        session.check(parts[0], "expressions")
        parts, is_distinct = list(parts[0].expressions), True
    site = context.site(node, *parts, name=name)
    arguments = _arguments(context, name, parts, site)
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
    return AggregateCall(AGGREGATES[name], arguments, type_, is_distinct, test, site.span)


def _arguments(
    context: ExpressionContext, name: str, parts: list[exp.Expr], site: Site
) -> tuple[Expression, ...]:
    is_star = len(parts) == 1 and isinstance(parts[0], exp.Star)
    if name == "count" and is_star and isinstance(parts[0].parent, exp.Anonymous):
        context.session.check(parts[0])
        return ()
    if not parts or (len(parts) > 1 and name != "count"):
        raise site.error("C1306", f"`{name}` takes one argument.", f"write `{name}(x)`")
    for part in parts:
        if isinstance(part, exp.Star) or isinstance(part.this, exp.Star):
            note = "write `count(*)`, or name columns"
            raise context.session.error("C1310", "`*` cannot stand here.", part, note)
    values = [context.bind(part) for part in parts]
    if name in _CONDITIONS:
        return tuple(fitted(value, TRUTH, site) for value in values)
    if name in ("sum", "avg", "mean"):
        return (numeric(values[0], site),)
    if name == "count":
        return tuple(_typed(value) for value in values)
    value = as_known(values[0])
    if is_untyped(value):
        raise site.error(
            "C1307", f"`{name}` of NULL has no type.", "cast it, as in `CAST(NULL AS INT)`"
        )
    return (value,)


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
        return type_
    if type_.is_decimal:
        if functor == "sum":
            precision = min(DECIMAL_MAX_DIGITS, type_.precision + 10)
            return decimal(precision, type_.scale).with_null(type_.nullable)
        precision = min(DECIMAL_MAX_DIGITS, type_.precision + 4)
        scale = min(DECIMAL_MAX_DIGITS, type_.scale + 4)
        return decimal(precision, scale).with_null(type_.nullable)
    if functor == "avg":
        return FLOAT.with_null(type_.nullable)
    return type_


def filtered(value: Expression, test: Expression) -> Expression:
    """Return a value where a condition holds, and null elsewhere."""
    nothing = ConstantValue(None, value.type.with_null(True), value.span)
    return FunctionCall("if", (test, value, nothing), value.type.with_null(True), value.span)
