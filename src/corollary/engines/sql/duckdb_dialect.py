"""DuckDB: values as native integers, floats and texts, all other columns as codes.

| type | SQL type |
|---|---|
| symbol | VARCHAR |
| number, bool, date, timestamp | BIGINT: 0 or 1, days, microseconds |
| unsigned | UBIGINT |
| float | DOUBLE |
| decimal(p,s) | BIGINT up to 18 digits, else HUGEINT: the value times 10^s |

`TRY` gives null where an operator raises.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from corollary.core.functors import CHECKED_SUM
from corollary.core.logic import Value
from corollary.core.types import DECIMAL_MAX_DIGITS, Kind, Type
from corollary.core.values import canonical_float
from corollary.engines.sql import nodes
from corollary.engines.sql.arithmetic_forms import (
    extreme,
    float_operator,
    itself,
    operator,
    part_of_text,
)
from corollary.engines.sql.dialect import (
    AggregateForm,
    Dialect,
    DialectName,
    FunctorForm,
    Lowering,
    NotExactError,
)
from corollary.engines.sql.nodes import Node, OperatorKind

BIGINT, UBIGINT, HUGEINT, DOUBLE, VARCHAR = "BIGINT", "UBIGINT", "INT128", "DOUBLE", "VARCHAR"

BIGINT_DIGITS = 18
"""Integers of this many decimal digits always fit in 64 bits…"""

HUGEINT_DIGITS = 38
"""…and these in 128."""

DAY_MICROSECONDS = 86_400_000_000
EXACT_FLOAT_MAX = 2**53
"""Integers up to this are floats without rounding."""

EPOCH, EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)


def _type_name(type_: Type) -> str:
    match type_.kind:
        case Kind.SYMBOL:
            return VARCHAR
        case Kind.UNSIGNED:
            return UBIGINT
        case Kind.FLOAT:
            return DOUBLE
        case Kind.DECIMAL:
            return BIGINT if type_.precision <= BIGINT_DIGITS else HUGEINT
        case _:
            return BIGINT


def _constant(value: Value, type_: Type) -> Node:
    name = _type_name(type_)
    if value is None:
        return nodes.cast(exp.Null(), name)
    match type_.kind:
        case Kind.SYMBOL:
            return nodes.string(str(value))
        case Kind.FLOAT:
            assert isinstance(value, int | float | Decimal)
            return nodes.cast(nodes.string(repr(canonical_float(float(value)))), DOUBLE)
        case Kind.DECIMAL:
            assert isinstance(value, int | float | Decimal | str)
            return nodes.integer(int(Decimal(value).scaleb(type_.scale)), name)
        case Kind.DATE:
            assert isinstance(value, date)
            return nodes.integer((value - EPOCH_DAY).days, name)
        case Kind.TIMESTAMP:
            assert isinstance(value, datetime)
            return nodes.integer((value - EPOCH) // MICROSECOND, name)
        case _:
            assert isinstance(value, int)
            return nodes.integer(int(value), name)


def _attempt(value: Node) -> Node:
    return nodes.call("TRY", value)


def _attempted(kind: OperatorKind) -> FunctorForm:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return _attempt(nodes.binary(kind, *arguments))

    return FunctorForm(lower, is_fallible=True)


def _remainder(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """The least integer modulo -1 raises, though it is 0."""
    one, two = arguments
    zero = nodes.binary(exp.Mul, one, nodes.integer(0, BIGINT))
    is_minus_one = nodes.binary(exp.EQ, two, nodes.integer(-1, BIGINT))
    return nodes.case((is_minus_one, zero), default=_attempt(nodes.binary(exp.Mod, one, two)))


def _negate(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return _attempt(nodes.binary(exp.Sub, nodes.integer(0, _type_name(result)), arguments[0]))


def _negate_float(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return nodes.binary(exp.Sub, nodes.cast(nodes.string("0.0"), DOUBLE), arguments[0])


def _function(name: str, result_type: str | None = None) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        made = nodes.call(name, *arguments)
        return made if result_type is None else nodes.cast(made, result_type)

    return lower


def _bits(kind: OperatorKind) -> FunctorForm:
    return FunctorForm(operator(kind))


def _complement(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return exp.Paren(this=exp.BitwiseNot(this=exp.Paren(this=arguments[0].copy())))


def _is_nonzero(value: Node, type_: Type) -> Node:
    name = _type_name(type_)
    return nodes.cast(nodes.binary(exp.NEQ, value, nodes.integer(0, name)), name)


def _logical(kind: OperatorKind) -> FunctorForm:
    """A bit of each operand: `AND` would give 0 for null and 0."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.binary(kind, *map(_is_nonzero, arguments, types))

    return FunctorForm(lower)


def _is_zero(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    name = _type_name(result)
    return nodes.cast(nodes.binary(exp.EQ, arguments[0], nodes.integer(0, name)), name)


def _concatenate(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    made = arguments[0]
    for each in arguments[1:]:
        made = nodes.binary(exp.DPipe, made, each)
    return made


# --- decimals ------------------------------------------------------------------------------------


def _unit(digits: int) -> Node:
    return nodes.integer(10**digits, HUGEINT)


def _huge(value: Node) -> Node:
    return nodes.cast(value, HUGEINT)


def _scaled(value: Node, type_: Type, scale: int) -> Node:
    """Return a decimal as an integer of 128 bits for a larger scale, null if it does not fit."""
    digits = scale - type_.scale
    if not digits:
        return _huge(value)
    return _attempt(nodes.binary(exp.Mul, _huge(value), _unit(digits)))


def _within_bounds(value: Node, result: Type) -> Node:
    """Return an integer as one behind decimals, null if it has too many digits."""
    bound = nodes.integer(10**DECIMAL_MAX_DIGITS - 1, HUGEINT)
    test = nodes.binary(exp.LTE, nodes.call("ABS", value), bound)
    return nodes.case((test, nodes.cast(value, _type_name(result))))


def _sum_of_decimals(kind: OperatorKind) -> FunctorForm:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        one, two = (
            _scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        )
        return _within_bounds(_attempt(nodes.binary(kind, one, two)), result)

    return FunctorForm(lower, is_fallible=True)


def _rounded(value: Node, digits: int, type_: str) -> Node:
    """Return an integer divided by 10^digits, rounded half away from zero."""
    if not digits:
        return value
    unit, half = nodes.integer(10**digits, type_), nodes.integer(10**digits // 2, type_)
    is_negative = nodes.binary(exp.LT, value, nodes.integer(0, type_))
    return nodes.case(
        (is_negative, nodes.binary(exp.IntDiv, nodes.binary(exp.Sub, value, half), unit)),
        default=nodes.binary(exp.IntDiv, nodes.binary(exp.Add, value, half), unit),
    )


def _product_of_decimals(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """The product has the sum of both scales; the smaller of them is rounded away.

    64 bits suffice for most products, and are several times faster than 128.
    """
    digits = min(type_.scale for type_ in types)
    huge = _attempt(nodes.binary(exp.Mul, *map(_huge, arguments)))
    wide = _within_bounds(_attempt(_rounded(huge, digits, HUGEINT)), result)
    if any(_type_name(type_) == HUGEINT for type_ in types):
        return wide
    short = _attempt(nodes.binary(exp.Mul, *arguments))
    narrow = _attempt(_rounded(short, digits, BIGINT))
    bound = nodes.integer(10**BIGINT_DIGITS - 1, BIGINT)
    fits = nodes.binary(exp.LTE, nodes.call("ABS", narrow), bound)
    return nodes.case((fits, nodes.cast(narrow, _type_name(result))), default=wide)


def _quotient_of_decimals(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    numerator = _scaled(arguments[0], types[0], 2 * result.scale)
    divisor = nodes.call("NULLIF", _scaled(arguments[1], types[1], result.scale), _ZERO)
    dividend, size = nodes.call("ABS", numerator), nodes.call("ABS", divisor)
    half = nodes.binary(exp.IntDiv, size, nodes.integer(2, HUGEINT))
    quotient = nodes.binary(exp.IntDiv, nodes.binary(exp.Add, dividend, half), size)
    is_negative = nodes.binary(
        exp.NEQ,
        nodes.binary(exp.LT, numerator, _ZERO),
        nodes.binary(exp.LT, divisor, _ZERO),
    )
    signed = nodes.case((is_negative, nodes.binary(exp.Sub, _ZERO, quotient)), default=quotient)
    return _within_bounds(_attempt(signed), result)


def _extreme_decimal(is_larger: bool) -> FunctorForm:
    plain = extreme(is_larger).lower

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        aligned = [
            _scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        ]
        return _within_bounds(plain(aligned, types, result), result)

    return FunctorForm(lower, is_fallible=True)


def _negate_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    zero = nodes.integer(0, _type_name(result))
    return nodes.binary(exp.Sub, zero, arguments[0])


def _to_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    digits = result.scale - (types[0].scale if types[0].kind is Kind.DECIMAL else 0)
    value = _huge(arguments[0])
    if digits < 0:
        return _within_bounds(_attempt(_rounded(value, -digits, HUGEINT)), result)
    if digits:
        value = _attempt(nodes.binary(exp.Mul, value, _unit(digits)))
    return _within_bounds(value, result)


def _whole_part(value: Node, type_: Type) -> Node:
    """Return a decimal cut off at its point, as an integer of 128 bits."""
    return nodes.binary(exp.IntDiv, _huge(value), _unit(type_.scale))


def _decimal_to(name: str) -> FunctorForm:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.try_cast(_whole_part(arguments[0], types[0]), name)

    return FunctorForm(lower, is_fallible=True)


def _decimal_to_float(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """One correctly rounded division, where the integer is a float without rounding."""
    (value,), (type_,) = arguments, types
    if type_.scale > 22:  # 10^22 is the largest power of ten that is a float
        raise NotExactError(f"`to_float` of {type_} has no exact form in SQL")
    size = nodes.call("ABS", value)
    is_exact = nodes.binary(exp.LTE, size, nodes.integer(EXACT_FLOAT_MAX, _type_name(type_)))
    unit = nodes.cast(nodes.string(f"1e{type_.scale}"), DOUBLE)
    return nodes.case((is_exact, nodes.binary(exp.Div, nodes.cast(value, DOUBLE), unit)))


def _decimal_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    (value,), (type_,) = arguments, types
    size = nodes.call("ABS", _huge(value))
    sign = nodes.case(
        (nodes.binary(exp.LT, value, _ZERO), nodes.string("-")), default=nodes.string("")
    )
    whole = nodes.cast(nodes.binary(exp.IntDiv, size, _unit(type_.scale)), VARCHAR)
    text = nodes.binary(exp.DPipe, sign, whole)
    if type_.scale:
        rest = nodes.cast(nodes.binary(exp.Mod, size, _unit(type_.scale)), VARCHAR)
        digits = nodes.call("LPAD", rest, exp.Literal.number(type_.scale), nodes.string("0"))
        text = nodes.binary(exp.DPipe, nodes.binary(exp.DPipe, text, nodes.string(".")), digits)
    return text


_ZERO = nodes.integer(0, HUGEINT)


def _align(one: Node, one_type: Type, two: Node, two_type: Type) -> tuple[Node, Node]:
    if one_type.kind is not Kind.DECIMAL or one_type.scale == two_type.scale:
        return one, two
    scale = max(one_type.scale, two_type.scale)
    for type_ in (one_type, two_type):
        if type_.precision + scale - type_.scale > HUGEINT_DIGITS:
            raise NotExactError(f"{one_type} and {two_type} have no exact comparison in SQL")
    return _scaled(one, one_type, scale), _scaled(two, two_type, scale)


# --- conversions and texts -----------------------------------------------------------------------


def _cast_to(name: str) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.cast(arguments[0], name)

    return lower


def _converted_to(name: str) -> FunctorForm:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.try_cast(arguments[0], name)

    return FunctorForm(lower, is_fallible=True)


def _bool_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    zero = nodes.integer(0, BIGINT)
    return nodes.case(
        (nodes.binary(exp.EQ, arguments[0], zero), nodes.string("false")),
        (nodes.binary(exp.NEQ, arguments[0], zero), nodes.string("true")),
    )


def _date_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    epoch = nodes.cast(nodes.string("1970-01-01"), "DATE")
    return nodes.cast(nodes.binary(exp.Add, epoch, nodes.cast(arguments[0], "INT")), VARCHAR)


def _day_of(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Division cuts off towards zero, days begin at midnight before 1970, too."""
    day = nodes.integer(DAY_MICROSECONDS, BIGINT)
    rest = nodes.binary(exp.Mod, arguments[0], day)
    is_before = nodes.cast(nodes.binary(exp.LT, rest, nodes.integer(0, BIGINT)), BIGINT)
    return nodes.binary(exp.Sub, nodes.binary(exp.IntDiv, arguments[0], day), is_before)


def _midnight_of(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return nodes.binary(exp.Mul, arguments[0], nodes.integer(DAY_MICROSECONDS, BIGINT))


def _matches(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    pattern, text = arguments
    if isinstance(pattern, exp.Literal):
        # A constant pattern is compiled when the query is, and would make all of it fail.
        import re2

        try:
            options = re2.Options()
            options.log_errors = False
            re2.compile(pattern.this, options)
        except re2.error:
            raise NotExactError("the pattern is invalid") from None
    return _attempt(nodes.call("REGEXP_FULL_MATCH", text, pattern))


def _contains(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return nodes.call("CONTAINS", arguments[1], arguments[0])


# --- aggregates ----------------------------------------------------------------------------------


def _aggregate(name: str) -> AggregateForm:
    def lower(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
        return nodes.call(name, value), None

    return lower


def _total(value: Node, source: Type) -> Node:
    """Return the sum, an integer of 128 bits; null if there is no value."""
    if _type_name(source) == HUGEINT:
        raise NotExactError(f"a sum of {source} has no exact form in SQL")
    return nodes.call("SUM", value)


def _sum(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """A sum that is too large for its type is null: the rule that reads it decides."""
    total = nodes.call("COALESCE", _total(value, source), _ZERO)
    if result.kind is Kind.DECIMAL:
        return _within_bounds(total, result), None
    return nodes.try_cast(total, _type_name(result)), None


def _mean(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
    """One correctly rounded division, where sum and count are floats without rounding."""
    total, unit = _total(value, source), _unit(source.scale)
    count = nodes.binary(exp.Mul, nodes.call("COUNT", value), unit)
    most = nodes.integer(EXACT_FLOAT_MAX, HUGEINT)
    is_exact = nodes.every(
        [
            nodes.binary(exp.LTE, nodes.call("ABS", total), most),
            nodes.binary(exp.LTE, count, most),
        ]
    )
    assert is_exact is not None
    quotient = nodes.binary(exp.Div, nodes.cast(total, DOUBLE), nodes.cast(count, DOUBLE))
    mean = nodes.case((is_exact, quotient))
    inexact = nodes.every([nodes.is_present(total), nodes.is_null(mean)])
    assert inexact is not None
    return mean, inexact


_INTEGRAL = (Kind.NUMBER, Kind.UNSIGNED)
_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.IntDiv}
_FLOAT_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div}
_BITS = {"band": exp.BitwiseAnd, "bor": exp.BitwiseOr, "bxor": exp.BitwiseXor}
_LOGIC = {"land": exp.BitwiseAnd, "lor": exp.BitwiseOr, "lxor": exp.BitwiseXor}
_SAME = FunctorForm(itself)

FUNCTORS: dict[tuple[str, Kind], FunctorForm] = {
    **{(name, kind): _attempted(made) for name, made in _OPERATORS.items() for kind in _INTEGRAL},
    ("%", Kind.NUMBER): FunctorForm(_remainder, is_fallible=True),
    ("%", Kind.UNSIGNED): _attempted(exp.Mod),
    **{("neg", kind): FunctorForm(_negate, is_fallible=True) for kind in _INTEGRAL},
    **{(name, kind): _bits(made) for name, made in _BITS.items() for kind in _INTEGRAL},
    **{(name, kind): _logical(made) for name, made in _LOGIC.items() for kind in _INTEGRAL},
    **{("bnot", kind): FunctorForm(_complement) for kind in _INTEGRAL},
    **{("lnot", kind): FunctorForm(_is_zero) for kind in _INTEGRAL},
    **{(name, Kind.FLOAT): float_operator(made) for name, made in _FLOAT_OPERATORS.items()},
    ("neg", Kind.FLOAT): FunctorForm(_negate_float),
    ("+", Kind.DECIMAL): _sum_of_decimals(exp.Add),
    ("-", Kind.DECIMAL): _sum_of_decimals(exp.Sub),
    ("*", Kind.DECIMAL): FunctorForm(_product_of_decimals, is_fallible=True),
    ("/", Kind.DECIMAL): FunctorForm(_quotient_of_decimals, is_fallible=True),
    ("neg", Kind.DECIMAL): FunctorForm(_negate_decimal),
    **{("min", kind): extreme(is_larger=False) for kind in Kind},
    **{("max", kind): extreme(is_larger=True) for kind in Kind},
    ("min", Kind.DECIMAL): _extreme_decimal(is_larger=False),
    ("max", Kind.DECIMAL): _extreme_decimal(is_larger=True),
    ("cat", Kind.SYMBOL): FunctorForm(_concatenate),
    ("strlen", Kind.SYMBOL): FunctorForm(_function("LENGTH", BIGINT)),
    ("substr", Kind.SYMBOL): part_of_text(BIGINT),
    ("to_string", Kind.SYMBOL): _SAME,
    **{
        ("to_string", kind): FunctorForm(_cast_to(VARCHAR))
        for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT)
    },
    ("to_string", Kind.DECIMAL): FunctorForm(_decimal_text),
    ("to_string", Kind.BOOL): FunctorForm(_bool_text),
    ("to_string", Kind.DATE): FunctorForm(_date_text),
    **{("to_number", kind): _SAME for kind in (Kind.NUMBER, Kind.BOOL)},
    ("to_number", Kind.UNSIGNED): _converted_to(BIGINT),
    ("to_number", Kind.DECIMAL): _decimal_to(BIGINT),
    ("to_unsigned", Kind.UNSIGNED): _SAME,
    **{("to_unsigned", kind): _converted_to(UBIGINT) for kind in (Kind.NUMBER, Kind.BOOL)},
    ("to_unsigned", Kind.DECIMAL): _decimal_to(UBIGINT),
    ("to_float", Kind.FLOAT): _SAME,
    **{
        ("to_float", kind): FunctorForm(_cast_to(DOUBLE))
        for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.BOOL)
    },
    ("to_float", Kind.DECIMAL): FunctorForm(_decimal_to_float, is_fallible=True),
    **{
        ("to_decimal", kind): FunctorForm(_to_decimal, is_fallible=True)
        for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
    },
    ("to_date", Kind.TIMESTAMP): FunctorForm(_day_of),
    ("to_timestamp", Kind.DATE): FunctorForm(_midnight_of),
    **{(CHECKED_SUM, kind): FunctorForm(itself) for kind in Kind},
}

_SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
AGGREGATES: dict[tuple[str, Kind], AggregateForm] = {
    **{("sum", kind): _sum for kind in _SUMMED},
    **{("mean", kind): _mean for kind in _SUMMED},
    **{("min", kind): _aggregate("MIN") for kind in Kind},
    **{("max", kind): _aggregate("MAX") for kind in Kind},
}

DUCKDB = Dialect(
    DialectName.DUCKDB,
    has_codes=True,
    type_name=_type_name,
    constant=_constant,
    functors=FUNCTORS,
    predicates={
        "match": FunctorForm(_matches, is_fallible=True),
        "contains": FunctorForm(_contains),
    },
    align=_align,
    semi_join=("", "SEMI"),
    anti_join=("", "ANTI"),
    aggregates=AGGREGATES,
)
