"""`CAST`, `TRY_CAST`, `x::type`, and typed literals such as `DATE '2026-11-16'`."""

from sqlglot import exp

from corollary.core.types import NUMERIC
from corollary.frontends.sql.binder.context import ExpressionContext
from corollary.frontends.sql.binder.problems import type_name
from corollary.frontends.sql.binder.values import literals
from corollary.frontends.sql.binder.values.conversions import cast, fits_bits
from corollary.frontends.sql.binder.values.operators import EXAMPLES, Site, attempt, negative
from corollary.frontends.sql.column_types import ColumnType, read_type
from corollary.frontends.sql.query_tree import ConstantValue, Expression


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
    is_literal = not written.startswith(("cast", "try_cast")) and "::" not in written
    folded = _folded(operand, target)
    if folded is not None:
        return ConstantValue(folded.value, folded.type, session.span(node))
    if is_literal and isinstance(operand, ConstantValue) and isinstance(operand.value, str):
        word, kind = type_name(target.type), target.type.kind
        message = f"`{operand.value}` is not a {word.lower()}."
        raise session.error("C1309", message, node, f"write it as in `{EXAMPLES.get(kind, word)}`")
    return cast_value(operand, target, is_try, context.site(node, node.this))


def cast_value(operand: Expression, target: ColumnType, is_try: bool, site: Site) -> Expression:
    """Return a value converted to another type, or refuse it."""
    if target.type.is_float and target.bits == 32:
        message = "There are no floating-point numbers of 32 bits here, which round differently."
        raise site.error("C1308", message, "cast it to DOUBLE")
    found = cast(operand, target.type, target.bits)
    if found is None:
        there = type_name(target.type)
        message = f"{type_name(operand.type)} cannot be cast to {there}."
        note = "cast it to STRING in between"
        if operand.type.is_date and target.type.is_number:
            note = "write `datediff(x, DATE '1970-01-01')` for its days"
        raise site.error("C1308", message, note)
    if is_try and found is not operand:
        return attempt(found, [operand], site)
    return found


def _folded(operand: Expression, target: ColumnType) -> ConstantValue | None:
    """Return the literal that the cast of a text to a date or timestamp is, if it is one."""
    if not isinstance(operand, ConstantValue) or not isinstance(operand.value, str):
        return None
    value = literals.read_time(operand.value, target.type) if target.type.is_time else None
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
    if not isinstance(inner, exp.Literal) or target.type.kind not in NUMERIC:
        return None
    if not written[:1].isdigit() and not written.startswith("."):
        return None
    if "::" in written or not written[-1:].isalpha():
        return None
    if target.type.is_decimal:
        found: Expression = literals.decimal_literal(inner.this, node, session)
    elif target.type.is_float and target.bits == 64:
        found = literals.double_literal(inner.this, node, session)
    else:
        found = literals.number_literal(inner.this, node, session)
    if is_negative:
        found = negative(found, site)
    if not target.type.is_number:
        return cast_value(found, target, False, site) if target.bits == 32 else found
    if not isinstance(found, ConstantValue) or not fits_bits(found.value, target.bits):
        sign, largest = "-" if is_negative else "", 2 ** (target.bits - 1)
        message = f"`{sign}{written}` is out of its range."
        note = f"numbers with this letter go from {-largest} to {largest - 1}"
        raise session.error("C1309", message, node, note)
    return found
