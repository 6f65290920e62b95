"""The rows of `pg_catalog` and `information_schema`: relations, columns, keys, types, settings."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from corollary.core.program import RelationKind
from corollary.serve.postgres.relations import RelationColumn, VisibleRelation, VisibleRelations
from corollary.serve.postgres.settings import DEFAULTS
from corollary.serve.postgres.wire_types import (
    NUMERIC,
    SCALAR_TYPES,
    UNSIGNED_DIGITS,
    array_of,
    column_type,
)

Row = dict[str, Any]

CATALOG_SCHEMA, PUBLIC_SCHEMA, INFORMATION_SCHEMA = 11, 2200, 13_000
"""The numbers of schemas; those of PostgreSQL where it has fixed ones."""
OWNER_ROLE, DATABASE = 10, 16_384
HEAP, BTREE = 2, 403
FIRST_RELATION = 1 << 20
"""The numbers of relations are made of their names, so that they stay when others come and go."""
KEY_SUFFIX = "_pkey"
DEFAULT_COLLATION = 100


def catalog_rows(relations: VisibleRelations, database: str, user: str) -> dict[str, list[Row]]:
    """Return the rows of the tables that have some; `information_schema.x` is one of the keys."""
    numbers = _numbers(relations)
    found: dict[str, list[Row]] = {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": OWNER_ROLE}
            for oid, name in (
                (CATALOG_SCHEMA, "pg_catalog"),
                (PUBLIC_SCHEMA, "public"),
                (INFORMATION_SCHEMA, "information_schema"),
            )
        ],
        "pg_type": list(_types()),
        "pg_database": [
            {
                "oid": DATABASE,
                "datname": database,
                "datdba": OWNER_ROLE,
                "encoding": 6,
                "datlocprovider": "c",
                "datistemplate": False,
                "datallowconn": True,
                "datconnlimit": -1,
                "dattablespace": 1663,
                "datcollate": "C",
                "datctype": "C",
            }
        ],
        "pg_roles": [_role(OWNER_ROLE, user)],
        "pg_user": [{"usename": user, "usesysid": OWNER_ROLE, "usesuper": False}],
        "pg_am": [
            {"oid": HEAP, "amname": "heap", "amtype": "t"},
            {"oid": BTREE, "amname": "btree", "amtype": "i"},
        ],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": OWNER_ROLE}],
        "pg_collation": [
            {"oid": DEFAULT_COLLATION, "collname": "default", "collnamespace": CATALOG_SCHEMA}
        ],
        "pg_settings": [
            {"name": name, "setting": value, "category": "Session", "vartype": "string"}
            for name, value in sorted(DEFAULTS.items())
        ],
        "pg_timezone_names": [
            {"name": "UTC", "abbrev": "UTC", "utc_offset": "00:00:00", "is_dst": False}
        ],
        "information_schema.schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": user}
            for name in ("public", "pg_catalog", "information_schema")
        ],
    }
    for relation in relations.values():
        for table, row in _relation_rows(relation, numbers, database, user):
            found.setdefault(table, []).append(row)
    return found


def _numbers(relations: VisibleRelations) -> dict[str, int]:
    """Return the numbers of relations, and of the indexes of their keys."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    names = [each.name for each in relations.values()]
    for name in sorted(names + [f"{each}{KEY_SUFFIX}" for each in names]):
        number = FIRST_RELATION + zlib.crc32(name.encode()) % (1 << 30)
        while number in taken:
            number += 1
        taken.add(number)
        found[name] = number
    return found


def _role(oid: int, name: str) -> Row:
    flags = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    return {
        "oid": oid,
        "rolname": name,
        "rolinherit": True,
        "rolcanlogin": True,
        "rolconnlimit": -1,
        **dict.fromkeys(flags, False),
    }


def _types() -> Iterator[Row]:
    for each in SCALAR_TYPES:
        arrays = [(array_of(each), each.oid)] if each.array else []
        for type_, element in [(each, 0), *arrays]:
            yield {
                "oid": type_.oid,
                "typname": type_.name,
                "typnamespace": CATALOG_SCHEMA,
                "typowner": OWNER_ROLE,
                "typlen": type_.size,
                "typbyval": 0 < type_.size <= 8,
                "typtype": "p" if type_.name == "unknown" else "b",
                "typcategory": type_.category,
                "typispreferred": type_.name in ("text", "float8", "bool", "timestamptz", "oid"),
                "typisdefined": True,
                "typdelim": ",",
                "typrelid": 0,
                "typelem": element,
                "typarray": type_.array,
                "typinput": "array_in" if element else f"{type_.name}in",
                "typoutput": "array_out" if element else f"{type_.name}out",
                "typreceive": "array_recv" if element else f"{type_.name}recv",
                "typsend": "array_send" if element else f"{type_.name}send",
                "typnotnull": False,
                "typbasetype": 0,
                "typtypmod": -1,
                "typndims": 0,
                "typcollation": DEFAULT_COLLATION if type_.category == "S" else 0,
                "sqlname": type_.sql_name,
            }


_KINDS = {RelationKind.BASE: "r", RelationKind.DERIVED: "m", RelationKind.VIRTUAL: "v"}
"""What `pg_class` calls them: tables, materialised views, views."""


# --- relations ----------------------------------------------------------------------------------


def _relation_rows(
    relation: VisibleRelation, numbers: Mapping[str, int], database: str, user: str
) -> Iterator[tuple[str, Row]]:
    oid, name = numbers[relation.name], relation.name
    place = {"table_catalog": database, "table_schema": "public", "table_name": name}
    yield (
        "pg_class",
        _class_row(oid, name, _KINDS[RelationKind(relation.kind)], len(relation.columns), relation),
    )
    for number, column in enumerate(relation.columns, 1):
        yield "pg_attribute", _attribute(oid, number, column)
        yield "information_schema.columns", {**place, **_column(number, column, database)}
    yield (
        "information_schema.tables",
        {
            **place,
            "table_type": "BASE TABLE" if relation.is_base else "VIEW",
            "is_insertable_into": "YES" if relation.is_base else "NO",
            "is_typed": "NO",
        },
    )
    rights = ("SELECT", "INSERT", "DELETE", "UPDATE") if relation.is_base else ("SELECT",)
    for right in rights:
        grant = {"grantor": user, "grantee": user, **place, "privilege_type": right}
        yield "information_schema.role_table_grants", {**grant, "is_grantable": "NO"}
        yield "information_schema.table_privileges", {**grant, "is_grantable": "NO"}
    yield (
        "pg_stat_user_tables",
        {
            "relid": oid,
            "schemaname": "public",
            "relname": name,
            "n_live_tup": relation.tuples or 0,
        },
    )
    if relation.is_base:
        yield (
            "pg_tables",
            {
                "schemaname": "public",
                "tablename": name,
                "tableowner": user,
                "hasindexes": bool(relation.key),
                **dict.fromkeys(("hasrules", "hastriggers", "rowsecurity"), False),
            },
        )
        if relation.key:
            yield from _key_rows(relation, numbers, place)
        return
    definition = f"-- `{name}` is defined by the program of the warehouse"
    if relation.kind == RelationKind.VIRTUAL:
        yield (
            "pg_views",
            {
                "schemaname": "public",
                "viewname": name,
                "viewowner": user,
                "definition": definition,
            },
        )
    else:
        yield (
            "pg_matviews",
            {
                "schemaname": "public",
                "matviewname": name,
                "matviewowner": user,
                "hasindexes": False,
                "ispopulated": True,
                "definition": definition,
            },
        )
    yield (
        "information_schema.views",
        {
            **place,
            "view_definition": definition,
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "NO",
        },
    )


def _class_row(oid: int, name: str, kind: str, columns: int, relation: VisibleRelation) -> Row:
    is_index = kind == "i"
    flags = (
        *("relisshared", "relhastriggers", "relhassubclass", "relrowsecurity"),
        *("relforcerowsecurity", "relispartition"),
    )
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": PUBLIC_SCHEMA,
        "relowner": OWNER_ROLE,
        "reltuples": float(relation.tuples if relation.tuples is not None else -1),
        "relam": BTREE if is_index else HEAP if kind == "r" else 0,
        "relhasindex": bool(relation.key) and not is_index,
        "relpersistence": "p",
        "relkind": kind,
        "relnatts": columns,
        "relhasrules": kind == "v",
        "relispopulated": True,
        "relreplident": "d" if kind == "r" else "n",
        **dict.fromkeys(flags, False),
        **dict.fromkeys(("relpages", "relallvisible", "relchecks"), 0),
        **dict.fromkeys(("reltype", "reloftype", "relfilenode", "reltablespace"), 0),
        **dict.fromkeys(("reltoastrelid", "relrewrite"), 0),
    }


def _attribute(oid: int, number: int, column: RelationColumn) -> Row:
    type_, modifier = column_type(column.type)
    return {
        "attrelid": oid,
        "attname": column.name,
        "atttypid": type_.oid,
        "attstattarget": -1,
        "attlen": type_.size,
        "attnum": number,
        "attndims": 0,
        "attcacheoff": -1,
        "atttypmod": modifier,
        "attbyval": 0 < type_.size <= 8,
        "attalign": "i",
        "attstorage": "x" if type_.size < 0 else "p",
        "attcompression": "",
        "attnotnull": not column.type.nullable,
        "attidentity": "",
        "attgenerated": "",
        "attislocal": True,
        "attinhcount": 0,
        "attcollation": DEFAULT_COLLATION if type_.category == "S" else 0,
        **dict.fromkeys(("atthasdef", "atthasmissing", "attisdropped"), False),
    }


def _column(number: int, column: RelationColumn, database: str) -> Row:
    type_, _ = column_type(column.type)
    row: Row = {
        "column_name": column.name,
        "ordinal_position": number,
        "is_nullable": "YES" if column.type.nullable else "NO",
        "data_type": type_.sql_name,
        "udt_catalog": database,
        "udt_schema": "pg_catalog",
        "udt_name": type_.name,
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "is_generated": "NEVER",
        "is_updatable": "YES",
    }
    if type_ is NUMERIC:
        is_decimal = column.type.is_decimal
        row["numeric_precision"] = column.type.precision if is_decimal else UNSIGNED_DIGITS
        row["numeric_precision_radix"] = 10
        row["numeric_scale"] = column.type.scale
    elif type_.category == "N":
        row["numeric_precision"] = 64 if type_.name == "int8" else 53
        row["numeric_precision_radix"] = 2
        row["numeric_scale"] = 0 if type_.name == "int8" else None
    elif type_.category == "D":
        row["datetime_precision"] = 6 if type_.name == "timestamptz" else 0
    return row


def _key_rows(
    relation: VisibleRelation, numbers: Mapping[str, int], place: Row
) -> Iterator[tuple[str, Row]]:
    oid, name = numbers[relation.name], f"{relation.name}{KEY_SUFFIX}"
    index = numbers[name]
    by_name = {column.name: number for number, column in enumerate(relation.columns, 1)}
    columns = [by_name[each] for each in relation.key]
    listed = ", ".join(map(_quoted, relation.key))
    key = f"PRIMARY KEY ({listed})"
    yield "pg_class", _class_row(index, name, "i", len(columns), relation)
    for number, at in enumerate(columns, 1):
        yield "pg_attribute", _attribute(index, number, relation.columns[at - 1])
    yield (
        "pg_index",
        {
            "indexrelid": index,
            "indrelid": oid,
            "indnatts": len(columns),
            "indnkeyatts": len(columns),
            "indkey": columns,
            "indclass": [0] * len(columns),
            "indcollation": [0] * len(columns),
            "indoption": [0] * len(columns),
            **dict.fromkeys(("indisunique", "indisprimary", "indimmediate", "indisvalid"), True),
            **dict.fromkeys(("indisready", "indislive"), True),
            **dict.fromkeys(("indisexclusion", "indisclustered", "indcheckxmin"), False),
            **dict.fromkeys(("indisreplident", "indnullsnotdistinct"), False),
        },
    )
    yield (
        "pg_constraint",
        {
            "oid": index,
            "conname": name,
            "connamespace": PUBLIC_SCHEMA,
            "contype": "p",
            "convalidated": True,
            "conrelid": oid,
            "conindid": index,
            "conislocal": True,
            "conkey": columns,
            "conbin": key,
            "coninhcount": 0,
            **dict.fromkeys(("condeferrable", "condeferred", "connoinherit"), False),
            **dict.fromkeys(("contypid", "conparentid", "confrelid"), 0),
        },
    )
    yield (
        "pg_indexes",
        {
            "schemaname": "public",
            "tablename": relation.name,
            "indexname": name,
            "indexdef": f"CREATE UNIQUE INDEX {_quoted(name)} ON public.{_quoted(relation.name)} "
            f"USING btree ({listed})",
        },
    )
    constraint = {
        "constraint_catalog": place["table_catalog"],
        "constraint_schema": "public",
        "constraint_name": name,
        **place,
    }
    yield (
        "information_schema.table_constraints",
        {
            **constraint,
            "constraint_type": "PRIMARY KEY",
            "is_deferrable": "NO",
            "initially_deferred": "NO",
            "enforced": "YES",
        },
    )
    for number, column in enumerate(relation.key, 1):
        usage = {**constraint, "column_name": column}
        yield "information_schema.constraint_column_usage", usage
        yield "information_schema.key_column_usage", {**usage, "ordinal_position": number}


def _quoted(name: str) -> str:
    is_plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def all_columns(rows: Iterable[Row], columns: Iterable[str]) -> list[Row]:
    """Return rows with all columns of a table, null where nothing is said."""
    names = tuple(columns)
    return [{name: row.get(name) for name in names} for row in rows]
