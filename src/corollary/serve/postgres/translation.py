"""Queries and writes in PostgreSQL's dialect as texts of Corollary's SQL.

The text is parsed by sqlglot, changed as a tree, and written in Spark's dialect, which
`frontends/sql` reads. Values are never put into the text: `$1` becomes the parameter `:p1`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError
from sqlglot.parsers.postgres import PostgresParser

from corollary.data_class import dataclass
from corollary.frontends.sql.parse import BoundedParser
from corollary.serve.postgres.inference import ExpressionTypes, cast_type, parameter_number
from corollary.serve.postgres.parameters import ParameterValue, Scalar
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import with_placeholders
from corollary.serve.postgres.wire_types import INT2, INT4, INT8

SPARK = "spark"
TOKENS_MAX = 100_000
"""How many words, values and signs a statement may have, with the elements of lists bound to it."""
PUBLIC = "public"
CATALOG_SCHEMAS = frozenset({"pg_catalog", "information_schema"})
_INTEGERS = frozenset({INT2.oid, INT4.oid, INT8.oid})
_CLOCKS = (exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentDatetime)
_CLOCK_NAMES = frozenset({"now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"})


class _Parser(BoundedParser, PostgresParser):
    """PostgreSQL's parser, with a bound on its work."""


def parse_tree(text: str) -> exp.Expr:
    """Return the tree of one statement.

    Raises:
        PgError: it cannot be read, or is too large.
        RecursionError: it is nested too deeply.
    """
    placed = with_placeholders(text)
    try:
        tokens = Postgres().tokenize(placed)
        check_size(len(tokens))
        trees = _Parser(dialect=Postgres()).parse(tokens, placed)
    except (ParseError, TokenError, ValueError) as problem:
        raise PgError("42601", _sentence(problem)) from None
    found = [each for each in trees if each is not None]
    if len(found) != 1:
        raise PgError("42601", "One statement is expected.")
    return found[0]


def check_size(tokens: int, values: Iterable[ParameterValue] = ()) -> None:
    """Refuse a statement that is too large.

    Raises:
        PgError: it is.
    """
    if tokens + sum(len(each) for each in values if isinstance(each, list)) > TOKENS_MAX:
        raise PgError(
            "54001",
            f"A statement has at most {TOKENS_MAX:,} words, values and signs.",
            "send fewer values at once",
        )


def _sentence(problem: Exception) -> str:
    if isinstance(problem, ParseError) and problem.errors:
        first = problem.errors[0]
        near = str(first.get("highlight") or "").strip()
        if near:
            return f"The statement cannot be read at or near `{near[:40]}`."
    return "The statement cannot be read."


def rewrite_tree(tree: exp.Expr, replaced: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a tree in which a function has replaced every node, inner ones first."""
    for node in reversed(list(tree.walk())):
        parent, key, index = node.parent, node.arg_key, node.index
        found = replaced(node)
        if found is node:
            continue
        if parent is None or key is None or node is tree:
            tree = found
        elif index is None:
            parent.set(key, found)
        else:
            # Not by `set`, which visits all elements of a list to replace one of them.
            parent.args[key][index] = found
            found.parent, found.arg_key, found.index = parent, key, index
    return tree


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that a statement reads; not its own common tables, and no functions."""
    ctes = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in ctes):
            yield table


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
    """A statement in Corollary's SQL, and the values of its parameters."""

    sql: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TranslatedShape:
    """A statement in Corollary's SQL for all values of the same types.

    Attributes:
        names: the names of its parameters, each with the number of its value.
    """

    sql: str
    names: tuple[tuple[str, int], ...]

    def with_values(self, values: Sequence[ParameterValue]) -> TranslatedStatement:
        """Return the statement for some values."""
        used = {name: _plain_value(values[at]) for name, at in self.names}
        return TranslatedStatement(self.sql, used)


_PLAIN = (int, str, float, bool, type(None), date, datetime)
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
        case date():
            return value.isoformat()
        case _:
            return value


@dataclass(slots=True)
class Translator:
    """Translates one statement.

    Attributes:
        relations: what the statement may name; the types of untyped texts follow from them.
        values: what is bound to `$1`, `$2` ….
        now: the time that the clock shows.
        prefix: what the names of parameters begin with.
    """

    relations: VisibleRelations
    values: Sequence[ParameterValue] = ()
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    prefix: str = "p"
    _used: dict[str, Any] = field(default_factory=dict)

    def translate(self, tree: exp.Expr) -> TranslatedStatement:
        """Return a statement in Corollary's SQL.

        Raises:
            PgError: a part of it is not supported, or it is too large.
            RecursionError: it is nested too deeply.
        """
        check_size(0, self.values)
        self._used = {}
        tree = tree.copy()
        name_columns(tree)
        _refuse_clauses(tree)
        try:
            tree = _keep_order(rewrite_tree(self._coerce_texts(tree), self._replaced))
            text = tree.sql(
                SPARK, copy=False, identify=True, unsupported_level=ErrorLevel.RAISE, comments=False
            )
        except UnsupportedError as problem:
            reason = str(problem).splitlines()[0].rstrip(".")
            raise not_supported(f"A part of the statement is not supported: {reason}.") from None
        return TranslatedStatement(text, self._used)

    def shape(self, tree: exp.Expr, translated: TranslatedStatement) -> TranslatedShape | None:
        """Return a translation for other values of the same types; None if there is none."""
        for node in tree.walk():
            in_limit = isinstance(node.parent, exp.Limit | exp.Offset | exp.Fetch)
            if is_clock(node) or (isinstance(node, exp.Placeholder) and in_limit):
                return None
        start = len(self.prefix)
        names = tuple((name, int(name[start:]) - 1) for name in translated.parameters)
        return TranslatedShape(translated.sql, names)

    def _coerce_texts(self, tree: exp.Expr) -> exp.Expr:
        """Give texts without a type, such as `'2026-01-05'`, that of what they are compared with.

        PostgreSQL does that when it binds a statement; Corollary's SQL converts nothing by itself.
        """
        types = ExpressionTypes.of(tree, self.relations)

        def coerced(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Literal) or not node.is_string:
                return node
            wanted = types.of_constant(node)
            target = None if wanted is None or wanted.category == "S" else cast_type(wanted)
            if target is None or isinstance(node.parent, exp.Cast):
                return node
            return exp.Cast(this=node.copy(), to=target)

        tree = rewrite_tree(tree, coerced)
        if tree.find(exp.Div) is None:
            return tree
        types = ExpressionTypes.of(tree, self.relations)

        def divided(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Div):
                return node
            kinds = (types.of_expression(each) for each in (node.left, node.right))
            if all(each is not None and each.oid in _INTEGERS for each in kinds):
                return exp.IntDiv(this=node.left, expression=node.right)
            return node

        return rewrite_tree(tree, divided)

    def _replaced(self, node: exp.Expr) -> exp.Expr:
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
        if isinstance(node, exp.Placeholder):
            return self._parameter(node)
        if isinstance(node, exp.DataType):
            return _data_type(node)
        if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
            return _element_of(node)
        if isinstance(node, exp.Extract):
            return _extract(node)
        return timestamp_literal(self.now) if is_clock(node) else node

    def _value(self, node: exp.Placeholder) -> ParameterValue:
        number = parameter_number(node)
        if not 1 <= number <= len(self.values):
            raise PgError("42P02", f"There is no parameter ${number}.")
        return self.values[number - 1]

    def _parameter(self, node: exp.Placeholder) -> exp.Expr:
        value = self._value(node)
        if isinstance(value, list):
            if node.find_ancestor(exp.Any) is None:
                raise not_supported("Lists can only be used as in `x = ANY($1)`.")
            name = f"{self.prefix}{parameter_number(node)}"
            return exp.Array(
                expressions=[self._constant(each, f"{name}_{at}") for at, each in enumerate(value)]
            )
        if isinstance(node.parent, exp.Limit | exp.Offset | exp.Fetch):
            if not isinstance(value, int) or value < 0:
                raise PgError("2201W", "LIMIT and OFFSET need numbers that are not negative.")
            return exp.Literal.number(value)
        return self._constant(value, f"{self.prefix}{parameter_number(node)}")

    def _constant(self, value: Scalar | None, name: str) -> exp.Expr:
        """Return a value as a parameter; what JSON does not have goes as a text, with its type."""
        placeholder = exp.Placeholder(this=name)
        match value:
            case datetime():
                self._used[name] = _plain_value(value)
                return exp.cast(placeholder, exp.DataType.Type.TIMESTAMPTZ)
            case date():
                self._used[name] = _plain_value(value)
                return exp.cast(placeholder, exp.DataType.Type.DATE)
            case Decimal():
                return _decimal(value)
            case _:
                self._used[name] = value
                return placeholder


def _element_of(node: exp.EQ) -> exp.Expr:
    """Return `x = ANY(list)` as `x IN (…)`; an empty list has nothing in it."""
    listed = node.expression.this
    while isinstance(listed, exp.Paren | exp.Cast):
        listed = listed.this
    if not isinstance(listed, exp.Array):
        return node
    elements = [each.copy() for each in listed.expressions]
    return exp.In(this=node.this.copy(), expressions=elements) if elements else exp.false()


def _extract(node: exp.Extract) -> exp.Expr:
    """Return a part of a time; days of the week have other numbers in Spark.

    >>> SELECTED = parse_tree("SELECT extract(dow FROM d) FROM t").selects[0]
    >>> _extract(SELECTED).sql("spark")
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


_TYPES = {
    exp.DataType.Type.TIMESTAMP: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.VARCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.NCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.BPCHAR: exp.DataType.Type.TEXT,
    exp.DataType.Type.NAME: exp.DataType.Type.TEXT,
    exp.DataType.Type.FLOAT: exp.DataType.Type.DOUBLE,
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

    >>> projected_name(parse_tree("SELECT count(*)").selects[0])
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
    for name, shown in (
        ("returning", "RETURNING"),
        ("conflict", "ON CONFLICT"),
        ("using", "USING"),
    ):
        if isinstance(tree, exp.Insert | exp.Delete | exp.Update) and tree.args.get(name):
            raise not_supported(f"{shown} is not supported.", "leave it out")
    if isinstance(tree, exp.Insert) and tree.args.get("default"):
        raise not_supported("DEFAULT VALUES is not supported.", "give a value for each column")
