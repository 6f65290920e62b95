"""Aggregates as SQL: sums in 128 bits, judged on the result; sums of floats exact."""

from sqlglot import exp

from corollary.core.plans import Aggregate
from corollary.core.types import DECIMAL_MAX_DIGITS, Kind, Type
from corollary.engines.local.values.native import INTEGER_BOUNDS
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.columns import names_of
from corollary.engines.spark.sql.functions import Functions
from corollary.engines.spark.sql.table import Table

SUMMED_DIGITS_MAX = 28
"""A sum of fewer than 10^10 decimals of this many digits has at most 38."""


def total(value: sql.Node, source: Type, target: Type) -> tuple[sql.Node, sql.Node]:
    """Return the sum of a column of integers or decimals, null if it is too large, and the exact.

    Decimals of 38 digits hold every sum of fewer than 10^10 values.
    """
    scale = source.scale
    wide = exp.DataType.build(f"DECIMAL({SUMMED_DIGITS_MAX}, {scale})", dialect="spark")
    exact = exp.Sum(this=exp.Cast(this=value, to=wide))
    low, high = INTEGER_BOUNDS.get(target.kind, (-(2**63), 2**63 - 1))
    inside = exp.Between(this=exact, low=_bound(low, scale), high=_bound(high, scale))
    fitting = exp.Case(ifs=[exp.If(this=inside, true=sql.cast(exact.copy(), target))])
    return fitting, exact


def _bound(value: int, scale: int) -> sql.Node:
    type_ = exp.DataType.build(f"DECIMAL({DECIMAL_MAX_DIGITS}, {scale})", dialect="spark")
    digits = f"{abs(value):0{scale + 1}d}"
    text = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits
    return exp.Cast(this=exp.Literal.string(f"{'-' if value < 0 else ''}{text}"), to=type_)


def aggregate(
    step: Aggregate, body: Table, types: tuple[Type, ...], functions: Functions
) -> sql.Node:
    """Return the query for the tuples (keys…, value) of an aggregation.

    A group whose values are all null has the sum 0, and no other value.
    """
    aggregation = step.aggregation
    names = names_of(body.types)
    keys = [sql.column(names[at], "b") for at in aggregation.groups]
    target = types[-1]
    value = None if aggregation.value is None else sql.column(names[aggregation.value], "b")
    source = None if aggregation.value is None else body.types[aggregation.value]
    combined = _combined(aggregation.operator, value, source, target, functions)
    nodes = [sql.named(key, name) for key, name in zip(keys, names_of(types), strict=False)]
    nodes.append(sql.named(combined, names_of(types)[-1]))
    rows = exp.GT(this=exp.Count(this=sql.number(1)), expression=sql.number(0))
    grouped = sql.select(
        nodes,
        sql.of(body.layers(step.body.state).query(), "b"),
        groups=[key.copy() for key in keys],
        having=rows,
    )
    if aggregation.operator == "sum":
        return grouped
    last = names_of(types)[-1]
    return sql.select(
        sql.columns_of(types, "a"), sql.of(grouped, "a"), sql.is_present(sql.column(last, "a"))
    )


def _combined(
    operator: str, value: sql.Node | None, source: Type | None, target: Type, functions: Functions
) -> sql.Node:
    if value is None or source is None:
        return sql.cast(exp.Count(this=sql.number(1)), target)
    listed = sql.call("COLLECT_LIST", value)
    match operator, source.kind:
        case "min", _:
            return exp.Min(this=value)
        case "max", _:
            return exp.Max(this=value)
        case "sum", Kind.FLOAT:
            zero = sql.constant(0.0, target)
            return sql.call("COALESCE", functions.float_total(listed, is_mean=False), zero)
        case "mean", Kind.FLOAT:
            return functions.float_total(listed, is_mean=True)
        case _ if source.precision > SUMMED_DIGITS_MAX:
            return _long_total(operator, value, source, target, functions)
        case "sum", _:
            fitting, exact = total(value, source, target)
            empty = exp.If(this=sql.is_null(exact.copy()), true=sql.cast(sql.number(0), target))
            return exp.Case(ifs=[empty], default=fitting)
        case _:
            _, exact = total(value, source, source)
            return functions.mean(exact, exp.Count(this=value.copy()), source.scale)


def _long_total(
    operator: str, value: sql.Node, source: Type, target: Type, functions: Functions
) -> sql.Node:
    """Return a sum or mean of decimals: the largest may have no sum in Spark, and are listed."""
    # `ABS` rounds negative decimals to 34 digits.
    bound = 10**SUMMED_DIGITS_MAX
    low, high = (_bound(each, source.scale) for each in (-bound, bound))
    is_small = exp.Between(this=value.copy(), low=low, high=high)
    small = exp.Case(ifs=[exp.If(this=is_small, true=value.copy())])
    large = exp.Case(ifs=[exp.If(this=sql.negated(is_small.copy()), true=value.copy())])
    parts = exp.Sum(this=small), sql.call("COLLECT_LIST", large)
    if operator == "mean":
        return functions.long_mean(*parts, exp.Count(this=value.copy()), source.scale)
    return functions.long_total(*parts, target)
