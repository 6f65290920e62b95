"""What a catalog is made of: the relations that a user sees, their columns, the types, settings."""

import re
import zlib
from collections.abc import Iterator

import pyarrow as pa

from corollary.core.program import RelationKind
from corollary.serve.postgres.relations import VisibleRelation, VisibleRelations
from corollary.serve.postgres.settings import DEFAULTS
from corollary.serve.postgres.wire_types import SCALAR_TYPES, array_of, column_type

FIRST_RELATION = 1 << 20
"""The numbers of relations are made of their names, so that they stay when others come and go."""
KEY_SUFFIX = "_pkey"
_KINDS = {RelationKind.BASE: "r", RelationKind.DERIVED: "m", RelationKind.VIRTUAL: "v"}
"""What `pg_class` calls them: tables, materialised views, views; an index is `i`."""

_QUERY = re.compile(r"\bAS\s+(?=\(|(?:SELECT|WITH|VALUES|FROM|TABLE)\b)", re.IGNORECASE)
"""What is before the query of a view."""
_RELATIONS = pa.schema(
    {
        "oid": pa.uint32(),
        "of": pa.uint32(),
        "name": pa.string(),
        "quoted": pa.string(),
        "kind": pa.string(),
        "columns": pa.int16(),
        "tuples": pa.float32(),
        "key": pa.list_(pa.int16()),
        "listed": pa.string(),
        "definition": pa.string(),
    }.items()
)
_COLUMNS = pa.schema(
    {
        "relation": pa.uint32(),
        "number": pa.int16(),
        "name": pa.string(),
        "type": pa.uint32(),
        "modifier": pa.int32(),
        "is_nullable": pa.bool_(),
    }.items()
)
_TYPES = pa.schema(
    {
        "oid": pa.uint32(),
        "name": pa.string(),
        "sql_name": pa.string(),
        "size": pa.int16(),
        "array": pa.uint32(),
        "category": pa.string(),
        "element": pa.uint32(),
    }.items()
)


def given_tables(relations: VisibleRelations, database: str, user: str) -> dict[str, pa.Table]:
    """Return the tables that `catalog.sql` reads, by name."""
    numbers = _numbers(relations)
    listed = [row for each in relations.values() for row in _relation_rows(each, numbers)]
    columns = [row for each in relations.values() for row in _column_rows(each, numbers)]
    return {
        "relations": _table(_RELATIONS, listed),
        "columns": _table(_COLUMNS, columns),
        "types": _table(_TYPES, list(_types())),
        "settings": pa.table({"name": list(DEFAULTS), "setting": list(DEFAULTS.values())}),
        "session": pa.table({"database": [database], "user": [user]}),
    }


def _table(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


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


def _relation_rows(
    relation: VisibleRelation, numbers: dict[str, int]
) -> Iterator[tuple[object, ...]]:
    """Yield the row of a relation, and that of the index of its key."""
    name, tuples = relation.name, relation.tuples
    oid, kind = numbers[name], _KINDS[RelationKind(relation.kind)]
    key, listed = _key(relation), ", ".join(map(_quoted, relation.key))
    found = None if relation.definition is None else _QUERY.search(relation.definition)
    definition = f"-- `{name}` is defined by the rules of the warehouse"
    if found is not None:
        definition = f"{found.string[found.end() :]};"
    size = len(relation.columns)
    yield oid, None, name, _quoted(name), kind, size, tuples, key, listed, definition
    if kind == "r" and key:
        index = f"{name}{KEY_SUFFIX}"
        yield numbers[index], oid, index, _quoted(index), "i", len(key), tuples, key, listed, None


def _column_rows(
    relation: VisibleRelation, numbers: dict[str, int]
) -> Iterator[tuple[object, ...]]:
    """Yield the columns of a relation, and those of the index of its key."""
    of_index = _key(relation) if relation.is_base else []
    for of, columns in (
        (relation.name, range(1, len(relation.columns) + 1)),
        (f"{relation.name}{KEY_SUFFIX}", of_index),
    ):
        for number, at in enumerate(columns, 1):
            column = relation.columns[at - 1]
            type_, modifier = column_type(column.type)
            yield numbers[of], number, column.name, type_.oid, modifier, column.type.nullable


def _key(relation: VisibleRelation) -> list[int]:
    """Return the numbers of the columns of the key."""
    by_name = {column.name: number for number, column in enumerate(relation.columns, 1)}
    return [by_name[each] for each in relation.key]


def _types() -> Iterator[tuple[object, ...]]:
    for each in SCALAR_TYPES:
        arrays = [(array_of(each), each.oid)] if each.array else []
        for type_, element in [(each, 0), *arrays]:
            yield (
                *(type_.oid, type_.name, type_.sql_name, type_.size),
                *(type_.array, type_.category, element),
            )


def _quoted(name: str) -> str:
    is_plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'
