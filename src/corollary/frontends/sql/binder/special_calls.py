"""Calls whose arguments are no plain values: units, types as functions, `grouping`."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from sqlglot import exp

from corollary.core.functors.spec import MOMENT, WHOLE
from corollary.core.types import BOOL, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, decimal
from corollary.frontends.sql.binder.casts import cast_value
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions import function_call
from corollary.frontends.sql.binder.functions.arguments import fitted
from corollary.frontends.sql.binder.functions.time_functions import date_part
from corollary.frontends.sql.binder.patterns import like, like_with_escape
from corollary.frontends.sql.binder.values.conversions import call, integer
from corollary.frontends.sql.binder.values.operators import Site
from corollary.frontends.sql.column_types import ColumnType
from corollary.frontends.sql.query_tree import Expression, FunctionCall

# --- nodes with a syntax of their own ----------------------------------------------------------


def _extract(context: ExpressionContext, node: exp.Extract) -> Expression:
    context.session.check(node, "this", "expression")
    operand = node.args["expression"]
    site = context.site(node, operand, name="extract")
    return date_part(node.this.name, context.bind(operand), site)


def _substring(context: ExpressionContext, node: exp.Substring) -> Expression:
    context.session.check(node, "this", "start", "length")
    parts = [each for key in ("this", "start", "length") if (each := node.args.get(key))]
    return _call(context, "substring", node, parts)


def _trim(context: ExpressionContext, node: exp.Trim) -> Expression:
    context.session.check(node, "this", "position", "expression")
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position") or "").upper(), "trim")
    parts = [each for key in ("this", "expression") if (each := node.args.get(key))]
    return _call(context, name, node, parts)


def _position(context: ExpressionContext, node: exp.StrPosition) -> Expression:
    context.session.check(node, "this", "substr")
    return _call(context, "position", node, [node.args["substr"], node.this])


def _call(
    context: ExpressionContext, name: str, node: exp.Expr, parts: list[exp.Expr]
) -> Expression:
    site = context.site(node, *parts, name=name)
    return function_call(name, [context.bind(each) for each in parts], site)


def _clock(context: ExpressionContext, node: exp.Expr) -> Expression:
    """Refuse `current_timestamp` and its like, which sqlglot knows without parentheses."""
    name = context.session.text(node).lower().partition("(")[0].strip()
    return function_call(name, [], context.site(node, name=name))


def _rlike(context: ExpressionContext, node: exp.RegexpLike) -> Expression:
    context.session.check(node, "this", "expression")
    return _call(context, "rlike", node, [node.this, node.args["expression"]])


def _concat(context: ExpressionContext, node: exp.DPipe) -> Expression:
    context.session.check(node, "this", "expression", "safe")
    return _call(context, "concat", node, [node.this, node.args["expression"]])


_BITS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.BitwiseAnd: ("band", "&"),
    exp.BitwiseOr: ("bor", "|"),
    exp.BitwiseXor: ("bxor", "^"),
    exp.BitwiseNot: ("bnot", "~"),
}


def _bits(context: ExpressionContext, node: exp.Expr) -> Expression:
    context.session.check(node, "this", "expression")
    functor, sign = _BITS[type(node)]
    parts = [each for key in ("this", "expression") if (each := node.args.get(key))]
    for part in parts:
        if type(part) in _BITS and type(part) not in (type(node), exp.BitwiseNot):
            # Spark has a precedence among them, sqlglot none.
            message = "Operators on bits are mixed."
            raise context.session.error("C1310", message, node, "write parentheses")
    site = context.site(node, *parts, name=sign)
    return function_call(functor, [context.bind(each) for each in parts], site)


SPECIAL_NODES: dict[type[exp.Expr], Callable[[ExpressionContext, Any], Expression]] = {
    **dict.fromkeys(_BITS, _bits),
    exp.Like: like,
    exp.ILike: like,
    exp.Escape: like_with_escape,
    exp.RegexpLike: _rlike,
    exp.DPipe: _concat,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.CurrentTimestamp: _clock,
    exp.CurrentUser: _clock,
}
"""How nodes are read that stand for calls with a syntax of their own."""


# --- calls -------------------------------------------------------------------------------------

_CAST_FUNCTIONS = {
    "string": ColumnType(SYMBOL),
    "boolean": ColumnType(BOOL),
    "tinyint": ColumnType(NUMBER, 8),
    "smallint": ColumnType(NUMBER, 16),
    "int": ColumnType(NUMBER, 32),
    "bigint": ColumnType(NUMBER, 64),
    "double": ColumnType(FLOAT),
    "float": ColumnType(FLOAT, 32),
    "decimal": ColumnType(decimal(10, 0)),
    "date": ColumnType(DATE),
    "timestamp": ColumnType(TIMESTAMP),
}

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604_800}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _cast_function(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    name = name_of(node)
    site = context.site(node, *node.expressions, name=name)
    if len(node.expressions) != 1:
        raise site.error("C1306", f"`{name}` takes one argument.", f"write `{name}(x)`")
    return cast_value(context.bind(node.expressions[0]), _CAST_FUNCTIONS[name], False, site)


def _unit_of(context: ExpressionContext, node: exp.Anonymous) -> str | None:
    """Return the unit of `timestampadd(DAY, 1, x)`; None for the forms without a unit."""
    if len(node.expressions) != 3:
        return None
    first = node.expressions[0]
    unit = str(first.name).upper().removesuffix("S")
    if unit not in _SECONDS and unit not in _MONTHS:
        known = ", ".join([*_SECONDS, *_MONTHS])
        message = f"`{context.session.text(first)}` is not a unit that is known here."
        raise context.session.error("C1306", message, first, f"units are {known}")
    return unit


def _add_units(context: ExpressionContext, node: exp.Anonymous) -> Expression | None:
    """`timestampadd(unit, count, x)`: a timestamp, whatever the unit."""
    unit = _unit_of(context, node)
    if unit is None:
        return None
    site = context.site(node, *node.expressions, name=name_of(node))
    count = fitted(context.bind(node.expressions[1]), WHOLE, site)
    value = fitted(context.bind(node.expressions[2]), MOMENT, site)
    if unit in _MONTHS:
        return _added("add_months", value, count, _MONTHS[unit], site)
    if unit in ("DAY", "WEEK"):
        return _added("add_days", value, count, _SECONDS[unit] // 86400, site)
    return _added("add_seconds", value, count, _SECONDS[unit], site)


def _added(functor: str, value: Expression, count: Expression, size: int, site: Site) -> Expression:
    amount = count if size == 1 else call("*", (count, integer(size)), NUMBER, site.span)
    return call(functor, (value, amount), TIMESTAMP, site.span)


def _difference(context: ExpressionContext, node: exp.Anonymous) -> Expression | None:
    """`timestampdiff(unit, start, end)`: whole units, cut off toward zero."""
    unit = _unit_of(context, node)
    if unit is None:
        return None
    site = context.site(node, *node.expressions, name=name_of(node))
    if unit in _MONTHS:
        note = "use `12 * (year(b) - year(a)) + month(b) - month(a)` for months of the calendar"
        raise site.error("C1306", f"Differences in {unit}S are not known here.", note)
    start, end = (fitted(context.bind(each), MOMENT, site) for each in node.expressions[1:])
    seconds = call("seconds_between", (start, end), NUMBER, site.span)
    size = _SECONDS[unit]
    return seconds if size == 1 else call("/", (seconds, integer(size)), NUMBER, site.span)


def _grouping(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """`grouping(key)`: 1 in rows that are grouped without the key; `grouping_id`: the bits."""
    name, parts = name_of(node), node.expressions
    session = context.session
    if context.keys is None or not context.has_grouping_sets:
        message = f"`{name}` belongs to GROUPING SETS, ROLLUP or CUBE."
        raise session.error("C1312", message, node, "write it in the SELECT of such a query")
    plain = context.ungrouped(f"`{name}`")
    keys = [context.keys.get(plain.bind(part)) for part in parts]
    if name == "grouping_id" and not parts:
        keys = list(dict.fromkeys(context.keys.values()))
    elif name == "grouping" and len(parts) != 1:
        raise session.error(
            "C1306", "`grouping` takes one key.", node, "write it once for each key"
        )
    found: list[Expression] = []
    for position, key in enumerate(keys):
        if key is None:
            message = "This is not a key of GROUP BY."
            raise session.error("C1313", message, parts[position], "name a key")
        found.append(FunctionCall("grouping", (key,), NUMBER, session.span(node)))

    def shifted(bits: Expression, bit: Expression) -> Expression:
        twice = call("*", (bits, integer(2)), NUMBER, session.span(node))
        return call("+", (twice, bit), NUMBER, session.span(node))

    return reduce(shifted, found)


Special = Callable[[ExpressionContext, exp.Anonymous], Expression | None]
SPECIAL_CALLS: dict[str, Special] = {
    **dict.fromkeys(_CAST_FUNCTIONS, _cast_function),
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), _add_units),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff"), _difference),
    **dict.fromkeys(("grouping", "grouping_id"), _grouping),
}
"""Functions that read their arguments themselves; None from them means the usual way."""
