"""What a catalog is made of: the relations that a user sees, their columns, the types, settings."""

import re
import zlib
from collections.abc import Iterator

import pyarrow as pa

from corollary.core.program import RelationKind
from corollary.frontends.sql.statements.nodes import CreateTable, DeleteAction, ForeignKey
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.serve.postgres.relations import VisibleRelation, VisibleRelations
from corollary.serve.postgres.settings import DEFAULTS
from corollary.serve.postgres.wire_types import SCALAR_TYPES, array_of, column_type
from corollary.source import SourceFile

FIRST_RELATION = 1 << 20
"""The numbers of relations are made of their names, so that they stay when others come and go."""
KEY_SUFFIX = "_pkey"
_KINDS = {RelationKind.BASE: "r", RelationKind.DERIVED: "m", RelationKind.VIRTUAL: "v"}
"""What `pg_class` calls them: tables, materialised views, views; an index is `i`."""
_ACTIONS = {DeleteAction.REFUSE: "a", DeleteAction.CASCADE: "c", DeleteAction.SET_NULL: "n"}

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
_REFERENCES = pa.schema(
    {
        "oid": pa.uint32(),
        "of": pa.uint32(),
        "to": pa.uint32(),
        "name": pa.string(),
        "columns": pa.list_(pa.int16()),
        "targets": pa.list_(pa.int16()),
        "action": pa.string(),
        "definition": pa.string(),
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
        "references": _table(_REFERENCES, list(_reference_rows(relations, numbers))),
        "types": _table(_TYPES, list(_types())),
        "settings": pa.table({"name": list(DEFAULTS), "setting": list(DEFAULTS.values())}),
        "session": pa.table({"database": [database], "user": [user]}),
    }


def _table(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _numbers(relations: VisibleRelations) -> dict[str, int]:
    """Return the numbers of relations, of the indexes of their keys, and of foreign keys."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    names = [each.name for each in relations.values()]
    references = [name for name, *_ in _references(relations)]
    for name in sorted({*names, *(f"{each}{KEY_SUFFIX}" for each in names), *references}):
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


def _references(
    relations: VisibleRelations,
) -> Iterator[tuple[str, VisibleRelation, VisibleRelation, ForeignKey]]:
    """Yield the foreign keys between relations that the user sees, with their names."""
    for each in relations.values():
        if not each.is_base or "REFERENCES" not in (each.definition or "").upper():
            continue
        (table,) = parse_statements(SourceFile.of_statement(each.name, each.definition or ""))
        assert isinstance(table, CreateTable)
        for key in table.constraints:
            if isinstance(key, ForeignKey) and key.table.text in relations:
                columns = "_".join(name.text for name in key.columns)
                name = key.name or f"{each.name}_{columns}_fkey"
                yield name, each, relations[key.table.text], key


def _reference_rows(
    relations: VisibleRelations, numbers: dict[str, int]
) -> Iterator[tuple[object, ...]]:
    """Yield the foreign keys."""
    for name, of, to, key in _references(relations):
        columns = [_column_number(of, each.text) for each in key.columns]
        targets = [_column_number(to, each.text) for each in key.targets] or _key(to)
        listed = ", ".join(_quoted(of.columns[at - 1].name) for at in columns)
        wanted = ", ".join(_quoted(to.columns[at - 1].name) for at in targets)
        text = f"FOREIGN KEY ({listed}) REFERENCES {_quoted(to.name)}({wanted})"
        if key.on_delete is not DeleteAction.REFUSE:
            text += f" ON DELETE {key.on_delete.upper()}"
        action = _ACTIONS[key.on_delete]
        yield (
            numbers[name],
            numbers[of.name],
            numbers[to.name],
            name,
            columns,
            targets,
            action,
            text,
        )


def _column_number(relation: VisibleRelation, name: str) -> int:
    """Return the number of a column; case does not matter."""
    return [each.name.lower() for each in relation.columns].index(name.lower()) + 1


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
