"""Queries and writes in PostgreSQL's dialect as texts of Corollary's SQL.

The text is parsed by sqlglot, changed as a tree, and written in Spark's dialect, which
`frontends/sql` reads and types. Values are never put into the text: `$1` becomes the parameter
`:p1`, or `:list1` where a list is wanted, and `now()` the parameter `:now`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from corollary.core.types import TIME_OF_DAY
from corollary.data_class import dataclass
from corollary.frontends.sql.parse import rewrite_tree
from corollary.frontends.sql.statements.writes import spark_type
from corollary.serve.postgres.copy_in import CopiedRows, CopyReader
from corollary.serve.postgres.parameters import ParameterValue, Scalar
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.relations import TEMPORARY_SCHEMA, VisibleRelations
from corollary.serve.postgres.statements import check_size

SPARK = "spark"
PUBLIC = "public"
CATALOG_SCHEMAS = frozenset({"pg_catalog", "information_schema"})
PARAMETERS_MAX = 65_535
CLOCK = "now"
LIST = "list"
"""What the names of parameters begin with that are lists."""
COUNTS = (exp.Limit, exp.Offset, exp.Fetch)
_CLOCKS = (exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentDatetime)
_CLOCK_NAMES = frozenset({"now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"})


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that a statement reads; not its own common tables, and no functions."""
    ctes = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in ctes):
            yield table


def name_temporary(tree: exp.Expr, relations: VisibleRelations) -> frozenset[str]:
    """Let a statement name the relations of temporary tables, and return these."""
    found = set()
    for table in [*tables_of(tree)] if relations.temporary else []:
        inner = relations.temporary.get(table.name.lower())
        if inner is None or table.db.lower() not in ("", TEMPORARY_SCHEMA):
            continue
        found.add(inner)
        if not table.alias and not isinstance(table.parent, exp.Insert | exp.Schema):
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(inner, quoted=True))
        table.set("db", None)
    return frozenset(found)


def is_catalog_query(tree: exp.Expr, relations: VisibleRelations) -> bool:
    """Return whether a query is about `pg_catalog`, or about the session, and not about data.

    Raises:
        PgError: it reads both.
    """
    has_catalog = has_data = False
    for table in tables_of(tree):
        schema, name = table.db.lower(), table.name.lower()
        if schema in CATALOG_SCHEMAS or (not schema and _is_catalog_name(name, relations)):
            has_catalog = True
        elif schema in ("", PUBLIC):
            has_data = True
        else:
            raise PgError("3F000", f"There is no schema `{table.db}`.", "relations are in `public`")
    if has_catalog and has_data:
        raise not_supported("A query cannot read relations and `pg_catalog` at once.")
    return has_catalog or not has_data


def _is_catalog_name(name: str, relations: VisibleRelations) -> bool:
    return name.startswith("pg_") and name not in relations


@dataclass(frozen=True, slots=True)
class TranslatedStatement:
    """A statement in Corollary's SQL, and the values of its parameters.

    Attributes:
        returned: the digest of the rows that it has returned already, if it did.
        copied: the rows of a COPY, which has no text.
    """

    sql: str
    parameters: Mapping[str, Any]
    is_definition: bool = False
    returned: str | None = None
    copied: CopyReader | CopiedRows | None = None


@dataclass(frozen=True, slots=True)
class TranslatedShape:
    """A statement in Corollary's SQL for all values of the same types.

    Attributes:
        names: the names of its parameters, each with the place of its value; None for the clock.
    """

    sql: str
    names: tuple[tuple[str, int | None], ...]

    def with_values(self, values: Sequence[ParameterValue]) -> TranslatedStatement:
        """Return the statement for some values."""
        used = {
            name: _plain_value(datetime.now(UTC) if at is None else values[at])
            for name, at in self.names
        }
        return TranslatedStatement(self.sql, used)


_PLAIN = (int, str, float, bool, type(None), bytes, date, datetime, time, timedelta)
"""The types of values that are parameters, whichever value they have."""


def shape_key(values: Sequence[ParameterValue], prefix: str) -> object | None:
    """Return what translations of a statement depend on; None if they depend on the values."""
    types = tuple(map(type, values))
    return (prefix, types) if all(each in _PLAIN for each in types) else None


def _plain_value(value: ParameterValue) -> Any:
    """Return a value as JSON has it."""
    match value:
        case datetime():
            return _moment_text(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"{value.days} {timedelta(0, value.seconds, value.microseconds)}"
        case bytes():
            return value.hex()
        case _:
            return value


# --- the syntax ---------------------------------------------------------------------------------


def spark_text(tree: exp.Expr) -> str:
    """Return a statement, which is changed, in Spark's dialect; parameters have no values yet.

    Raises:
        PgError: a part of it is not supported.
        RecursionError: it is nested too deeply.
    """
    name_columns(tree)
    _refuse_clauses(tree)
    return _written(_keep_order(rewrite_tree(tree, _replaced)))


def _written(tree: exp.Expr) -> str:
    try:
        return tree.sql(
            SPARK, copy=False, identify=True, unsupported_level=ErrorLevel.RAISE, comments=False
        )
    except UnsupportedError as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        raise not_supported(f"A part of the statement is not supported: {reason}.") from None


def _replaced(node: exp.Expr) -> exp.Expr:
    """Return what stands for one node."""
    if isinstance(node, exp.Table):
        if node.db.lower() == PUBLIC:
            node.set("db", None)
            node.set("catalog", None)
        return node
    if isinstance(node, exp.Column):
        node.set("db", None)
        node.set("catalog", None)
        return node
    if isinstance(node, exp.DataType):
        return _data_type(node)
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return _element_of(node)
    if isinstance(node, exp.Extract):
        return _extract(node)
    if is_clock(node):
        return exp.cast(exp.Placeholder(this=CLOCK), exp.DataType.Type.TIMESTAMPTZ)
    return node


def _element_of(node: exp.EQ) -> exp.Expr:
    """Return `x = ANY(list)` as `x IN (…)`; an empty list has nothing in it."""
    listed = node.expression.this
    while isinstance(listed, exp.Paren | exp.Cast):
        listed = listed.this
    if isinstance(listed, exp.Placeholder):
        elements: list[exp.Expr] = [exp.Placeholder(this=f"{LIST}{parameter_number(listed)}")]
    elif isinstance(listed, exp.Array):
        elements = [each.copy() for each in listed.expressions]
    else:
        return node
    return exp.In(this=node.this.copy(), expressions=elements) if elements else exp.false()


def _extract(node: exp.Extract) -> exp.Expr:
    """Return a part of a time; days of the week have other numbers in Spark.

    >>> _extract(exp.Extract(this=exp.var("dow"), expression=exp.column("d"))).sql("spark")
    '(EXTRACT(DAYOFWEEK FROM d) - 1)'
    """
    part = node.name.upper()
    if part == "ISODOW":
        node.set("this", exp.var("DAYOFWEEK_ISO"))
    elif part == "DOW":  # Sunday is 0 in PostgreSQL, and 1 in Spark
        found = exp.Extract(this=exp.var("DAYOFWEEK"), expression=node.expression)
        return exp.paren(exp.Sub(this=found, expression=exp.Literal.number(1)), copy=False)
    return node


def _keep_order(tree: exp.Expr) -> exp.Expr:
    """Return a query whose rows stay ordered where `DISTINCT ON` becomes a window."""
    distinct, order = tree.args.get("distinct"), tree.args.get("order")
    if not isinstance(tree, exp.Select) or distinct is None or not distinct.args.get("on"):
        return tree
    names = {each.alias_or_name for each in tree.selects}
    if order is None or not all(each.this.name in names for each in order.expressions):
        return tree
    outer = exp.select("*")
    outer.set("order", order.copy())
    for column in outer.args["order"].find_all(exp.Column):
        column.set("table", None)
    for clause in ("limit", "offset"):
        outer.set(clause, tree.args.get(clause))
        tree.set(clause, None)
    return outer.from_(tree.subquery("distinct_rows", copy=False), copy=False)


# --- parameters ---------------------------------------------------------------------------------


def parameter_number(node: exp.Expr) -> int:
    """Return the number of a parameter, which `with_placeholders` has made of `$1`.

    Raises:
        PgError: it is another kind of parameter.
    """
    number = str(node.this or "").removeprefix(LIST).removeprefix("p")
    if not number.isdecimal() or not 1 <= int(number) <= PARAMETERS_MAX:
        raise PgError("42601", "Parameters are written as in `$1`.")
    return int(number)


def with_values(
    tree: exp.Expr, values: Sequence[ParameterValue], prefix: str = "p"
) -> TranslatedStatement:
    """Return a statement, as the binder has typed it, with values.

    Args:
        tree: the statement.
        values: what is bound to `$1`, `$2` ….
        prefix: what the names of parameters begin with.

    Raises:
        PgError: a value does not fit, or there are too many of them.
    """
    check_size(sum(len(each) for each in values if isinstance(each, list)))
    used: dict[str, Any] = {}

    def constant(value: Scalar | None, name: str) -> exp.Expr:
        """Return a value as a parameter; what JSON does not have goes as a text, with its type."""
        if isinstance(value, Decimal):
            return _decimal(value)
        used[name] = _plain_value(value)
        placeholder = exp.Placeholder(this=name)
        if isinstance(value, bytes):
            return exp.Unhex(this=placeholder)
        for kind, type_ in _CAST_TYPES.items():
            if isinstance(value, kind):
                return exp.cast(placeholder, type_)
        return placeholder

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.In) and len(node.expressions) == 1:
            (only,) = node.expressions
            if isinstance(only, exp.Array):  # the value of a list
                node.set("expressions", only.expressions)
                return node if only.expressions else exp.false()
        if not isinstance(node, exp.Placeholder):
            return node
        if node.name == CLOCK:
            used[f"{prefix}{CLOCK}"] = _moment_text(datetime.now(UTC))
            return exp.Placeholder(this=f"{prefix}{CLOCK}")
        number = parameter_number(node)
        if number > len(values):
            raise PgError("42P02", f"There is no parameter ${number}.")
        value, name = values[number - 1], f"{prefix}{number}"
        if isinstance(value, list):
            if not node.name.startswith(LIST):
                raise not_supported("Lists can only be used as in `x = ANY($1)`.")
            return exp.Array(
                expressions=[constant(each, f"{name}_{at}") for at, each in enumerate(value)]
            )
        if isinstance(node.parent, COUNTS):
            if not isinstance(value, int) or value < 0:
                raise PgError("2201W", "LIMIT and OFFSET need numbers that are not negative.")
            return exp.Literal.number(value)
        return constant(value, name)

    if tree.find(exp.Placeholder) is not None:
        tree = rewrite_tree(tree.copy(), replaced)
    return TranslatedStatement(_written(tree), used)


def translated_shape(
    tree: exp.Expr, translated: TranslatedStatement, prefix: str
) -> TranslatedShape | None:
    """Return a translation for other values of the same types; None if there is none."""
    if any(isinstance(each.parent, COUNTS) for each in tree.find_all(exp.Placeholder)):
        return None
    places = [(name, name[len(prefix) :]) for name in translated.parameters]
    names = ((name, None if number == CLOCK else int(number) - 1) for name, number in places)
    return TranslatedShape(translated.sql, tuple(names))


def _moment_text(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def is_clock(node: exp.Expr) -> bool:
    """Return whether a node asks for the time, as `now()` does."""
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _CLOCK_NAMES
    return is_named or isinstance(node, _CLOCKS)


def timestamp_literal(value: datetime) -> exp.Expr:
    """Return a time."""
    return exp.cast(exp.Literal.string(_moment_text(value)), exp.DataType.Type.TIMESTAMPTZ)


def _decimal(value: Decimal) -> exp.Expr:
    """Return a decimal as a literal, which has as many digits as it shows."""
    if not value.is_finite():
        raise PgError("22003", "A numeric that is not a number has no value here.")
    literal: exp.Expr = exp.Literal.number(format(abs(value), "f"))
    return exp.Neg(this=literal) if value.is_signed() else literal


_CAST_TYPES: Mapping[type, exp.DataType] = {
    datetime: exp.DataType(this=exp.DataType.Type.TIMESTAMPTZ),
    date: exp.DataType(this=exp.DataType.Type.DATE),
    time: spark_type(TIME_OF_DAY),
    timedelta: exp.DataType.build("INTERVAL DAY TO SECOND", dialect=SPARK),
}
"""What the texts are cast to that stand for values which JSON does not have."""
_TYPES = {
    **dict.fromkeys(
        (exp.DataType.Type.UUID, exp.DataType.Type.JSON, exp.DataType.Type.JSONB),
        exp.DataType.Type.TEXT,
    ),
    exp.DataType.Type.TIMESTAMP: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.VARCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.NCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.BPCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.NAME: exp.DataType.Type.TEXT,
}
_NUMERIC = (38, 10)
"""What `numeric` without digits is."""


def _data_type(node: exp.DataType) -> exp.DataType:
    kind = node.this
    if kind is exp.DataType.Type.DECIMAL and not node.expressions:
        digits = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in _NUMERIC]
        return exp.DataType(this=kind, expressions=digits)
    if kind in _TYPES:
        return exp.DataType(this=_TYPES[kind])
    return node


def name_columns(tree: exp.Expr) -> None:
    """Give the columns of a query that have no name the one that PostgreSQL gives them."""
    query = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if isinstance(query, exp.Select):
        query.set("expressions", [_named(each) for each in query.expressions])


def _named(projection: exp.Expr) -> exp.Expr:
    name = projected_name(projection)
    return projection if name is None else exp.alias_(projection, name, quoted=True, copy=False)


def projected_name(projection: exp.Expr) -> str | None:
    """Return the name that PostgreSQL gives to a column without one; None if it has one.

    >>> projected_name(exp.Count(this=exp.Star()))
    'count'
    """
    if isinstance(projection, exp.Alias | exp.Column) or projection.is_star:
        return None
    inner = projection
    while isinstance(inner, exp.Paren):
        inner = inner.this
    match inner:
        case exp.Cast():
            of = inner.this
            if isinstance(of, exp.Column):
                return of.name
            return projected_name(of) or "?column?"
        case exp.TimestampTrunc() | exp.DateTrunc():
            return "date_trunc"
        case exp.Dot():
            return projected_name(inner.expression) or inner.name
        case exp.Anonymous():
            return inner.name.lower()
        case exp.CurrentVersion():
            return "version"
        case exp.Case():
            return "case"
        case exp.Exists():
            return "exists"
        case exp.Connector() | exp.Literal() | exp.Binary() | exp.Unary():
            return "?column?"
        case _ if is_clock(inner):
            return "now"
        case exp.Func():
            return inner.sql_name().lower()
        case exp.Column():
            return inner.name
        case _:
            return "?column?"


def _refuse_clauses(tree: exp.Expr) -> None:
    """Refuse parts of writes that would be passed over.

    Raises:
        PgError: there is one.
    """
    if isinstance(tree, exp.Delete) and tree.args.get("using"):
        raise not_supported("USING is not supported.", "write `WHERE k IN (SELECT …)`")
    if isinstance(tree, exp.Insert) and tree.args.get("default"):
        raise not_supported("DEFAULT VALUES is not supported.", "give a value for each column")
