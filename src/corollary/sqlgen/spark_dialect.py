"""Spark SQL: values in the types of published tables (`TypeSpec.spark`); there are no codes.

Decimals are computed with as long as all digits on the way fit 38: beyond that, Spark rounds. What
has no form here, arithmetic of unsigned numbers say, is computed by functions of our own.
"""

from collections.abc import Sequence
from operator import attrgetter

from sqlglot import exp

from corollary.core.logic import Value
from corollary.core.totals import word_count
from corollary.core.types import DECIMAL_MAX_DIGITS, PRIMITIVES, Kind, Type, decimal
from corollary.core.values import format_value
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import (
    AggregateForm,
    DialectName,
    NotExactError,
    SqlDialect,
    SqlTemplate,
    aggregate,
    contains,
    extreme,
    float_operator,
    most_digits,
)
from corollary.sqlgen.nodes import Node, OperatorKind
from corollary.sqlgen.udf import MeanOfWords, SplitWords, call_udf

LONG, STRING = "BIGINT", "STRING"
LIMB_BITS = 32
SUMMED_DIGITS_MAX = 28
"""Below 10^10 rows, no sum of decimals of this many digits has more than 38."""

PLAIN_SCALE_MAX = 6
"""Decimals with more digits after the point are written with an exponent there."""


def _constant(value: Value, type_: Type) -> Node:
    if type_.logical is not None:
        from corollary.core.arrow import store_value

        value, type_ = store_value(value, type_), type_.stored
    if value is None:
        return nodes.cast(exp.Null(), type_.stored.spark_name)
    if type_.is_bool:
        return exp.Boolean(this=bool(value))
    if type_.is_symbol:
        # `CAST` keeps sqlglot from escaping the text a second time in nested expressions.
        return nodes.string(str(value))
    return nodes.cast(nodes.string(format_value(value, type_)), type_.stored.spark_name)


def _long(value: int) -> Node:
    return nodes.integer(value, LONG)


def _negate_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """The minus sign rounds to 34 digits, a difference does not."""
    nothing = decimal(1, 0)
    zero = nodes.cast(nodes.string("0"), nothing.stored.spark_name)
    return _decimals("-", exp.Sub).lower([zero, *arguments], [nothing, *types], result)


def _decimals(name: str, kind: OperatorKind) -> SqlTemplate:
    """Computed exactly with up to 38 digits, then cut to ours: rounded half away from zero."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        if name == "*":
            digits = sum(type_.precision for type_ in types) + 1
        else:
            digits = most_digits(name, types, result.scale)
        if digits > DECIMAL_MAX_DIGITS:
            raise NotExactError(f"`{name}` of {types[0]} and {types[1]} has no exact form in SQL")
        return nodes.try_cast(nodes.binary(kind, *arguments), result.stored.spark_name)

    return SqlTemplate(lower, is_fallible=True)


def _decimal_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    if types[0].scale > PLAIN_SCALE_MAX:
        raise NotExactError(f"`to_string` of {types[0]} has no exact form in SQL")
    return nodes.cast(arguments[0], STRING)


def _align(one: Node, one_type: Type, two: Node, two_type: Type) -> tuple[Node, Node]:
    """Spark brings two decimals to one type, which must have all digits of both."""
    types = (one_type, two_type)
    if one_type.is_decimal:
        scale = max(type_.scale for type_ in types)
        if most_digits("max", types, scale) > DECIMAL_MAX_DIGITS:
            raise NotExactError(f"{one_type} and {two_type} have no exact comparison in SQL")
    return one, two


def _unchanged(value: Node) -> Node:
    return value


def _sum(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """`sum` of 64 bits raises on the way: of both halves it cannot, below 2^31 rows."""
    if source.is_decimal:
        return _sum_of_decimals(value, source, result)
    high, low = (nodes.call("SUM", each) for each in _halves(value))
    unit = nodes.cast(nodes.string(str(1 << LIMB_BITS)), "DECIMAL(11,0)")
    upper = nodes.binary(exp.Mul, nodes.cast(high, "DECIMAL(20,0)"), unit)
    total = nodes.binary(exp.Add, upper, nodes.cast(low, "DECIMAL(20,0)"))
    zero = nodes.cast(nodes.string("0"), "DECIMAL(20,0)")
    return nodes.try_cast(nodes.call("COALESCE", total, zero), LONG), None


def _halves(value: Node) -> tuple[Node, Node]:
    """Return the upper and the lower 32 bits of an integer."""
    high = nodes.call("SHIFTRIGHT", value, exp.Literal.number(LIMB_BITS))
    return high, nodes.binary(exp.BitwiseAnd, value, _long((1 << LIMB_BITS) - 1))


def _sum_of_unsigned(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
    zero = nodes.cast(nodes.string("0"), source.stored.spark_name)
    wide = f"DECIMAL({SUMMED_DIGITS_MAX},0)"
    total = nodes.call("COALESCE", nodes.call("SUM", nodes.cast(value, wide)), zero)
    most = nodes.cast(nodes.string(str(2**64 - 1)), source.stored.spark_name)
    fits = nodes.binary(exp.LTE, total, most)
    return nodes.case((fits, nodes.cast(total, source.stored.spark_name))), None


def _words(value: Node, source: Type) -> list[Node]:
    """Return the sums of the words of a column (`core/totals.py`); 0 if there is no value."""
    parts: Sequence[Node]
    if source.is_unsigned or source.is_long_decimal:
        call = call_udf(SplitWords(source), value)
        places = range(word_count(source))
        parts = [nodes.call("GET", call, exp.Literal.number(at)) for at in places]
    elif source.is_decimal:
        unit = nodes.cast(nodes.string(str(10**source.scale)), f"DECIMAL({source.scale + 1},0)")
        parts = _halves(nodes.cast(nodes.binary(exp.Mul, value, unit), LONG))
    else:
        parts = _halves(value)
    return [nodes.call("COALESCE", nodes.call("SUM", each), _long(0)) for each in parts]


def _mean(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
    """Rounded once, by our own code, from the exact sum; null for no values."""
    words = _words(value, source)
    return call_udf(MeanOfWords(source), nodes.call("COUNT", value), *words), None


def _sum_of_decimals(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """A sum of long decimals that has more than 38 digits on the way is not exact."""
    zero = nodes.cast(nodes.string("0"), result.stored.spark_name)
    if source.precision <= SUMMED_DIGITS_MAX:
        total = nodes.call("SUM", nodes.cast(value, f"DECIMAL({SUMMED_DIGITS_MAX},{source.scale})"))
        return nodes.try_cast(nodes.call("COALESCE", total, zero), result.stored.spark_name), None
    total = nodes.call("TRY_SUM", value)
    has_none = nodes.binary(exp.EQ, nodes.call("COUNT", value), _long(0))
    inexact = nodes.every(nodes.negated(has_none), nodes.is_null(total))
    fitted = nodes.try_cast(total, result.stored.spark_name)
    return nodes.case((has_none, zero), default=fitted), inexact


_DECIMAL_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_FLOAT_OPERATORS = {**_DECIMAL_OPERATORS, "/": exp.Div}
_ORDERED = tuple(kind for kind in PRIMITIVES if kind is not Kind.DECIMAL)

FUNCTORS: dict[tuple[str, Kind], SqlTemplate] = {
    **{(name, Kind.FLOAT): float_operator(made) for name, made in _FLOAT_OPERATORS.items()},
    **{(name, Kind.DECIMAL): _decimals(name, made) for name, made in _DECIMAL_OPERATORS.items()},
    ("neg", Kind.DECIMAL): SqlTemplate(_negate_decimal),
    **{("min", kind): extreme(is_larger=False) for kind in _ORDERED},
    **{("max", kind): extreme(is_larger=True) for kind in _ORDERED},
    ("to_string", Kind.DECIMAL): SqlTemplate(_decimal_text),
}

_SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
AGGREGATES: dict[tuple[str, Kind], AggregateForm] = {
    ("sum", Kind.NUMBER): _sum,
    ("sum", Kind.DECIMAL): _sum,
    ("sum", Kind.UNSIGNED): _sum_of_unsigned,
    **{("mean", kind): _mean for kind in _SUMMED},
    **{("min", kind): aggregate("MIN") for kind in PRIMITIVES},
    **{("max", kind): aggregate("MAX") for kind in PRIMITIVES},
}

SPARK = SqlDialect(
    DialectName.SPARK,
    has_codes=False,
    type_name=attrgetter("stored.spark_name"),
    constant=_constant,
    functors=FUNCTORS,
    predicates={"contains": SqlTemplate(contains)},
    align=_align,
    from_test=_unchanged,
    to_test=_unchanged,
    semi_join=("LEFT", "SEMI"),
    anti_join=("LEFT", "ANTI"),
    aggregates=AGGREGATES,
    totals=dict.fromkeys(_SUMMED, _words),
    calls_udf=True,
    layers_max=40,  # one of 130 takes minutes, one of 260 more than Spark's stack
)
