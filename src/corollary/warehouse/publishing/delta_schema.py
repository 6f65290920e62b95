"""The schema, rows and directory name of a relation's Delta table.

| type | Delta |
|---|---|
| unsigned | decimal(20,0), as Delta has no unsigned integers |
| duration, months, time_of_day | long, integer, long: microseconds, months |
| numbers of 8, 16 or 32 bits, as SQL declares them | byte, short, integer |
| `[T]`, `{a: T}`, `{K -> V}` | arrays, structs and maps of these |
| the rest | the same: string, long, double, decimal(p,s), boolean, date, timestamp |
| no columns | a column `holds`, with one row that is true, or none |

A directory is named as its relation, with `-2e-` for a character that is not a letter, digit or
underscore (here a dot, by its code point), so that two relations never share a directory. On a file
system without letter case, the second one of `Edge` and `edge` is refused as not ours.
"""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type, entries_of, single_array
from corollary.core.arrow_buffers import bool_array, fixed_values, list_array, map_array, null_mask
from corollary.core.program import Relation
from corollary.core.records.arrays import offsets_of
from corollary.core.types import Type
from corollary.warehouse.files.durable_files import HOLDS_COLUMN, checksum_of

UNSIGNED = pa.decimal128(20, 0)
_PUBLISHED = {pa.uint64(): UNSIGNED, pa.duration("us"): pa.int64(), pa.time64("us"): pa.int64()}
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}
"""The types of integers by their bits."""
NAME_MAX_CHARACTERS = 200
"""A longer directory name is truncated and gets a digest; file systems allow 255 bytes."""

_ESCAPED = re.compile(r"[^A-Za-z0-9_]|^_")
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=]")
"""The characters that Delta does not allow in the name of a column."""


def published_schema(relation: Relation) -> pa.Schema:
    """Return the schema of a relation's table."""
    if not relation.arity:
        return pa.schema([pa.field(HOLDS_COLUMN, pa.bool_(), nullable=False)])
    return pa.schema(
        pa.field(name, _published(type_), type_.nullable)
        for name, type_ in zip(column_names(relation.columns), relation.types, strict=True)
    )


def _published(type_: Type) -> pa.DataType:
    if type_.element is not None:
        return pa.list_(_published(type_.element))
    inner = [_published(each) for _, each in type_.members]
    if type_.is_map:
        return pa.map_(*inner)
    if type_.is_struct:
        names = column_names([name for name, _ in type_.members])
        return pa.struct(list(zip(names, inner, strict=True)))
    found = arrow_type(type_)
    if type_.is_number:
        return _INTEGERS.get(type_.bits, found)
    return _PUBLISHED.get(found, found)


def columns_digest(schema: pa.Schema) -> str:
    """Return a digest of the names, types and nullability of a table's columns."""
    return checksum_of(str(schema.remove_metadata()).encode())


def published_rows(table: pa.Table, relation: Relation) -> pa.Table:
    """Return tuples of a relation as rows of its table."""
    schema = published_schema(relation)
    if not relation.arity:
        return pa.table(
            {HOLDS_COLUMN: bool_array(np.ones(table.num_rows, np.bool_))}, schema=schema
        )
    columns = [
        _as_published(single_array(column), field.type)
        if pa.types.is_nested(field.type)
        else column
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema.names).cast(schema)


def _as_published(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_struct(type_):
        parts = zip(array.flatten(), type_, strict=True)
        fields = [_as_published(each, field.type) for each, field in parts]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=array.is_null())
    if pa.types.is_map(type_):
        offsets, keys, values = entries_of(array)
        keys, values = _as_published(keys, type_.key_type), _as_published(values, type_.item_type)
        return map_array(offsets, keys, values, null_mask(array))
    if pa.types.is_list(type_):
        sizes = fixed_values(pc.list_value_length(array).fill_null(0).cast(pa.int64()), np.int64)
        values = _as_published(array.flatten(), type_.value_type)
        return list_array(offsets_of(sizes), values, null_mask(array)).cast(type_)
    return array.cast(type_)


def directory_name(relation: str) -> str:
    """Return the name of the directory of a relation's table.

    >>> directory_name("Path"), directory_name('my "edge"'), directory_name("a.b")
    ('Path', 'my-20--22-edge-22-', 'a-2e-b')
    """
    name = _ESCAPED.sub(lambda found: f"-{ord(found[0]):x}-", relation)
    if len(name) <= NAME_MAX_CHARACTERS:
        return name
    digest = hashlib.blake2b(relation.encode(), digest_size=16).hexdigest()
    return f"{name[:NAME_MAX_CHARACTERS]}-{digest}"


def column_names(columns: Sequence[str]) -> list[str]:
    """Return the names of a table's columns: as declared, if they differ in more than case.

    >>> column_names(["x", "X", "a b", "a,b"])
    ['x', 'X_2', 'a_b', 'a_b_2']
    """
    names: list[str] = []
    taken: set[str] = set()
    for column in columns:
        plain = name = _FORBIDDEN.sub("_", column)
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        names.append(name)
    return names
