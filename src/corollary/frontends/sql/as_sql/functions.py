"""Values, types and functors as SQL of another engine."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from math import isfinite, isnan

from sqlglot import exp

from corollary.core import logic
from corollary.core.functors import CHECKED_SUM, read_time_format
from corollary.core.types import Kind, Type

Node = exp.Expr


class SqlDialectName(StrEnum):
    """The engines that SQL is written for."""

    SPARK = "spark"
    DUCKDB = "duckdb"


class NotInSqlError(Exception):
    """Something of a program cannot be said in the dialect; the message says what and why."""


# --- types and values ----------------------------------------------------------------------------

_TYPE_NAMES = {
    Kind.NUMBER: ("BIGINT", "BIGINT"),
    Kind.UNSIGNED: ("DECIMAL(20, 0)", "UBIGINT"),
    Kind.FLOAT: ("DOUBLE", "DOUBLE"),
    Kind.SYMBOL: ("STRING", "TEXT"),
    Kind.BOOL: ("BOOLEAN", "BOOLEAN"),
    Kind.DATE: ("DATE", "DATE"),
    Kind.TIMESTAMP: ("TIMESTAMP", "TIMESTAMP"),
}


def sql_type(type_: Type, dialect: SqlDialectName) -> exp.DataType:
    """Return the type of a column."""
    if type_.kind is Kind.DECIMAL:
        text = f"DECIMAL({type_.precision}, {type_.scale})"
    else:
        text = _TYPE_NAMES[type_.kind][dialect is SqlDialectName.DUCKDB]
    return exp.DataType.build(text, dialect=str(dialect))


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
            is_plain = type_ is None or type_.kind is Kind.NUMBER
            return number if is_plain else cast(number, type_ or Type(Kind.NUMBER), dialect)


# --- functors ------------------------------------------------------------------------------------

SqlForm = Callable[[Sequence[Node], SqlDialectName], Node]
"""Makes the SQL of a functor from its arguments."""


def operand(node: Node) -> Node:
    """Return an operand, in parentheses if it has an operator."""
    is_open = isinstance(node, exp.Binary | exp.Unary | exp.Connector) and not isinstance(
        node, exp.Paren
    )
    return exp.paren(node) if is_open else node


def _infix(node: type[exp.Binary]) -> SqlForm:
    def form(arguments: Sequence[Node], _: SqlDialectName) -> Node:
        left, right = map(operand, arguments)
        return node(this=left, expression=right)

    return form


def _call(spark: str, duckdb: str = "") -> SqlForm:
    def form(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
        name = duckdb or spark if dialect is SqlDialectName.DUCKDB else spark
        return exp.Anonymous(this=name, expressions=list(arguments))

    return form


def _cast_to(kind: Kind) -> SqlForm:
    return lambda arguments, dialect: cast(arguments[0], Type(kind), dialect)


def _start_of(unit: str) -> SqlForm:
    return lambda arguments, _: exp.Anonymous(
        this="date_trunc", expressions=[exp.Literal.string(unit), arguments[0]]
    )


def _substring(arguments: Sequence[Node], _: SqlDialectName) -> Node:
    text, start, length = arguments
    out_of_range = exp.or_(
        exp.LT(this=start.copy(), expression=exp.Literal.number(0)),
        exp.LT(this=length.copy(), expression=exp.Literal.number(0)),
    )
    from_one = exp.Add(this=exp.paren(start), expression=exp.Literal.number(1))
    part = exp.Anonymous(this="substring", expressions=[text, from_one, length])
    return exp.Case().when(out_of_range, exp.Literal.string("")).else_(part)


def _joined_texts(arguments: Sequence[Node], _: SqlDialectName) -> Node:
    joined = arguments[0]
    for part in arguments[1:]:
        joined = exp.DPipe(this=joined, expression=operand(part))
    return joined


def _integer_division(arguments: Sequence[Node], _: SqlDialectName) -> Node:
    left, right = map(operand, arguments)
    return exp.IntDiv(this=left, expression=right)


def _like(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
    text, pattern = map(operand, arguments)
    like = exp.Like(this=text, expression=pattern)
    if dialect is SqlDialectName.SPARK:
        return like
    return exp.Escape(this=like, expression=exp.Literal.string("\\"))


def _choice(arguments: Sequence[Node], _: SqlDialectName) -> Node:
    case = exp.Case()
    for condition, chosen in zip(arguments[:-1:2], arguments[1::2], strict=True):
        case = case.when(condition, chosen)
    return case.else_(arguments[-1])


def _add_interval(unit: str) -> SqlForm:
    def form(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
        moment, count = arguments
        if dialect is SqlDialectName.DUCKDB:
            step = exp.Anonymous(this=f"to_{unit}s", expressions=[count])
        else:
            zeros = {"year": 0, "month": 1, "week": 2, "day": 3, "hour": 4, "minute": 5}
            places = zeros.get(unit, 6)
            step = exp.Anonymous(
                this="make_interval",
                expressions=[*(exp.Literal.number(0) for _ in range(places)), count],
            )
        return exp.Add(this=operand(moment), expression=step)

    return form


def _days_between(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
    earlier, later = arguments
    if dialect is SqlDialectName.DUCKDB:
        day = exp.Literal.string("day")
        return exp.Anonymous(this="date_diff", expressions=[day, earlier, later])
    return exp.Anonymous(this="datediff", expressions=[later, earlier])


def _microseconds(node: Node, dialect: SqlDialectName) -> Node:
    name = "epoch_us" if dialect is SqlDialectName.DUCKDB else "unix_micros"
    return exp.Anonymous(this=name, expressions=[node])


def _microseconds_between(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
    earlier, later = (_microseconds(each, dialect) for each in arguments)
    return exp.Sub(this=later, expression=earlier)


def _seconds_between(arguments: Sequence[Node], dialect: SqlDialectName) -> Node:
    million = exp.Literal.number(1_000_000)
    return _integer_division((_microseconds_between(arguments, dialect), million), dialect)


_BOTH: Mapping[str, SqlForm] = {
    "+": _infix(exp.Add),
    "-": _infix(exp.Sub),
    "*": _infix(exp.Mul),
    "%": _infix(exp.Mod),
    "neg": lambda arguments, _: exp.Neg(this=operand(arguments[0])),
    "min": _call("least"),
    "max": _call("greatest"),
    "cat": _joined_texts,
    "strlen": _call("length"),
    "substr": _substring,
    "to_float": _cast_to(Kind.FLOAT),
    "to_date": _cast_to(Kind.DATE),
    "to_timestamp": _cast_to(Kind.TIMESTAMP),
    "year": _call("year"),
    "quarter": _call("quarter"),
    "month": _call("month"),
    "day": _call("day"),
    "hour": _call("hour"),
    "minute": _call("minute"),
    "second": _call("second"),
    "day_of_year": _call("dayofyear"),
    "week": _call("weekofyear"),
    "add_months": _add_interval("month"),
    "add_days": _add_interval("day"),
    "add_seconds": _add_interval("second"),
    "days_between": _days_between,
    "microseconds_between": _microseconds_between,
    "seconds_between": _seconds_between,
    **{
        f"start_of_{unit}": _start_of(unit)
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "band": _infix(exp.BitwiseAnd),
    "bor": _infix(exp.BitwiseOr),
    "eq": _infix(exp.EQ),
    "ne": _infix(exp.NEQ),
    "lt": _infix(exp.LT),
    "le": _infix(exp.LTE),
    "gt": _infix(exp.GT),
    "ge": _infix(exp.GTE),
    "same": _infix(exp.NullSafeEQ),
    "and": lambda arguments, _: exp.and_(*arguments),
    "or": lambda arguments, _: exp.or_(*arguments),
    "not": lambda arguments, _: exp.not_(operand(arguments[0])),
    "is_null": lambda arguments, _: exp.Is(this=operand(arguments[0]), expression=exp.null()),
    "if": _choice,
    "coalesce": _call("coalesce"),
    "null_if": _call("nullif"),
    "greatest": _call("greatest"),
    "least": _call("least"),
    "like": _like,
    "abs": _call("abs"),
    "sqrt": _call("sqrt"),
    "power": _call("power"),
    "upper": _call("upper"),
    "lower": _call("lower"),
    "reverse": _call("reverse"),
    "replace": _call("replace"),
    "repeat": _call("repeat"),
    "starts_with": _call("startswith", "starts_with"),
    "ends_with": _call("endswith", "ends_with"),
    "has_text": _call("contains"),
    "lpad": _call("lpad"),
    "rpad": _call("rpad"),
    "left": _call("left"),
    "right": _call("right"),
}
"""The functors that both dialects have, whatever the types of their arguments."""


_CHOICES = frozenset({"if", "coalesce", "null_if", "greatest", "least", "min", "max"})
"""The functors whose result is one of their arguments."""


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
    kind = types[0].kind if types else Kind.DATE
    if name == CHECKED_SUM:
        return arguments[0]
    if name == "/":
        form = _integer_division if kind in (Kind.NUMBER, Kind.UNSIGNED) else _infix(exp.Div)
        return _of_type(form(arguments, dialect), types, type_, dialect)
    if name == "to_decimal" and kind is not Kind.FLOAT:
        return cast(arguments[0], type_, dialect)
    if name in ("to_number", "to_unsigned") and kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.BOOL):
        return cast(arguments[0], type_, dialect)
    if name == "to_number" and kind in (Kind.FLOAT, Kind.DECIMAL):
        cut = exp.Anonymous(this="trunc", expressions=[arguments[0]])
        is_duckdb = dialect is SqlDialectName.DUCKDB
        return cast(cut if is_duckdb else arguments[0], type_, dialect)
    if name == "to_string" and kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.BOOL, Kind.DATE):
        return cast(arguments[0], type_, dialect)
    if name == "weekday":
        if dialect is SqlDialectName.DUCKDB:
            return exp.Anonymous(this="isodow", expressions=list(arguments))
        from_zero = exp.Anonymous(this="weekday", expressions=list(arguments))
        return exp.Add(this=from_zero, expression=exp.Literal.number(1))
    if name == "format_time" and isinstance(arguments[1], exp.Literal):
        return _formatted(arguments[0], arguments[1].this, dialect)
    if name in _CHOICES and type_.kind is Kind.DECIMAL:  # SQL takes the digits of one arm for all
        arguments = [
            cast(each, type_, dialect) if of.kind is Kind.DECIMAL else each
            for each, of in zip(arguments, types, strict=True)
        ]
    found = _BOTH.get(name)
    if found is None:
        raise NotInSqlError(f"`{name}` of {kind} has no counterpart in {dialect_title(dialect)}")
    return _of_type(found(arguments, dialect), types, type_, dialect)


def _of_type(node: Node, types: Sequence[Type], type_: Type, dialect: SqlDialectName) -> Node:
    """Return a result of decimals, or of dates and times, with the type that it has in rules."""
    if type_.kind is Kind.DECIMAL or (type_.kind in (Kind.DATE, Kind.TIMESTAMP) and types):
        return cast(node, type_, dialect)
    return node


def dialect_title(dialect: SqlDialectName) -> str:
    """Return how messages call a dialect."""
    return {"spark": "Spark SQL", "duckdb": "DuckDB"}[dialect]


_JAVA_LETTERS = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
    "%f": "SSSSSS",
    "%j": "DDD",
    "%b": "MMM",
    "%B": "MMMM",
    "%a": "EEE",
    "%A": "EEEE",
    "%%": "%",
}


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
