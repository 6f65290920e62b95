"""DuckDB: which functors it computes exactly as we do, and how.

Values are native integers, floats and texts (`duckdb_types`); columns that no expression reads are
codes. `TRY` gives null where an operator raises.
"""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.functors import CHECKED_SUM
from corollary.core.totals import WORD_BITS, word_count
from corollary.core.types import PRIMITIVES, Kind, Type
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
    DialectName,
    FunctorForm,
    Lowering,
    NotExactError,
    SqlDialect,
)
from corollary.engines.sql.duckdb_decimals import (
    ZERO,
    absolute_decimal,
    align,
    decimal_text,
    decimal_to,
    decimal_to_float,
    extreme_decimal,
    fit_decimal,
    negate_decimal,
    product_of_decimals,
    quotient_of_decimals,
    round_decimal,
    sum_of_decimals,
    to_decimal,
    total_of_decimals,
    unit,
    within_digits,
    words_of_long_decimals,
)
from corollary.engines.sql.duckdb_text import write_duckdb
from corollary.engines.sql.duckdb_times import TIME_FORMS, calendar_day, day_of, midnight_of
from corollary.engines.sql.duckdb_types import (
    BIGINT,
    DOUBLE,
    EXACT_FLOAT_MAX,
    HUGEINT,
    UBIGINT,
    VARCHAR,
    attempt,
    constant,
    type_name,
)
from corollary.engines.sql.nodes import Node, OperatorKind


def _attempted(kind: OperatorKind) -> FunctorForm:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return attempt(nodes.binary(kind, *arguments))

    return FunctorForm(lower, is_fallible=True)


def _remainder(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """The least integer modulo -1 raises, though it is 0."""
    one, two = arguments
    zero = nodes.binary(exp.Mul, one, nodes.integer(0, BIGINT))
    is_minus_one = nodes.binary(exp.EQ, two, nodes.integer(-1, BIGINT))
    return nodes.case((is_minus_one, zero), default=attempt(nodes.binary(exp.Mod, one, two)))


def _negate(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return attempt(nodes.binary(exp.Sub, nodes.integer(0, type_name(result)), arguments[0]))


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
    return exp.Paren(this=exp.BitwiseNot(this=exp.Paren(this=arguments[0])))


def _is_nonzero(value: Node, type_: Type) -> Node:
    name = type_name(type_)
    return nodes.cast(nodes.binary(exp.NEQ, value, nodes.integer(0, name)), name)


def _logical(kind: OperatorKind) -> FunctorForm:
    """A bit of each operand: `AND` would give 0 for null and 0."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.binary(kind, *map(_is_nonzero, arguments, types))

    return FunctorForm(lower)


def _is_zero(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    name = type_name(result)
    return nodes.cast(nodes.binary(exp.EQ, arguments[0], nodes.integer(0, name)), name)


def _concatenate(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    made = arguments[0]
    for each in arguments[1:]:
        made = nodes.binary(exp.DPipe, made, each)
    return made


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


def _float_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the text of a float; a NaN may have a sign, which DuckDB would show."""
    is_nan = (nodes.call("ISNAN", arguments[0]), nodes.string("nan"))
    return nodes.case(is_nan, default=nodes.cast(arguments[0], VARCHAR))


def _from_test(test: Node) -> Node:
    return nodes.cast(test, BIGINT)


def _to_test(value: Node) -> Node:
    return nodes.binary(exp.NEQ, value, nodes.integer(0, BIGINT))


def _date_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return nodes.cast(calendar_day(arguments[0], types[0]), VARCHAR)


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
    return attempt(nodes.call("REGEXP_FULL_MATCH", text, pattern))


def _is_invalid(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """A pattern is invalid whatever the text is, even null."""
    pattern, text = arguments
    found = _matches([pattern, nodes.call("COALESCE", text, nodes.string(""))], types, result)
    test = nodes.every([nodes.is_present(pattern), nodes.is_null(found)])
    assert test is not None
    return test


def _contains(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return nodes.call("CONTAINS", arguments[1], arguments[0])


def _tested(name: str) -> FunctorForm:
    """Return the form of a function of texts whose result is a truth."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return _from_test(nodes.call(name, *arguments))

    return FunctorForm(lower)


def _like(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """DuckDB refuses a pattern with nothing behind its last backslash."""
    text, pattern = arguments
    if not isinstance(pattern, exp.Literal):
        raise NotExactError("`like` of a computed pattern has no exact form in SQL")
    written = str(pattern.this)
    if "\\" not in written:
        return _from_test(nodes.binary(exp.Like, text, pattern))
    if (len(written) - len(written.rstrip("\\"))) % 2:
        raise NotExactError("`like` of a pattern that ends with one backslash has no exact form")
    return _from_test(nodes.call("LIKE_ESCAPE", text, pattern, nodes.string("\\")))


def _round_integer(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    places = int(arguments[1].this.this)
    if places < 0:
        raise NotExactError("`round_to` of a number to tens has no exact form in SQL")
    return arguments[0]


def _within_bits(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    value, bound = arguments[0], 1 << (int(arguments[1].this.this) - 1)
    inside = nodes.every(
        [
            nodes.binary(exp.GTE, value, nodes.integer(-bound, BIGINT)),
            nodes.binary(exp.LTE, value, nodes.integer(bound - 1, BIGINT)),
        ]
    )
    assert inside is not None
    return nodes.case((inside, value))


def _absolute(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    return attempt(nodes.call("ABS", arguments[0]))


# --- aggregates ----------------------------------------------------------------------------------


def _aggregate(name: str) -> AggregateForm:
    def lower(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
        return nodes.call(name, value), None

    return lower


def _total(value: Node, source: Type) -> Node:
    """Return the sum, an integer of 128 bits; null if there is no value."""
    if source.kind is Kind.DECIMAL:
        return total_of_decimals(value, source)
    return nodes.call("SUM", value)


def _sum(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """A sum that is too large for its type is null: the rule that reads it decides."""
    total = nodes.call("COALESCE", _total(value, source), ZERO)
    if result.kind is Kind.DECIMAL:
        # There are fewer than 10^19 values.
        return within_digits(total, source.precision + 19, result), None
    return nodes.try_cast(total, type_name(result)), None


def _mean(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
    """One correctly rounded division, where sum and count are floats without rounding."""
    if 10**source.scale > EXACT_FLOAT_MAX:
        raise NotExactError(f"`mean` of {source} has no exact form in SQL")
    total = _total(value, source)
    count = nodes.binary(exp.Mul, nodes.call("COUNT", value), unit(source.scale))
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


def _words(value: Node, source: Type) -> list[Node]:
    """Return the sums of the upper and of the lower 32 bits; 0 if there is no value."""
    if word_count(source) != 2:
        return words_of_long_decimals(value, word_count(source))
    mask = nodes.integer((1 << WORD_BITS) - 1, type_name(source))
    lower = nodes.call(
        "COALESCE", nodes.call("SUM", nodes.binary(exp.BitwiseAnd, value, mask)), ZERO
    )
    total = nodes.call("COALESCE", _total(value, source), ZERO)
    unit_ = nodes.integer(1 << WORD_BITS, HUGEINT)
    upper = nodes.binary(exp.IntDiv, nodes.binary(exp.Sub, total, lower), unit_)
    return [nodes.cast(upper, BIGINT), nodes.cast(lower, BIGINT)]


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
    ("+", Kind.DECIMAL): sum_of_decimals("+", exp.Add),
    ("-", Kind.DECIMAL): sum_of_decimals("-", exp.Sub),
    ("*", Kind.DECIMAL): product_of_decimals,
    ("/", Kind.DECIMAL): FunctorForm(quotient_of_decimals, is_fallible=True),
    ("neg", Kind.DECIMAL): FunctorForm(negate_decimal),
    **{("min", kind): extreme(is_larger=False) for kind in PRIMITIVES},
    **{("max", kind): extreme(is_larger=True) for kind in PRIMITIVES},
    ("min", Kind.DECIMAL): extreme_decimal(is_larger=False),
    ("max", Kind.DECIMAL): extreme_decimal(is_larger=True),
    ("cat", Kind.SYMBOL): FunctorForm(_concatenate),
    ("strlen", Kind.SYMBOL): FunctorForm(_function("LENGTH", BIGINT)),
    ("substr", Kind.SYMBOL): part_of_text(BIGINT),
    ("to_string", Kind.SYMBOL): _SAME,
    **{
        ("to_string", kind): FunctorForm(_cast_to(VARCHAR)) for kind in (Kind.NUMBER, Kind.UNSIGNED)
    },
    ("to_string", Kind.FLOAT): FunctorForm(_float_text),
    ("to_string", Kind.DECIMAL): FunctorForm(decimal_text),
    ("to_string", Kind.BOOL): FunctorForm(_bool_text),
    ("to_string", Kind.DATE): FunctorForm(_date_text),
    **{("to_number", kind): _SAME for kind in (Kind.NUMBER, Kind.BOOL)},
    ("to_number", Kind.UNSIGNED): _converted_to(BIGINT),
    ("to_number", Kind.DECIMAL): decimal_to(BIGINT),
    ("to_unsigned", Kind.UNSIGNED): _SAME,
    **{("to_unsigned", kind): _converted_to(UBIGINT) for kind in (Kind.NUMBER, Kind.BOOL)},
    ("to_unsigned", Kind.DECIMAL): decimal_to(UBIGINT),
    ("to_float", Kind.FLOAT): _SAME,
    **{
        ("to_float", kind): FunctorForm(_cast_to(DOUBLE))
        for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.BOOL)
    },
    ("to_float", Kind.DECIMAL): FunctorForm(decimal_to_float, is_fallible=True),
    **{("to_decimal", kind): to_decimal for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)},
    ("to_date", Kind.TIMESTAMP): FunctorForm(day_of),
    ("to_timestamp", Kind.DATE): FunctorForm(midnight_of),
    **TIME_FORMS,
    ("like", Kind.SYMBOL): FunctorForm(_like),
    ("rlike", Kind.SYMBOL): _tested("REGEXP_MATCHES"),
    ("starts_with", Kind.SYMBOL): _tested("STARTS_WITH"),
    ("ends_with", Kind.SYMBOL): _tested("SUFFIX"),
    ("has_text", Kind.SYMBOL): _tested("CONTAINS"),
    ("multiply", Kind.DECIMAL): product_of_decimals,
    ("fit", Kind.DECIMAL): fit_decimal,
    ("round_to", Kind.DECIMAL): round_decimal,
    **{("round_to", kind): FunctorForm(_round_integer) for kind in _INTEGRAL},
    ("rem", Kind.NUMBER): FunctorForm(_remainder, is_fallible=True),
    ("rem", Kind.UNSIGNED): _attempted(exp.Mod),
    ("abs", Kind.NUMBER): FunctorForm(_absolute, is_fallible=True),
    ("abs", Kind.UNSIGNED): _SAME,
    ("abs", Kind.FLOAT): FunctorForm(_function("ABS")),
    ("abs", Kind.DECIMAL): FunctorForm(absolute_decimal),
    ("to_integer", Kind.NUMBER): FunctorForm(_within_bits, is_fallible=True),
    ("show", Kind.SYMBOL): _SAME,
    **{("show", kind): FunctorForm(_cast_to(VARCHAR)) for kind in _INTEGRAL},
    ("show", Kind.DECIMAL): FunctorForm(decimal_text),
    ("show", Kind.BOOL): FunctorForm(_bool_text),
    ("show", Kind.DATE): FunctorForm(_date_text),
    **{(CHECKED_SUM, kind): FunctorForm(itself) for kind in PRIMITIVES},
}

_SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
AGGREGATES: dict[tuple[str, Kind], AggregateForm] = {
    **{("sum", kind): _sum for kind in _SUMMED},
    **{("mean", kind): _mean for kind in _SUMMED},
    **{("min", kind): _aggregate("MIN") for kind in PRIMITIVES},
    **{("max", kind): _aggregate("MAX") for kind in PRIMITIVES},
}

DUCKDB = SqlDialect(
    DialectName.DUCKDB,
    has_codes=True,
    type_name=type_name,
    constant=constant,
    functors=FUNCTORS,
    predicates={
        "match": FunctorForm(_matches, is_fallible=True, fault=_is_invalid),
        "contains": FunctorForm(_contains),
    },
    align=align,
    from_test=_from_test,
    to_test=_to_test,
    semi_join=("", "SEMI"),
    anti_join=("", "ANTI"),
    aggregates=AGGREGATES,
    totals=dict.fromkeys(_SUMMED, _words),
    write=write_duckdb,
)
