"""Expressions and conditions as SQL.

An expression becomes a value, which is null where there is none, and a test whether there is none.
What Spark SQL computes exactly as the local engine does is SQL; a tree with anything else in it is
one call of the local engine's code (`functions.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from corollary.core.functors import CHECKED_SUM
from corollary.core.logic import TEXT_PREDICATES, Condition, Constant, Expression, Functor, Variable
from corollary.core.types import Kind, Type
from corollary.engines.local.evaluation.expressions import type_of
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.evaluation import FAULT, VALUE
from corollary.engines.spark.sql.functions import Functions, Scope
from corollary.engines.sql.choices import CHOICE_FORMS, Application
from corollary.engines.sql.spark_dialect import SPARK
from corollary.engines.sql.sql_expression import SqlExpression

LEAST = -(2**63)
LONGEST = 2**31 - 1
INFINITY = "Infinity"
_UNLIKE = frozenset({Kind.DECIMAL, Kind.UNSIGNED})
"""The kinds whose columns differ from what the compiler of bulk steps writes."""


@dataclass(frozen=True, slots=True)
class LoweredExpression:
    """A value (or a truth), and where there is none; None is nowhere.

    Attributes:
        call: a call of our own that both come from: it is to be computed in a query of its own.
    """

    value: sql.Node
    fault: sql.Node | None = None
    call: sql.Node | None = None


CALLED = "called"
"""The column that a call is computed in."""


def lower(expression: Expression, scope: Scope, functions: Functions) -> LoweredExpression:
    """Return an expression as SQL."""
    native = _native(expression, scope)
    if native is not None:
        return native
    return _called(functions.evaluate(expression, scope))


def _called(call: sql.Node) -> LoweredExpression:
    def part(name: str) -> sql.Node:
        return exp.Dot(this=sql.column(CALLED), expression=exp.to_identifier(name, quoted=True))

    return LoweredExpression(part(VALUE), part(FAULT), call)


def called(call: sql.Node) -> LoweredExpression:
    """Return the parts of a call that gives a value and a fault."""
    return _called(call)


def lower_condition(condition: Condition, scope: Scope, functions: Functions) -> LoweredExpression:
    """Return a condition as SQL; where it is null it does not hold."""
    left, right = _native(condition.left, scope), _native(condition.right, scope)
    operator = condition.operator
    is_pattern = operator.removeprefix("!") == "match"
    # Spark has no type for decimals of two scales and 38 digits.
    scales = {type_of(side).scale for side in (condition.left, condition.right)}
    if left is None or right is None or is_pattern or len(scales) > 1:
        return _called(functions.holds(condition, scope))
    fault = sql.any_of(each for each in (left.fault, right.fault) if each is not None)
    return LoweredExpression(_compared(operator, left.value, right.value), fault)


def _compared(operator: str, left: sql.Node, right: sql.Node) -> sql.Node:
    if operator.removeprefix("!") in TEXT_PREDICATES:
        found = sql.call("CONTAINS", right, left)
        return sql.negated(found) if operator.startswith("!") else found
    if operator == "is":
        return sql.same(left, right)
    kind: Any = _COMPARISONS[operator]
    made: sql.Node = kind(this=exp.Paren(this=left), expression=exp.Paren(this=right))
    return made


_COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def _native(expression: Expression, scope: Scope) -> LoweredExpression | None:
    """Return an expression in plain SQL, None if some part of it has no equal there."""
    match expression:
        case Variable(name=name):
            return LoweredExpression(scope[name][0])
        case Constant(value=value):
            return LoweredExpression(sql.constant(value, type_of(expression)))
        case Functor(name=name, arguments=arguments):
            inputs = [_native(each, scope) for each in arguments]  # type: ignore[arg-type]
            found = [each for each in inputs if each is not None]
            if len(found) < len(inputs):
                return None
            if name == CHECKED_SUM:
                return LoweredExpression(found[0].value, sql.is_null(found[0].value))
            types = [type_of(each) for each in arguments]  # type: ignore[arg-type]
            if name in CHOICE_FORMS:
                return _chosen(expression, types, found)
            return _applied(name, types, type_of(expression), found)


def _chosen(
    functor: Functor, types: list[Type], inputs: list[LoweredExpression]
) -> LoweredExpression | None:
    """Return logic or a choice, as bulk steps have it; not of decimals, whose digits may differ."""
    if not _UNLIKE.isdisjoint(each.kind for each in types):
        return None
    values = [
        SqlExpression(each.value, each.fault, True, type_)
        for each, type_ in zip(inputs, types, strict=True)
    ]
    call = Application(functor.name, functor.arguments, values, type_of(functor), SPARK)  # type: ignore[arg-type]
    made = CHOICE_FORMS[functor.name](call)
    return LoweredExpression(made.value, made.fault)


def _applied(
    name: str, types: list[Type], type_: Type, inputs: list[LoweredExpression]
) -> LoweredExpression | None:
    kinds = {each.kind for each in (*types, type_)}
    made = _FUNCTIONS.get((name, next(iter(kinds)))) if len(kinds) == 1 else None
    made = made or _MIXED.get((name, types[0].kind))
    if made is None:
        return None
    function, is_fallible = made
    values = [each.value for each in inputs]
    result = function(*values)
    faults = [each.fault for each in inputs if each.fault is not None]
    if is_fallible:
        tests = [*(sql.is_present(each) for each in values), sql.is_null(result)]
        lacks = sql.every(tests)
        assert lacks is not None
        faults.append(lacks)
    return LoweredExpression(result, sql.any_of(faults))


# --- functions that Spark SQL computes as we do --------------------------------------------------


def _binary(kind: type[exp.Binary]) -> Callable[..., sql.Node]:
    def make(one: sql.Node, two: sql.Node) -> sql.Node:
        return exp.Paren(this=kind(this=exp.Paren(this=one), expression=exp.Paren(this=two)))

    return make


def _function(name: str) -> Callable[..., sql.Node]:
    return lambda *arguments: sql.call(name, *arguments)


def _case(test: sql.Node, value: sql.Node) -> sql.Node:
    """Return a value where a test is true, else null."""
    return exp.Case(ifs=[exp.If(this=test, true=value)])


def _negate(value: sql.Node) -> sql.Node:
    return sql.call("TRY_SUBTRACT", sql.cast(sql.number(0), _NUMBER), value)


def _divide(one: sql.Node, two: sql.Node) -> sql.Node:
    """Integers are cut off towards zero; the least one by -1 has no quotient."""
    extreme = sql.every([exp.EQ(this=one, expression=_long(LEAST)), _equals(two, -1)])
    zero = _equals(two, 0)
    bad = sql.any_of([zero, *([extreme] if extreme is not None else [])])
    assert bad is not None
    quotient = exp.IntDiv(this=exp.Paren(this=one), expression=exp.Paren(this=two))
    return _case(sql.negated(bad), quotient)


def _modulo(one: sql.Node, two: sql.Node) -> sql.Node:
    rest = exp.Mod(this=exp.Paren(this=one), expression=exp.Paren(this=two))
    return _case(sql.negated(_equals(two, 0)), rest)


def _equals(node: sql.Node, value: int) -> sql.Node:
    return exp.EQ(this=exp.Paren(this=node), expression=_long(value))


def _long(value: int) -> sql.Node:
    return sql.constant(value, _NUMBER)


def _float(kind: type[exp.Binary]) -> Callable[..., sql.Node]:
    """A result that is infinite though the operands are not is an overflow; there is no -0.0."""

    def make(one: sql.Node, two: sql.Node) -> sql.Node:
        zero, infinity = _double("0.0"), _double(INFINITY)
        result = _binary(kind)(one, two)
        plain = exp.Add(this=result, expression=zero)

        def is_infinite(node: sql.Node) -> sql.Node:
            return exp.EQ(this=sql.call("ABS", node), expression=infinity)

        overflow = sql.every(
            [is_infinite(result), sql.negated(is_infinite(one)), sql.negated(is_infinite(two))]
        )
        assert overflow is not None
        bad = overflow
        if kind is exp.Div:
            bad = exp.Or(
                this=exp.Paren(this=overflow), expression=exp.EQ(this=two, expression=zero)
            )
        return _case(sql.negated(bad), plain)

    return make


def _double(text: str) -> sql.Node:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("DOUBLE"))


def _extreme(name: str) -> Callable[..., sql.Node]:
    """Spark passes over null, we do not."""

    def make(*values: sql.Node) -> sql.Node:
        present = sql.every(sql.is_present(each) for each in values)
        assert present is not None
        return _case(present, sql.call(name, *values))

    return make


def _part(text: sql.Node, index: sql.Node, length: sql.Node) -> sql.Node:
    """From a place that is not in the text there is nothing to take."""
    integer = exp.DataType.build("INT")
    inside = sql.every(
        [
            exp.GTE(this=index, expression=_long(0)),
            exp.LTE(this=index, expression=sql.call("CHAR_LENGTH", text)),
            exp.GTE(this=length, expression=_long(0)),
        ]
    )
    assert inside is not None
    first = exp.Cast(this=exp.Add(this=index, expression=_long(1)), to=integer)
    many = exp.Cast(this=sql.call("LEAST", length, _long(LONGEST)), to=integer.copy())
    taken = sql.call("SUBSTR", text, first, many)
    present = sql.every(sql.is_present(each) for each in (text, index, length))
    assert present is not None
    chosen = exp.Case(
        ifs=[exp.If(this=inside, true=taken)], default=sql.constant("", Type(Kind.SYMBOL))
    )
    return _case(present, chosen)


def _length(text: sql.Node) -> sql.Node:
    return sql.cast(sql.call("CHAR_LENGTH", text), _NUMBER)


def _text(value: sql.Node) -> sql.Node:
    return sql.cast(value, Type(Kind.SYMBOL))


def _itself(value: sql.Node) -> sql.Node:
    return value


_NUMBER = Type(Kind.NUMBER)
_Made = tuple[Callable[..., sql.Node], bool]

_FUNCTIONS: dict[tuple[str, Kind], _Made] = {
    ("+", Kind.NUMBER): (_function("TRY_ADD"), True),
    ("-", Kind.NUMBER): (_function("TRY_SUBTRACT"), True),
    ("*", Kind.NUMBER): (_function("TRY_MULTIPLY"), True),
    ("/", Kind.NUMBER): (_divide, True),
    ("%", Kind.NUMBER): (_modulo, True),
    ("neg", Kind.NUMBER): (_negate, True),
    ("band", Kind.NUMBER): (_binary(exp.BitwiseAnd), False),
    ("bor", Kind.NUMBER): (_binary(exp.BitwiseOr), False),
    ("bxor", Kind.NUMBER): (_binary(exp.BitwiseXor), False),
    ("+", Kind.FLOAT): (_float(exp.Add), True),
    ("-", Kind.FLOAT): (_float(exp.Sub), True),
    ("*", Kind.FLOAT): (_float(exp.Mul), True),
    ("/", Kind.FLOAT): (_float(exp.Div), True),
    ("cat", Kind.SYMBOL): (_function("CONCAT"), False),
    ("to_string", Kind.SYMBOL): (_itself, False),
    **{
        (name, kind): (_extreme(function), False)
        for name, function in (("min", "LEAST"), ("max", "GREATEST"))
        for kind in Kind
        if kind is not Kind.DECIMAL
    },
}
"""By name and the one kind of the operands and the result: what it becomes, whether it may fail."""

_MIXED: dict[tuple[str, Kind], _Made] = {
    ("strlen", Kind.SYMBOL): (_length, False),
    ("substr", Kind.SYMBOL): (_part, False),
    ("to_string", Kind.NUMBER): (_text, False),
    ("to_string", Kind.BOOL): (_text, False),
    ("to_number", Kind.NUMBER): (_itself, False),
    ("to_float", Kind.FLOAT): (_itself, False),
}
"""The same, by the kind of the first operand."""
