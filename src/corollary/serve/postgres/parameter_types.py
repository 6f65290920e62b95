"""The types of the parameters of statements: declared by clients, or found by the binder."""

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    FLOAT32,
    NUMBER,
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    Type,
)
from corollary.errors import InputError
from corollary.frontends.sql.statements.unknown_types import NUMERIC, type_statement
from corollary.serve.handlers.failures import service_error
from corollary.serve.postgres import wire_types as wire
from corollary.serve.postgres.problems import PgError, not_supported, pg_error
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.translation import CLOCK, COUNTS, LIST, parameter_number, spark_text
from corollary.serve.postgres.wire_types import WireType, array_of, column_type

_CAST_TYPES = {
    exp.DataType.Type.BOOLEAN: wire.BOOL,
    exp.DataType.Type.SMALLINT: wire.INT2,
    exp.DataType.Type.INT: wire.INT4,
    exp.DataType.Type.BIGINT: wire.INT8,
    exp.DataType.Type.FLOAT: wire.FLOAT4,
    exp.DataType.Type.DOUBLE: wire.FLOAT8,
    exp.DataType.Type.DECIMAL: wire.NUMERIC,
    exp.DataType.Type.TEXT: wire.TEXT,
    exp.DataType.Type.VARCHAR: wire.VARCHAR,
    exp.DataType.Type.DATE: wire.DATE,
    exp.DataType.Type.VARBINARY: wire.BYTEA,
    exp.DataType.Type.BINARY: wire.BYTEA,
    exp.DataType.Type.TIMESTAMP: wire.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: wire.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: wire.TIMESTAMPTZ,
    exp.DataType.Type.TIME: wire.TIME,
    exp.DataType.Type.UUID: wire.UUID,
    exp.DataType.Type.JSON: wire.JSON,
    exp.DataType.Type.JSONB: wire.JSONB,
}
"""What `$1::type` declares."""
_BOUND_TYPES: dict[str, Type] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), NUMBER),
    "float4": FLOAT32,
    "float8": FLOAT,
    **dict.fromkeys(("timestamp", "timestamptz"), TIMESTAMP),
    "bool": BOOL,
    "bytea": BINARY,
    "date": DATE,
    "numeric": NUMERIC,
    "time": TIME_OF_DAY,
    "interval": DURATION,
}
"""The types of parameters that are declared, for the binder; others are texts."""


def type_parameters(
    tree: exp.Expr, oids: Sequence[int], relations: VisibleRelations, *, is_catalog: bool
) -> tuple[exp.Expr, tuple[WireType, ...]]:
    """Return a statement in Corollary's SQL, and the types of all its parameters.

    A parameter has the type that is declared, else what is around it says, else it is a text. A
    statement about `pg_catalog` stays as it is.

    Raises:
        PgError: it cannot be translated, or a type is not supported.
    """
    numbers = []
    declared = {at: each for at, oid in enumerate(oids, 1) for each in _declared(oid)}
    for each in tree.find_all(exp.Placeholder):
        numbers.append(parameter_number(each))
        if isinstance(each.parent, exp.Cast) and each.parent.to.this in _CAST_TYPES:
            declared.setdefault(numbers[-1], _CAST_TYPES[each.parent.to.this])
        elif isinstance(each.parent, COUNTS):
            declared.setdefault(numbers[-1], wire.INT8)
    typed, found = tree.copy() if is_catalog else tree, dict(declared)
    if numbers or not is_catalog:
        try:
            typed, bound = _bound(typed, declared, relations)
            found = bound | declared
        except (PgError, SqlglotError, ValueError):  # what the catalog has that Spark has not
            if not is_catalog:
                raise
    count = max([len(oids), *numbers])
    types = tuple(found.get(number, wire.TEXT) for number in range(1, count + 1))
    return tree if is_catalog else typed, types


def _bound(
    tree: exp.Expr, declared: dict[int, WireType], relations: VisibleRelations
) -> tuple[exp.Expr, dict[int, WireType]]:
    """Return a statement as the binder has typed it, with the types of its parameters."""
    given: dict[str, Type] = {}
    for number, type_ in declared.items():
        element = wire.BY_ARRAY.get(type_.oid)
        name = f"p{number}" if element is None else f"{LIST}{number}"
        given[name] = _BOUND_TYPES.get((element or type_).name, SYMBOL).with_null(True)
    try:
        typed, types = type_statement(spark_text(tree), relations.sql_catalog, given)
    except InputError as error:
        raise pg_error(service_error(error)) from None
    found: dict[int, WireType] = {}
    for name, bound in types.items():
        if name.startswith(LIST):
            found[int(name.removeprefix(LIST))] = array_of(column_type(bound)[0])
        elif name != CLOCK:
            found[int(name[1:])] = column_type(bound)[0]
    return typed, found


def _declared(oid: int) -> Iterator[WireType]:
    """Yield the type that a client declares, if it does."""
    if oid in wire.BY_ARRAY:
        yield array_of(wire.BY_ARRAY[oid])
        return
    found = wire.BY_OID.get(oid)
    if found is None and oid:
        raise not_supported(f"Parameters of the type with the number {oid} are not supported.")
    if found is not None and found.category != "X":
        yield found
