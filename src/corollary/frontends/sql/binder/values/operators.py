"""Arithmetic, comparisons and logic on bound expressions, typed by Spark's ANSI rules."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from corollary.core.types import (
    BOOL,
    FLOAT,
    FLOAT32,
    NUMBER,
    NUMBER_RANGE,
    SQL_NUMERIC,
    SYMBOL,
    Kind,
    Type,
    cut,
    decimal,
)
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.values.common_types import (
    NUMBER_DIGITS,
    bits_of,
    call,
    column_type,
    common_type,
    decimal_of,
    integer,
    is_untyped,
    sized,
    wider,
)
from corollary.frontends.sql.binder.values.conversions import (
    amount_of,
    convert,
    interval_of,
    to_decimal,
    within,
)
from corollary.frontends.sql.binder.values.literals import read_value
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operator or function stands: for its span, and for what is said about it."""

    session: BindingSession
    node: exp.Expr
    parts: tuple[exp.Expr, ...] = ()
    """The operands in the text."""
    name: str = ""

    @property
    def span(self) -> Span:
        """The place."""
        return self.session.span(self.node)

    def error(self, code: str, message: str, note: str | None = None) -> InputError:
        """Return an error here."""
        return self.session.error(code, message, self.node, note)

    def text_of(self, argument: Expression) -> str:
        """Return an argument as it is written; by its place it is found among the operands."""
        for part in self.parts:
            if self.session.span(part) == argument.span:
                return self.session.text(part)
        return "x"

    def text(self, position: int) -> str:
        """Return an operand as it is written."""
        if position < len(self.parts):
            return self.session.text(self.parts[position]) or "x"
        return "x"


def mismatch(site: Site, arguments: Sequence[Expression], what: str) -> InputError:
    """Return the error of operands whose types do not fit; the note has the missing cast."""
    types = list(dict.fromkeys(type_name(each.type) for each in arguments))
    note = "convert one of them with CAST"
    others = [each.type for each in arguments if not each.type.is_symbol] or [NUMBER]
    for position, each in enumerate(arguments):
        if each.type.is_symbol and not is_untyped(each):
            note = _cast_cure(site.text(position), each, others[0])
            break
    listed = " and ".join(types) + (" together" if len(types) > 1 else "")
    return site.error("C1307", f"{what} does not take {listed}.", note)


def unfit(site: Site, argument: Expression, wanted: Type) -> InputError:
    """Return the error of an argument that has another type than is needed."""
    what = f"`{site.name}`" if site.name else "This operator"
    message = f"{what} needs {type_name(wanted)}, but this is {type_name(argument.type)}."
    return site.error("C1307", message, _cast_cure(site.text_of(argument), argument, wanted))


def _cast_cure(text: str, found: Expression, wanted: Type) -> str:
    if found.type.is_time_of_day and wanted.is_time:
        return f"write `make_timestamp(day, {text})`: a time of the day has no day"
    if isinstance(found, ConstantValue) and isinstance(found.value, str):
        if wanted.logical_kind in (Kind.DATE, Kind.TIMESTAMP):
            return f"write `{wanted.logical_kind.upper()} {text}`"
        digits = str(found.value).removeprefix("-").replace(".", "", 1)
        if wanted.logical_kind in SQL_NUMERIC and digits.isascii() and digits.isdigit():
            return f"write `{found.value}` without quotes"
    return f"write `CAST({text} AS {type_name(wanted)})`"


# --- arithmetic --------------------------------------------------------------------------------

SIGNS = {"+": "Addition", "-": "Subtraction", "*": "Multiplication", "/": "Division"}


def arithmetic(sign: str, left: Expression, right: Expression, site: Site) -> Expression:
    """Return `left sign right` for `+ - * /`, `%` and `DIV`."""
    left, right = _operands(sign, left, right, site)
    kinds = {left.type.logical_kind, right.type.logical_kind}
    if kinds & {Kind.FLOAT, Kind.FLOAT32}:
        if sign == "DIV":
            note = "divide with `/`, or cast the operands to BIGINT"
            raise site.error("C1307", "`DIV` does not take DOUBLE.", note)
        both = (convert(left, FLOAT), convert(right, FLOAT))
        found = call("rem" if sign == "%" else sign, both, FLOAT, site.span)
        is_single = kinds == {Kind.FLOAT32} and sign != "/"
        return convert(found, FLOAT32) if is_single else found
    if Kind.DECIMAL in kinds:
        return _decimal_arithmetic(sign, left, right, site.span)
    if sign == "/":
        return call("/", (convert(left, FLOAT), convert(right, FLOAT)), FLOAT, site.span)
    functor = {"%": "rem", "DIV": "/"}.get(sign, sign)
    found = call(functor, (left, right), NUMBER, site.span)
    bits = 64 if sign == "DIV" else max(bits_of(left), bits_of(right))
    return sized(found, bits) if sign == "%" else within(found, bits)


def _operands(
    sign: str, left: Expression, right: Expression, site: Site
) -> tuple[Expression, Expression]:
    what = SIGNS.get(sign, f"`{sign}`")
    left, right = _read_text(left, right, site), _read_text(right, left, site)
    kinds = {left.type.logical_kind, right.type.logical_kind}
    for each in (left, right):
        if each.type.logical_kind not in SQL_NUMERIC and not is_untyped(each):
            if each.type.is_symbol or kinds & SQL_NUMERIC:
                raise mismatch(site, (left, right), what)
            raise site.error(
                "C1307", f"{what} does not take {type_name(each.type)}.", "see docs/sql.md"
            )
    if is_untyped(left):
        left = convert(left, NUMBER if is_untyped(right) else column_type(right))
    if is_untyped(right):
        right = convert(right, column_type(left))
    return _signed(left), _signed(right)


def _signed(operand: Expression) -> Expression:
    """Return an unsigned operand, which SQL has none of, as a decimal of 20 digits."""
    if operand.type.is_unsigned:
        return to_decimal(operand, 0, NUMBER_DIGITS)
    return operand


def _decimal_arithmetic(sign: str, left: Expression, right: Expression, span: Span) -> Expression:
    one, other = decimal_of(left), decimal_of(right)
    left, right = _as_decimal(left), _as_decimal(right)
    p1, s1, p2, s2 = one.precision, one.scale, other.precision, other.scale
    widest = max(s1, s2)
    match sign:
        case "+" | "-":
            result = cut(max(p1 - s1, p2 - s2) + widest + 1, widest)
            left, right = _with_point(left, widest), _with_point(right, widest)
            found = call(sign, (left, right), decimal(38, widest), span)
            if result.scale < widest:
                return to_decimal(found, result.scale, result.precision)
            return replace(found, type=result.with_null(found.type.nullable))
        case "*":
            return rounded(sign, left, right, cut(p1 + p2 + 1, s1 + s2), span)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return rounded(sign, left, right, cut(p1 - s1 + s2 + scale, scale), span)
        case _:
            result = cut(min(p1 - s1, p2 - s2) + widest, widest)
            return _rest(sign, left, right, result, span)


def rounded(sign: str, left: Expression, right: Expression, result: Type, span: Span) -> Expression:
    """Return the exact product or quotient of integers or decimals, rounded half away from zero."""
    left, right = (
        _with_point(each, max(1, each.type.scale)) for each in map(_as_decimal, (left, right))
    )
    functor = "multiply" if sign == "*" else "divide"
    return call(functor, (left, right, integer(result.scale)), result, span)


def _rest(sign: str, left: Expression, right: Expression, type_: Type, span: Span) -> Expression:
    """Return `left % right`, or `left DIV right`, of decimals; the type is that of the rest."""
    both = (to_decimal(left, type_.scale, 38), to_decimal(right, type_.scale, 38))
    rest = call("rem", both, type_, span)
    if sign == "%":
        return rest
    # What is left without the rest can be divided exactly, so that rounding never matters.
    whole = call("-", (both[0], rest), decimal(38, type_.scale), span)
    quotient = call("divide", (whole, both[1], integer(0)), decimal(38, 0), span)
    return call("to_integer", (quotient, integer(64)), NUMBER, span)


def _with_point(operand: Expression, scale: int) -> Expression:
    """Return a literal with so many digits after the point, so that it is read as a decimal."""
    if not isinstance(operand, ConstantValue):
        return operand
    added = scale - operand.type.scale
    return to_decimal(operand, scale, min(38, operand.type.precision + added))


def _as_decimal(operand: Expression) -> Expression:
    type_ = decimal_of(operand)
    if isinstance(operand, ConstantValue) and isinstance(operand.value, int):
        return ConstantValue(Decimal(operand.value), type_, operand.span)
    return to_decimal(operand, type_.scale, type_.precision)


def attempt(found: Expression, operands: Sequence[Expression], site: Site) -> Expression:
    """Return a value, or null where it has none; a missing value of an operand stays an error.

    It does unless an operand before it is null.
    """
    tried = FunctionCall("try", (found,), found.type.with_null(True), site.span)
    missing = [at for at, each in enumerate(operands, 1) if isinstance(each, FunctionCall)]
    nothing = ConstantValue(None, tried.type)
    absent = [
        (FunctionCall("is_null", (each,), BOOL, site.span), nothing)
        for each in operands[: max(missing, default=0)]
        if isinstance(each, FunctionCall) or each.type.nullable
    ]
    return choose(absent, tried, tried.type, site.span) if absent else tried


def negative(operand: Expression, site: Site) -> Expression:
    """Return `-x`; a negative literal is a literal."""
    if is_untyped(operand):
        return operand
    if operand.type.is_symbol:
        operand = convert(operand, FLOAT)
    if operand.type.is_interval:
        amount = negative(amount_of(operand), site)
        return interval_of(amount, operand.type, site.span)
    if operand.type.logical_kind not in SQL_NUMERIC:
        raise unfit(site, operand, NUMBER)
    if operand.type.is_float32:
        return convert(negative(convert(operand, FLOAT), site), FLOAT32)
    operand = _signed(operand)
    if isinstance(operand, ConstantValue) and isinstance(operand.value, int | float | Decimal):
        found, type_ = operand.value, operand.type
        value = found.copy_negate() if isinstance(found, Decimal) else -found
        if type_.is_decimal and type_.scale == 0 and value == NUMBER_RANGE[0]:
            return ConstantValue(NUMBER_RANGE[0], NUMBER, site.span)
        if not type_.is_number or value < 1 << (bits_of(operand) - 1):
            return ConstantValue(value, type_, site.span)
    changed = call("neg", (operand,), replace(operand.type, nullable=False, bits=0), site.span)
    return within(changed, bits_of(operand)) if operand.type.is_number else changed


# --- comparisons and logic ---------------------------------------------------------------------


def aligned(
    arguments: Sequence[Expression], site: Site, what: str, *, by_name: bool = True
) -> tuple[Expression, ...]:
    """Return values converted to the type that they have together."""
    type_ = common_type(list(arguments), by_name=by_name)
    if type_ is None:
        raise mismatch(site, arguments, what)
    if not by_name:
        check_comparable(type_, site)
    if type_.precision < 0:
        return tuple(arguments)
    return tuple(_read(each, type_, site) for each in arguments)


def check_comparable(type_: Type, site: Site) -> None:
    """Refuse values that are maps, or have any inside, where they would be compared."""
    if type_.has_maps:
        note = "compare `map_entries(m)`, which has the order of keys"
        raise site.error("C1307", "Maps are not compared, and have no order.", note)


def _read(value: Expression, type_: Type, site: Site) -> Expression:
    """Return a value in a wider type; a literal text is read at once."""
    is_literal = isinstance(value, ConstantValue) and isinstance(value.value, str)
    if is_literal and type_.logical_kind in EXAMPLES and not is_untyped(value):
        return read_literal(value, type_, site)  # type: ignore[arg-type]
    return convert(value, type_)


def _read_text(text: Expression, beside: Expression, site: Site) -> Expression:
    """Return an operand; a text beside a number is the number that it stands for."""
    if not text.type.is_symbol or is_untyped(text) or beside.type.logical_kind not in SQL_NUMERIC:
        return text
    type_ = wider(text.type, beside.type)
    return text if type_ is None else _read(text, type_, site)


EXAMPLES = {
    Kind.DATE: "DATE '2026-11-16'",
    Kind.TIMESTAMP: "TIMESTAMP '2026-11-16 08:00:00'",
    Kind.TIME_OF_DAY: "TIME '08:00:00'",
    Kind.NUMBER: "7",
    Kind.FLOAT: "1.5",
}


def read_literal(text: ConstantValue, wanted: Type, site: Site) -> Expression:
    """Return the value of a text where one of another type is wanted."""
    written = str(text.value)
    value = read_value(written, wanted)
    if wanted.is_bool or (wanted.is_float and value is None):  # `yes`, `NaN`
        return convert(text, wanted)
    if value is None:
        message = f"`{written}` is not a {type_name(wanted)}."
        raise site.error("C1309", message, f"write one, as in `{EXAMPLES[wanted.logical_kind]}`")
    type_ = replace(wanted, nullable=False, bits=wanted.bits or 64)  # an integer is no INT
    return ConstantValue(value, type_, text.span)


def compare(functor: str, left: Expression, right: Expression, site: Site) -> Expression:
    """Return a comparison as a value: `eq ne lt le gt ge`, or `same`, which is never null."""
    both = aligned((left, right), site, "A comparison", by_name=False)
    if is_untyped(both[0]):
        both = tuple(convert(each, SYMBOL) for each in both)
    if functor == "same":
        return FunctionCall("same", both, BOOL, site.span)
    return call(functor, both, BOOL, site.span)


def condition(operand: Expression, site: Site, what: str) -> Expression:
    """Return an expression that must be a condition."""
    if is_untyped(operand):
        return convert(operand, BOOL)
    if not operand.type.is_bool:
        note = "compare it, as in `x <> 0`"
        found = type_name(operand.type)
        raise site.error("C1307", f"{what} needs a condition, but this is {found}.", note)
    return operand


def connect(functor: str, operands: Sequence[Expression], span: Span) -> Expression:
    """Return `and` or `or` of conditions; one alone is itself."""
    if len(operands) == 1:
        return operands[0]
    return call(functor, tuple(operands), BOOL, span)


def negate(operand: Expression, span: Span) -> Expression:
    """Return `NOT condition`."""
    return call("not", (operand,), BOOL, span)


def choose(
    branches: Sequence[tuple[Expression, Expression]], default: Expression, type_: Type, span: Span
) -> Expression:
    """Return `CASE WHEN … END` as nested `if`; the arms were converted to the type."""
    found = default
    for test, value in reversed(branches):
        is_nullable = value.type.nullable or found.type.nullable
        found = FunctionCall("if", (test, value, found), type_.with_null(is_nullable), span)
    return found
