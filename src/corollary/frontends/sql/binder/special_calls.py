"""Nodes and calls that read their arguments themselves: casts, `LIKE`, units, `grouping`."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from sqlglot import exp

from corollary.core import types
from corollary.core.functors.spec import MOMENT, WHOLE
from corollary.core.spark_times import SIZES
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.functions import function_call
from corollary.frontends.sql.binder.functions.arguments import fitted
from corollary.frontends.sql.binder.functions.time_functions import date_part
from corollary.frontends.sql.binder.generators import EXPLODED
from corollary.frontends.sql.binder.lambdas import MAP_LAMBDAS, bind_map_lambda
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.binder.structs import (
    bind_arrays_zip,
    bind_exploded,
    bind_named_struct,
    bind_struct,
)
from corollary.frontends.sql.binder.time_windows import MOMENTS
from corollary.frontends.sql.binder.values import literals
from corollary.frontends.sql.binder.values.common_types import call, fits_bits, integer, sized
from corollary.frontends.sql.binder.values.conversions import cast, convert
from corollary.frontends.sql.binder.values.operators import (
    EXAMPLES,
    Site,
    attempt,
    connect,
    negate,
    negative,
)
from corollary.frontends.sql.column_types import ColumnType, read_type
from corollary.frontends.sql.parse import CAST
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall


def bind_cast(context: ExpressionContext, node: exp.Cast) -> Expression:
    """Return the expression of a cast."""
    session = context.session
    session.check(node, "this", "to", "safe", "_type")
    target = read_type(node.args["to"], session.file)
    number = _suffixed_number(context, node, target)
    if number is not None:
        return number
    operand = context.bind(node.this)
    is_try = isinstance(node, exp.TryCast)
    written = session.text(node).lstrip().lower()
    is_literal = not (CAST in node.meta or written.startswith(("cast", "try_cast")))
    is_literal = is_literal and "::" not in written
    folded = _folded(operand, target)
    if is_literal and target.type.is_time_of_day and _MANY_DIGITS.search(session.text(node)):
        folded = None  # a TIME of more than six digits
    if folded is not None:
        return ConstantValue(folded.value, folded.type, session.span(node))
    text = operand.value if isinstance(operand, ConstantValue) else None
    if isinstance(text, str) and (is_literal or _is_time_word(text, target)):
        word, kind = type_name(target.type), target.type.logical_kind
        message = f"`{text}` is not a {word.lower()}."
        raise session.error("C1309", message, node, f"write it as in `{EXAMPLES.get(kind, word)}`")
    return cast_value(operand, target, is_try, context.site(node, node.this))


_TIME_WORDS = {"now", "today", "tomorrow", "yesterday"}
_MANY_DIGITS = re.compile(r"\.[0-9]{7}")


def cast_value(operand: Expression, target: ColumnType, is_try: bool, site: Site) -> Expression:
    """Return a value converted to another type, or refuse it."""

    def tried(made: Expression, of: Expression) -> Expression:
        return attempt(made, [of], site)

    found = cast(operand, target.type, target.bits, tried if is_try else None)
    if found is None:
        there = type_name(target.type)
        message = f"{type_name(operand.type)} cannot be cast to {there}."
        note = "cast it to STRING in between"
        if operand.type.is_struct and target.type.is_struct:
            note = "name as many fields, each of a type that its value can be cast to"
        if operand.type.is_date and target.type.is_number:
            note = "write `datediff(x, DATE '1970-01-01')` for its days"
        if operand.type.is_time_of_day and target.type.is_time:
            note = "write `make_timestamp(day, x)`: Spark would take the day of today"
        raise site.error("C1308", message, note)
    return found


def _is_time_word(text: str, target: ColumnType) -> bool:
    """Whether a literal is a day or moment in Spark by a word, which other texts are not."""
    return target.type.is_time and text.strip().lower() in _TIME_WORDS


def _folded(operand: Expression, target: ColumnType) -> ConstantValue | None:
    """Return the literal that the cast of a text to a date or timestamp is, if it is one."""
    if not isinstance(operand, ConstantValue) or not isinstance(operand.value, str):
        return None
    is_time = target.type.is_time or target.type.is_time_of_day
    value = literals.read_time(operand.value, target.type) if is_time else None
    return None if value is None else ConstantValue(value, target.type)


def negative_literal(context: ExpressionContext, node: exp.Cast) -> Expression | None:
    """Return the value of `-128Y`, given `128Y`, which is too large without its sign."""
    target = read_type(node.args["to"], context.session.file)
    return _suffixed_number(context, node, target, is_negative=True)


def _suffixed_number(
    context: ExpressionContext, node: exp.Cast, target: ColumnType, *, is_negative: bool = False
) -> Expression | None:
    """Return the value of `10L`, `1.5BD` or `2D`, which sqlglot makes casts."""
    session, inner, site = context.session, node.this, context.site(node)
    written = session.text(node)
    if not isinstance(inner, exp.Literal) or target.type.logical_kind not in types.SQL_NUMERIC:
        return None
    if not written[:1].isdigit() and not written.startswith("."):
        return None
    if "::" in written or not written[-1:].isalpha():
        return None
    if target.type.is_decimal:
        found: Expression = literals.decimal_literal(inner.this, node, session)
    elif target.type.kind is types.FLOAT.kind:
        found = literals.double_literal(inner.this, node, session, target.type)
    else:
        found = literals.number_literal(inner.this, node, session)
    if is_negative:
        found = negative(found, site)
    if not target.type.is_number:
        return found
    if not isinstance(found, ConstantValue) or not fits_bits(found.value, target.bits):
        sign, largest = "-" if is_negative else "", 2 ** (target.bits - 1)
        message = f"`{sign}{written}` is out of its range."
        note = f"numbers with this letter go from {-largest} to {largest - 1}"
        raise session.error("C1309", message, node, note)
    return sized(found, target.bits)


# --- patterns ------------------------------------------------------------------------------------


def like(context: ExpressionContext, node: exp.Expr) -> Expression:
    """Return `text LIKE pattern`."""
    return _like(context, node, None)


def like_with_escape(context: ExpressionContext, node: exp.Escape) -> Expression:
    """Return `text LIKE pattern ESCAPE character`."""
    context.session.check(node, "this", "expression")
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise context.session.unsupported(node)
    return _like(context, node.this, node.args["expression"])


_ESCAPED = re.compile(r"(?:[^\\]|\\[\\_%])*", re.DOTALL)


def _like(context: ExpressionContext, node: exp.Expr, escape: exp.Expr | None) -> Expression:
    session = context.session
    session.check(node, "this", "expression", "negate")
    pattern_node = node.args["expression"]
    if isinstance(pattern_node, exp.Any | exp.All) and escape is None:
        return _like_several(context, node, pattern_node)
    site = context.site(node, node.this, pattern_node, name="LIKE")
    text, pattern = context.bind_text(node.this), context.bind_text(pattern_node)
    if escape is not None:
        pattern = _with_backslashes(context, pattern, escape, pattern_node)
    literal = pattern.value if isinstance(pattern, ConstantValue) else None
    if isinstance(literal, str) and not _ESCAPED.fullmatch(literal):
        note = "after the escape character there is `%`, `_` or the character itself"
        raise site.error("C1309", "The pattern escapes something else.", note)
    if isinstance(node, exp.ILike):
        text, pattern = (
            call("lower", (each,), types.SYMBOL, each.span) for each in (text, pattern)
        )
    found = call("like", (text, pattern), types.BOOL, site.span)
    return negate(found, site.span) if node.args.get("negate") else found


def _like_several(context: ExpressionContext, node: exp.Expr, several: exp.Expr) -> Expression:
    """Return `text LIKE ANY (pattern, …)` or `LIKE ALL`."""
    context.session.check(several, "this")
    inner = several.this.unnest() if isinstance(several.this, exp.Paren) else several.this
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    if not patterns:
        message = f"`LIKE {type(several).__name__.upper()}` has no patterns."
        raise context.session.error("C1315", message, node, "write at least one")
    tests = []
    for pattern in patterns:
        part = node.copy()
        part.set("expression", pattern.copy())
        tests.append(_like(context, part, None))
    word = "or" if isinstance(several, exp.Any) else "and"
    return connect(word, tests, context.session.span(node))


def _with_backslashes(
    context: ExpressionContext, pattern: Expression, escape: exp.Expr, node: exp.Expr
) -> ConstantValue:
    """Return a pattern with a backslash in place of another escape character."""
    sign = context.bind(escape)
    is_one = isinstance(sign, ConstantValue) and len(str(sign.value)) == 1
    if not is_one or not isinstance(pattern, ConstantValue):
        note = "write both as literals, as in `LIKE 'a!_b' ESCAPE '!'`"
        message = "`ESCAPE` needs a character and a literal."
        raise context.session.error("C1310", message, node, note)
    assert isinstance(sign, ConstantValue)
    found, rest = "", iter(str(pattern.value))
    for character in rest:
        if character == sign.value:
            following = next(rest, "")
            found += following if following == sign.value != "\\" else f"\\{following}"
        else:
            found += "\\\\" if character == "\\" else character
    return ConstantValue(found, types.SYMBOL, pattern.span)


# --- nodes with a syntax of their own ----------------------------------------------------------


def _extract(context: ExpressionContext, node: exp.Extract) -> Expression:
    context.session.check(node, "this", "expression")
    operand = node.args["expression"]
    site = context.site(node, operand, name="extract")
    return date_part(node.this.name, context.bind(operand), site)


def _keyed(name: str, *keys: str) -> Callable[[ExpressionContext, Any], Expression]:
    """Return what binds a function whose arguments have words between them, as if with commas."""

    def bound(context: ExpressionContext, node: exp.Expr) -> Expression:
        context.session.check(node, *keys)
        return _call(context, name, node, [each for key in keys if (each := node.args.get(key))])

    return bound


def _trim(context: ExpressionContext, node: exp.Trim) -> Expression:
    context.session.check(node, "this", "position", "expression")
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position") or "").upper(), "trim")
    keys = ("this", "expression") if name == "trim" else ("expression", "this")
    return _call(context, name, node, [each for key in keys if (each := node.args.get(key))])


def _position(context: ExpressionContext, node: exp.StrPosition) -> Expression:
    context.session.check(node, "this", "substr", "position")
    start = node.args.get("position")
    parts = [node.args["substr"], node.this, *([] if start is None else [start])]
    return _call(context, "position", node, parts)


def _call(
    context: ExpressionContext, name: str, node: exp.Expr, parts: list[exp.Expr]
) -> Expression:
    site = context.site(node, *parts, name=name)
    return function_call(name, [context.bind(each) for each in parts], site)


def _clock(context: ExpressionContext, node: exp.Expr) -> Expression:
    """Refuse `current_timestamp` and its like, which sqlglot knows without parentheses."""
    name = context.session.text(node).lower().partition("(")[0].strip()
    return function_call(name, [], context.site(node, name=name))


def _concat(context: ExpressionContext, node: exp.DPipe) -> Expression:
    context.session.check(node, "this", "expression", "safe")
    return _call(context, "concat", node, [node.this, node.args["expression"]])


_BITS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.BitwiseAnd: ("band", "&"),
    exp.BitwiseOr: ("bor", "|"),
    exp.BitwiseXor: ("bxor", "^"),
    exp.BitwiseNot: ("bnot", "~"),
    exp.BitwiseLeftShift: ("shiftleft", "<<"),
    exp.BitwiseRightShift: ("shiftright", ">>"),
}


def _bits(context: ExpressionContext, node: exp.Expr) -> Expression:
    context.session.check(node, "this", "expression")
    functor, sign = _BITS[type(node)]
    parts = [each for key in ("this", "expression") if (each := node.args.get(key))]
    site = context.site(node, *parts, name=sign)
    return function_call(functor, [context.bind(each) for each in parts], site)


SPECIAL_NODES: dict[type[exp.Expr], Callable[[ExpressionContext, Any], Expression]] = {
    **dict.fromkeys(_BITS, _bits),
    exp.Like: like,
    exp.ILike: like,
    exp.Escape: like_with_escape,
    exp.RegexpLike: _keyed("rlike", "this", "expression"),
    exp.DPipe: _concat,
    exp.Tuple: bind_struct,
    exp.Extract: _extract,
    exp.Substring: _keyed("substring", "this", "start", "length"),
    exp.Overlay: _keyed("overlay", "this", "expression", "from_", "for_"),
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.CurrentTimestamp: _clock,
    exp.CurrentUser: _clock,
}
"""How nodes are read that stand for calls with a syntax of their own."""


# --- calls -------------------------------------------------------------------------------------

_CAST_FUNCTIONS = {
    "string": ColumnType(types.SYMBOL),
    "boolean": ColumnType(types.BOOL),
    "tinyint": ColumnType(types.NUMBER, 8),
    "smallint": ColumnType(types.NUMBER, 16),
    "int": ColumnType(types.NUMBER, 32),
    "bigint": ColumnType(types.NUMBER, 64),
    "double": ColumnType(types.FLOAT),
    "float": ColumnType(types.FLOAT32),
    "decimal": ColumnType(types.decimal(10, 0)),
    "binary": ColumnType(types.BINARY),
    "date": ColumnType(types.DATE),
    "timestamp": ColumnType(types.TIMESTAMP),
    "timestamp_ntz": ColumnType(types.TIMESTAMP_NTZ),
    "time": ColumnType(types.TIME_OF_DAY),
}

_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": SIZES["SECOND"],
    "MINUTE": SIZES["MINUTE"],
    "HOUR": SIZES["HOUR"],
    "DAY": SIZES["DAY"],
    "DAYOFYEAR": SIZES["DAY"],
    "WEEK": 7 * SIZES["DAY"],
}
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
    if unit not in _MICROSECONDS and unit not in _MONTHS:
        known = ", ".join([*_MICROSECONDS, *_MONTHS])
        message = f"`{context.session.text(first)}` is not a unit that is known here."
        raise context.session.error("C1306", message, first, f"units are {known}")
    return unit


def _add_units(context: ExpressionContext, node: exp.Anonymous) -> Expression | None:
    """`timestampadd(unit, count, x)`: a timestamp, whatever the unit; without a zone as x is."""
    unit = _unit_of(context, node)
    if unit is None:
        return None
    site = context.site(node, *node.expressions, name=name_of(node))
    count = fitted(context.bind(node.expressions[1]), WHOLE, site)
    given = context.bind(node.expressions[2])
    value = fitted(given, MOMENT, site)
    size = _MONTHS.get(unit) or _MICROSECONDS[unit]
    functor, whole = "add_microseconds", 1
    if unit in _MONTHS:
        functor = "add_months"
    elif size >= SIZES["DAY"]:
        functor, whole = "add_days", SIZES["DAY"]
    elif size >= SIZES["SECOND"]:
        functor, whole = "add_seconds", SIZES["SECOND"]
    found = _added(functor, value, count, size // whole, site)
    return convert(found, types.TIMESTAMP_NTZ) if given.type.is_timestamp_ntz else found


def _added(functor: str, value: Expression, count: Expression, size: int, site: Site) -> Expression:
    amount = count if size == 1 else call("*", (count, integer(size)), types.NUMBER, site.span)
    return call(functor, (value, amount), types.TIMESTAMP, site.span)


def _difference(context: ExpressionContext, node: exp.Anonymous) -> Expression | None:
    """`timestampdiff(unit, start, end)`: whole units, cut off toward zero."""
    unit = _unit_of(context, node)
    if unit is None:
        return None
    site = context.site(node, *node.expressions, name=name_of(node))
    if unit == "DAYOFYEAR":
        raise site.error("C1306", "Differences have no unit DAYOFYEAR.", "write DAY")
    start, end = (fitted(context.bind(each), MOMENT, site) for each in node.expressions[1:])
    if unit in _MONTHS:
        found, size = function_call("whole_months", [start, end], site), _MONTHS[unit]
    else:
        found = call("microseconds_between", (start, end), types.NUMBER, site.span)
        size = _MICROSECONDS[unit]
    return found if size == 1 else call("/", (found, integer(size)), types.NUMBER, site.span)


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
        byte = replace(types.NUMBER, bits=8)
        found.append(FunctionCall("grouping", (key,), byte, session.span(node)))

    def shifted(bits: Expression, bit: Expression) -> Expression:
        twice = call("*", (bits, integer(2)), types.NUMBER, session.span(node))
        return call("+", (twice, bit), types.NUMBER, session.span(node))

    return reduce(shifted, found)


def _moment(context: ExpressionContext, node: exp.Anonymous) -> Expression:
    """Return the time of a window: a timestamp, without a zone if it has none."""
    (part,) = node.expressions
    value = context.bind(part)
    if value.type.is_timestamp_ntz:
        return value
    return fitted(value, MOMENT, context.site(node, part, name=name_of(node).removeprefix("•")))


Special = Callable[[ExpressionContext, exp.Anonymous], Expression | None]
SPECIAL_CALLS: dict[str, Special] = {
    **dict.fromkeys(_CAST_FUNCTIONS, _cast_function),
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), _add_units),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff"), _difference),
    **dict.fromkeys(("grouping", "grouping_id"), _grouping),
    "struct": bind_struct,
    "named_struct": bind_named_struct,
    "arrays_zip": bind_arrays_zip,
    EXPLODED: bind_exploded,
    **dict.fromkeys(MOMENTS, _moment),
    **dict.fromkeys(MAP_LAMBDAS, bind_map_lambda),
}
"""Functions that read their arguments themselves; None from them means the usual way."""
