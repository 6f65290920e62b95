"""DuckDB: which functors it computes exactly as we do, and how.

Values are native integers, floats and texts (`duckdb_types`); columns that no expression reads are
codes. `TRY` gives null where an operator raises.
"""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.totals import WORD_BITS, word_count
from corollary.core.types import PRIMITIVES, Kind, Type
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import (
    AggregateForm,
    DialectName,
    FunctorForm,
    NotExactError,
    SqlDialect,
    aggregate,
    contains,
    extreme,
    float_operator,
)
from corollary.sqlgen.duckdb_decimals import (
    BIGINT,
    DOUBLE,
    EXACT_FLOAT_MAX,
    HUGEINT,
    UBIGINT,
    ZERO,
    absolute_decimal,
    align,
    attempt,
    constant,
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
    type_name,
    unit,
    within_digits,
    words_of_long_decimals,
)
from corollary.sqlgen.duckdb_text import write_duckdb
from corollary.sqlgen.nodes import Node

# --- conversions and texts -----------------------------------------------------------------------


def _from_test(test: Node) -> Node:
    return nodes.cast(test, BIGINT)


def _to_test(value: Node) -> Node:
    return nodes.binary(exp.NEQ, value, nodes.integer(0, BIGINT))


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


# --- aggregates ----------------------------------------------------------------------------------


def _total(value: Node, source: Type) -> Node:
    """Return the sum, an integer of 128 bits; null if there is no value."""
    if source.is_decimal:
        return total_of_decimals(value, source)
    return nodes.call("SUM", value)


def _sum(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:
    """A sum that is too large for its type is null: the rule that reads it decides."""
    total = nodes.call("COALESCE", _total(value, source), ZERO)
    if result.is_decimal:
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
_FLOAT_OPERATORS = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div}

FUNCTORS: dict[tuple[str, Kind], FunctorForm] = {
    **{(name, Kind.FLOAT): float_operator(made) for name, made in _FLOAT_OPERATORS.items()},
    ("+", Kind.DECIMAL): sum_of_decimals("+", exp.Add),
    ("-", Kind.DECIMAL): sum_of_decimals("-", exp.Sub),
    ("*", Kind.DECIMAL): product_of_decimals,
    ("/", Kind.DECIMAL): FunctorForm(quotient_of_decimals, is_fallible=True),
    ("neg", Kind.DECIMAL): FunctorForm(negate_decimal),
    **{("min", kind): extreme(is_larger=False) for kind in PRIMITIVES},
    **{("max", kind): extreme(is_larger=True) for kind in PRIMITIVES},
    ("min", Kind.DECIMAL): extreme_decimal(is_larger=False),
    ("max", Kind.DECIMAL): extreme_decimal(is_larger=True),
    **{(name, Kind.DECIMAL): FunctorForm(decimal_text) for name in ("to_string", "show")},
    ("to_number", Kind.DECIMAL): decimal_to(BIGINT),
    ("to_unsigned", Kind.DECIMAL): decimal_to(UBIGINT),
    ("to_float", Kind.DECIMAL): FunctorForm(decimal_to_float, is_fallible=True),
    **{("to_decimal", kind): to_decimal for kind in (*_INTEGRAL, Kind.DECIMAL)},
    ("like", Kind.SYMBOL): FunctorForm(_like),
    ("multiply", Kind.DECIMAL): product_of_decimals,
    ("fit", Kind.DECIMAL): fit_decimal,
    ("round_to", Kind.DECIMAL): round_decimal,
    **{("round_to", kind): FunctorForm(_round_integer) for kind in _INTEGRAL},
    ("abs", Kind.DECIMAL): FunctorForm(absolute_decimal),
    ("to_integer", Kind.NUMBER): FunctorForm(_within_bits, is_fallible=True),
}

_SUMMED = (Kind.NUMBER, Kind.UNSIGNED, Kind.DECIMAL)
AGGREGATES: dict[tuple[str, Kind], AggregateForm] = {
    **{("sum", kind): _sum for kind in _SUMMED},
    **{("mean", kind): _mean for kind in _SUMMED},
    **{("min", kind): aggregate("MIN") for kind in PRIMITIVES},
    **{("max", kind): aggregate("MAX") for kind in PRIMITIVES},
}

DUCKDB = SqlDialect(
    DialectName.DUCKDB,
    has_codes=True,
    type_name=type_name,
    constant=constant,
    functors=FUNCTORS,
    predicates={
        "match": FunctorForm(_matches, is_fallible=True, fault=_is_invalid),
        "contains": FunctorForm(contains),
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
