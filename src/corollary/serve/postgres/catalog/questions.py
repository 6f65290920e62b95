"""Catalog queries in PostgreSQL's dialect as queries of DuckDB.

What depends on the session (`current_user`, `current_setting(…)`) becomes a constant. Functions
are those that `functions` lists, so that a query reaches nothing but the catalog.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import cast

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from corollary.data_class import dataclass
from corollary.frontends.sql.parse import rewrite_tree
from corollary.serve.postgres import translation
from corollary.serve.postgres.catalog.functions import (
    EMPTY_TABLES,
    INFORMATION,
    MACROS,
    PLAIN_FUNCTIONS,
    SYSTEM,
    catalog_tables,
)
from corollary.serve.postgres.messages import TEXT_FORMAT
from corollary.serve.postgres.parameters import ParameterValue, decode_parameter
from corollary.serve.postgres.problems import PgError, not_supported
from corollary.serve.postgres.wire_types import TEXT

_FILE_FUNCTIONS = (exp.ReadCSV, exp.ReadParquet)
_OBJECT_TABLES = frozenset({"regclass", "regtype", "regnamespace"})
_REG_TYPES = frozenset({"regclass", "regtype", "regnamespace", "regproc", "regrole", "regoper"})
_DUCKDB_TYPES = {
    **dict.fromkeys(("name", "char", "text", "varchar", "bpchar"), "VARCHAR"),
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "oid": "UINTEGER",
    "int2vector": "SMALLINT[]",
    "oidvector": "UINTEGER[]",
    "bool": "BOOLEAN",
}


@dataclass(frozen=True, slots=True)
class SessionValues:
    """What the functions of the session give.

    Attributes:
        user, database: the names.
        process: the number of the connection.
        version: what `version()` gives.
        setting: returns the value of a setting, or None.
        set_config: changes a setting.
    """

    user: str
    database: str
    process: int
    version: str
    setting: Callable[[str], str | None]
    set_config: Callable[[str, str, bool], str]


def catalog_sql(tree: exp.Expr, values: Sequence[ParameterValue], session: SessionValues) -> str:
    """Return a catalog query as DuckDB runs it.

    Raises:
        PgError: it calls a function that is not known, or names a table that is not there.
    """
    tree = tree.copy()
    if not isinstance(tree, exp.Query | exp.Values):
        raise not_supported("Only queries can read the catalog.")
    translation.name_columns(tree)
    rewriting = _CatalogRewriting(values, session)
    tree = rewrite_tree(tree, rewriting.replaced)
    rewriting.check_functions(tree)
    try:
        return tree.sql("duckdb", unsupported_level=ErrorLevel.IGNORE, comments=False)
    except (SqlglotError, ValueError) as problem:
        raise not_supported(f"A part of the query is not supported: {problem}.") from None


@dataclass(frozen=True, slots=True)
class _CatalogRewriting:
    values: Sequence[ParameterValue]
    session: SessionValues
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def replaced(self, node: exp.Expr) -> exp.Expr:
        """Return what stands for one node."""
        match node:
            case exp.Table():
                return _table(node)
            case exp.Placeholder():
                return self._constant(translation.parameter_number(node))
            case exp.Collate() | exp.AtTimeZone():
                return cast("exp.Expr", node.this)
            case exp.Operator():
                return _operator(node)
            case exp.EQ() | exp.NEQ():
                return _element_of_text(node)
            case exp.Cast():
                return _cast(node)
            case exp.Dot():
                return _unqualified(node)
            case exp.Column() if node.db:
                node.set("db", None)
                node.set("catalog", None)
                return node
            case _ if translation.is_clock(node):
                return translation.timestamp_literal(self.now)
            case _:
                return self._session_value(node)

    def _constant(self, number: int) -> exp.Expr:
        if not 1 <= number <= len(self.values):
            raise PgError("42P02", f"There is no parameter ${number}.")
        return _literal(self.values[number - 1])

    def _session_value(self, node: exp.Expr) -> exp.Expr:
        """Return the value of a function that is about the session."""
        if not isinstance(node, exp.Func | exp.Column):
            return node
        if isinstance(node, exp.Column) and (node.table or node.this.quoted):
            return node
        name = _function_name(node)
        arguments = _arguments(node)
        session = self.session
        match name:
            case "current_user" | "session_user" | "user" | "current_role" | "getpgusername":
                return _text(session.user)
            case "current_database" | "current_catalog":
                return _text(session.database)
            case "current_schema":
                return _text("public")
            case "current_schemas":
                has_system = bool(arguments) and isinstance(arguments[0], exp.Boolean)
                names = ["pg_catalog"] if has_system and arguments[0].this else []
                return exp.Array(expressions=[_text(each) for each in [*names, "public"]])
            case "pg_backend_pid":
                return exp.Literal.number(session.process)
            case "version" | "current_version" if not isinstance(node, exp.Column):
                return _text(session.version)
            case "current_setting":
                found = session.setting(_constant_text(arguments[0]).lower())
                if found is None and len(arguments) < 2:
                    raise PgError("42704", f"There is no setting `{_constant_text(arguments[0])}`.")
                return exp.null() if found is None else _text(found)
            case "set_config":
                is_local = isinstance(arguments[2], exp.Boolean) and bool(arguments[2].this)
                name, value = _constant_text(arguments[0]), _constant_text(arguments[1])
                return _text(session.set_config(name.lower(), value, is_local))
            case "inet_server_addr" | "inet_client_addr" | "inet_server_port":
                return exp.null()
            case "json_build_object":
                return exp.null()  # of identity columns, which there are none of
            case _:
                return node

    def check_functions(self, tree: exp.Expr) -> None:
        """Refuse functions that are not listed.

        Raises:
            PgError: there is one.
        """
        for node in tree.find_all(exp.Func):
            name = _function_name(node)
            is_listed = name in MACROS or name in PLAIN_FUNCTIONS
            if isinstance(node, _FILE_FUNCTIONS) or (
                isinstance(node, exp.Anonymous) and not is_listed
            ):
                raise PgError(
                    "42883", f"There is no function `{name}` here.", "ask for relations instead"
                )


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous | exp.Column):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return list(node.iter_expressions())


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _constant_text(node: exp.Expr) -> str:
    while isinstance(node, exp.Cast):
        node = node.this
    if not isinstance(node, exp.Literal):
        raise not_supported("The name and value of a setting have to be constants.")
    return str(node.this)


def _literal(value: ParameterValue) -> exp.Expr:
    match value:
        case None:
            return exp.null()
        case list():
            return exp.Array(expressions=[_literal(each) for each in value])
        case bool():
            return exp.true() if value else exp.false()
        case int() | float() | Decimal():
            literal: exp.Expr = exp.Literal.number(str(abs(value)))
            return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal
        case datetime():
            return exp.cast(_text(value.isoformat()), exp.DataType.Type.TIMESTAMPTZ)
        case date():
            return exp.cast(_text(value.isoformat()), exp.DataType.Type.DATE)
        case time():
            return exp.cast(_text(value.isoformat()), exp.DataType.Type.TIME)
        case timedelta():
            seconds = exp.Literal.number(
                format(Decimal(value // timedelta(microseconds=1)) / 10**6)
            )
            return exp.Anonymous(this="to_seconds", expressions=[seconds])
        case str():
            return _text(value)
        case bytes():
            return exp.Unhex(this=_text(value.hex()))


def _table(node: exp.Table) -> exp.Expr:
    """Return a table of the catalog under its name here."""
    if not isinstance(node.this, exp.Identifier):
        node.set("db", None)  # a function, such as `pg_catalog.generate_series(1, 3)`
        return node
    schema, name = node.db.lower(), node.name.lower()
    own = INFORMATION if schema == "information_schema" else SYSTEM
    if name in catalog_tables(own):
        node.set("db", exp.to_identifier(own))
    elif name in EMPTY_TABLES.get(schema or "pg_catalog", ()):
        node.set("db", exp.to_identifier(schema or "pg_catalog"))
    elif not schema:
        return node  # a common table of the query
    else:
        raise PgError("42P01", f"There is no table `{schema}.{name}` here.")
    node.set("catalog", None)
    if not node.alias:
        # Columns may be qualified with the name of the table.
        return exp.alias_(node, name, table=True)
    return node


def _operator(node: exp.Operator) -> exp.Expr:
    """Return `OPERATOR(pg_catalog.~)` as the operator that it names."""
    named = node.args.get("operator")
    symbol = (named if isinstance(named, str) else named.name if named else "").rpartition(".")[2]
    symbol = symbol.strip() or "="
    kinds: Mapping[str, type[exp.Binary]] = {"=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like}
    if symbol in ("~", "~*"):
        return exp.RegexpLike(this=node.this, expression=node.expression)
    if symbol not in kinds:
        raise not_supported(f"The operator {symbol} is not supported in the catalog.")
    return kinds[symbol](this=node.this, expression=node.expression)


def _element_of_text(node: exp.EQ | exp.NEQ) -> exp.Expr:
    """Return `x = ANY ('{a,b}')` as `x IN ('a', 'b')`, and `x <> ALL ('{a,b}')` likewise."""
    quantified = node.expression
    is_all = isinstance(quantified, exp.All) or _function_name(quantified) == "all"
    if not (isinstance(quantified, exp.Any) or is_all) or is_all != isinstance(node, exp.NEQ):
        return node
    listed = _arguments(quantified)[0]
    while isinstance(listed, exp.Paren | exp.Cast):
        listed = listed.this
    if not isinstance(listed, exp.Literal) or not listed.is_string:
        return node
    elements = decode_parameter(str(listed.this).encode(), TEXT.array, TEXT_FORMAT)
    assert isinstance(elements, list)
    found = exp.In(this=node.this.copy(), expressions=[_literal(each) for each in elements])
    return exp.Not(this=found) if is_all else found


def _unqualified(node: exp.Dot) -> exp.Expr:
    """Return `pg_catalog.f(x)` as `f(x)`; `information_schema._pg_expandarray(x)` likewise."""
    schema = node.this
    name = schema.name.lower() if isinstance(schema, exp.Identifier | exp.Column) else ""
    call: exp.Expr = node.expression
    if name in ("pg_catalog", "information_schema") and not isinstance(call, exp.Identifier):
        if isinstance(call, exp.Anonymous):
            call.set("this", call.name.lower().removeprefix("_"))
        return call
    return node


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a cast; types of names such as `regclass` are looked up."""
    target, inner = _type_name(node.to), node.this
    if target in _REG_TYPES:
        return _named_object(node, target, inner)
    element = target.removesuffix("[]")
    if element not in _DUCKDB_TYPES:
        return node
    if element == "oid" and isinstance(inner, exp.Anonymous) and inner.name.endswith("_text"):
        inner = inner.expressions[0]  # `x::regclass::oid`
    name = _DUCKDB_TYPES[element] + target[len(element) :]
    return exp.cast(inner, exp.DataType.build(name, dialect="duckdb"))


def _named_object(node: exp.Cast, target: str, inner: exp.Expr) -> exp.Expr:
    """Return the number of an object that a text names, or the name of a number."""
    if target not in _OBJECT_TABLES:  # functions, operators, roles: the catalog has their names
        text = inner.this if isinstance(inner, exp.Literal) else ""
        return _text(str(text).removeprefix("pg_catalog.")) if text else inner
    kind = target
    if isinstance(inner, exp.Literal) and inner.is_string:
        return exp.Anonymous(this=f"{kind}_oid", expressions=[inner])
    if isinstance(node.parent, exp.Predicate | exp.In):
        return inner
    if kind == "regtype":
        return exp.Anonymous(this="format_type", expressions=[inner, exp.null()])
    return exp.Anonymous(this=f"{kind}_text", expressions=[inner])


def _type_name(type_: exp.DataType) -> str:
    """Return the name of a type without its schema.

    >>> _type_name(exp.DataType.build("pg_catalog.oid", dialect="postgres", udt=True))
    'oid'
    """
    return type_.sql("postgres").lower().replace("pg_catalog.", "").replace('"', "")
