"""Values, types and functors as SQL of another engine."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from math import isfinite, isnan

from sqlglot import exp

from corollary.core import logic
from corollary.core.functors.catalog import FUNCTORS, read_time_format
from corollary.core.functors.spec import find_template
from corollary.core.types import Kind, Type
from corollary.frontends.sql.binder.functions.time_functions import PATTERNS
from corollary.sqlgen.templates import fill_template

Node = exp.Expr


class SqlDialectName(StrEnum):
    """The engines that SQL is written for."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class NotInSqlError(Exception):
    """Something of a program cannot be said in the dialect; the message says what and why."""


# --- types and values ----------------------------------------------------------------------------


def sql_type(type_: Type, dialect: SqlDialectName) -> exp.DataType:
    """Return the type of a column."""
    spec = type_.spec
    text = spec.duckdb if dialect is SqlDialectName.DUCKDB else spec.spark
    return exp.DataType.build(text.format(type_), dialect=str(dialect))


def cast(node: Node, type_: Type, dialect: SqlDialectName) -> Node:
    """Return a value converted to a type."""
    return exp.Cast(this=node, to=sql_type(type_, dialect))


def sql_constant(value: logic.Value, type_: Type | None, dialect: SqlDialectName) -> Node:
    """Return a value as a literal of its type."""
    match value:
        case None:
            return exp.null() if type_ is None else cast(exp.null(), type_, dialect)
        case bool():
            return exp.true() if value else exp.false()
        case str():
            return exp.Literal.string(value)
        case datetime():
            text = value.isoformat(sep=" ").removesuffix("+00:00")
            return cast(exp.Literal.string(text), Type(Kind.TIMESTAMP), dialect)
        case date():
            return cast(exp.Literal.string(value.isoformat()), Type(Kind.DATE), dialect)
        case Decimal():
            return cast(exp.Literal.string(str(value)), type_ or Type(Kind.DECIMAL), dialect)
        case float() if isfinite(value):
            return cast(exp.Literal.string(repr(value)), Type(Kind.FLOAT), dialect)
        case float():
            name = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return cast(exp.Literal.string(name), Type(Kind.FLOAT), dialect)
        case int():
            number: Node = exp.Literal.number(abs(value))
            if value < 0:
                number = exp.Neg(this=number)
            is_plain = type_ is None or type_.is_number
            return number if is_plain else cast(number, type_ or Type(Kind.NUMBER), dialect)


# --- functors ------------------------------------------------------------------------------------


def operand(node: Node) -> Node:
    """Return an operand, in parentheses if it has an operator."""
    is_open = isinstance(node, exp.Binary | exp.Unary | exp.Connector) and not isinstance(
        node, exp.Paren
    )
    return exp.paren(node) if is_open else node


def _enclose(parent: Node, child: Node) -> Node:
    """Return an operand of an operator as it needs it: `a AND b = c`, `a || b || c`."""
    if isinstance(parent, exp.Connector):
        is_open = isinstance(child, exp.Connector) and type(child) is not type(parent)
        return exp.paren(child) if is_open else child
    is_chain = isinstance(parent, exp.DPipe) and isinstance(child, exp.DPipe)
    is_operator = isinstance(parent, exp.Binary | exp.Unary) and not isinstance(parent, exp.Paren)
    return operand(child) if is_operator and not is_chain else child


def _choice(arguments: Sequence[Node]) -> Node:
    case = exp.Case()
    for condition, chosen in zip(arguments[:-1:2], arguments[1::2], strict=True):
        case = case.when(condition, chosen)
    return case.else_(arguments[-1])


def sql_functor(
    name: str,
    arguments: Sequence[Node],
    types: Sequence[Type],
    type_: Type,
    dialect: SqlDialectName,
) -> Node:
    """Return a functor applied to arguments.

    Raises:
        NotInSqlError: the dialect has nothing that means the same.
    """
    spec = FUNCTORS.get(name)
    kind = types[0].kind if types else Kind.DATE
    if name == "format_time" and isinstance(arguments[1], exp.Literal):
        return _formatted(arguments[0], arguments[1].this, dialect)
    if spec is not None and spec.is_choice and type_.is_decimal:
        # SQL takes the digits of one arm for all.
        arguments = [
            cast(each, type_, dialect) if of.is_decimal else each
            for each, of in zip(arguments, types, strict=True)
        ]
    if name == "if":
        return _of_type(_choice(arguments), types, type_, dialect)
    template = None if spec is None else find_template(spec.readable, dialect, kind)
    if spec is None or template is None:
        raise NotInSqlError(f"`{name}` of {kind} has no counterpart in {dialect_title(dialect)}")
    made = fill_template(template, spec, arguments, sql_type(type_, dialect), _enclose)
    is_typed = made is arguments[0] or isinstance(made, exp.Cast)
    return made if is_typed else _of_type(made, types, type_, dialect)


def _of_type(node: Node, types: Sequence[Type], type_: Type, dialect: SqlDialectName) -> Node:
    """Return a result of decimals, or of dates and times, with the type that it has in rules."""
    if type_.is_decimal or (type_.kind in (Kind.DATE, Kind.TIMESTAMP) and types):
        return cast(node, type_, dialect)
    return node


def dialect_title(dialect: SqlDialectName) -> str:
    """Return how messages call a dialect."""
    return {"spark": "Spark SQL", "duckdb": "DuckDB"}[dialect]


_JAVA_LETTERS = {directive: java for java, directive in PATTERNS.items()} | {"%%": "%"}


def _formatted(moment: Node, text: str, dialect: SqlDialectName) -> Node:
    written = read_time_format("format_time", text)
    if dialect is SqlDialectName.DUCKDB:
        pattern = exp.Literal.string("".join(written))
        return exp.Anonymous(this="strftime", expressions=[moment, pattern])
    parts = []
    for part in written:
        if part.startswith("%"):
            if part not in _JAVA_LETTERS:
                raise NotInSqlError(f"`{part}` of a format has no counterpart in Spark SQL")
            parts.append(_JAVA_LETTERS[part])
        else:
            quoted = part.replace("'", "''")
            parts.append(f"'{quoted}'" if any(map(str.isalpha, part)) else quoted)
    return exp.Anonymous(
        this="date_format", expressions=[moment, exp.Literal.string("".join(parts))]
    )
