r"""Records as Arrow structs; `warehouse.formats.struct_columns` has the other direction.

| type | struct |
|---|---|
| `[x: number, y: symbol]` | `struct<x: int64, y: string>`; `nil` is null |
| `L {v: number} \| E {}` | `struct<branch: string, L: struct<v: int64>, E: struct<>>` |

Of an algebraic data type, the struct of the value's own branch is there and the others are null. A
type that contains itself has no structs. Each distinct record is read once.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.program import Relation
from corollary.core.records.record_text import read_record
from corollary.core.types import PLAIN_BRANCH, Branch, RecordType, Type
from corollary.core.values import SCALARS
from corollary.errors import InputError

BRANCH_FIELD = "branch"
"""The field with the name of a value's branch."""

TEXT = "text"
FORMS = (TEXT, "struct")
"""How records are given out."""


def struct_type(record: RecordType, around: tuple[str, ...] = ()) -> pa.DataType:
    """Return the Arrow type of a record type.

    Raises:
        InputError: the type contains itself.
    """
    if record.name in around:
        raise InputError.of(
            "C0822",
            f"Values of `{record.name}` contain such values: Arrow has no structs for them.",
            None,
            'read them as texts, with `arrow(records="text")`, or as tuples, with `rows()`',
        )
    inside = (*around, record.name)

    def fields(branch: Branch) -> pa.DataType:
        named = zip(branch.fields, branch.types, strict=True)
        return pa.struct([(name, _field_type(type_, inside)) for name, type_ in named])

    if not record.is_algebraic:
        return fields(record.branches[PLAIN_BRANCH])
    branches = [(name, fields(branch)) for name, branch in record.branches.items()]
    return pa.struct([(BRANCH_FIELD, pa.string()), *branches])


def _field_type(type_: Type, around: tuple[str, ...]) -> pa.DataType:
    return arrow_type(type_) if type_.record is None else struct_type(type_.record, around)


def with_records(table: pa.Table, relation: Relation, form: str) -> pa.Table:
    """Return a table of a relation's tuples with its records in a form.

    Raises:
        InputError: there is no such form, or no structs for a type.
    """
    if form not in FORMS:
        raise InputError.of(
            "C0924",
            f"`arrow` takes `text` or `struct` for `records`, not `{form}`.",
            None,
            "give another value",
        )
    for at, type_ in enumerate(relation.types if form == "struct" else ()):
        if type_.record is not None:
            column = _structs(table.column(at), type_.record)
            table = table.set_column(at, table.column_names[at], column)
    return table


def _structs(texts: pa.ChunkedArray, record: RecordType) -> pa.Array:
    def build(branch: Branch | None, parts: Sequence[Any]) -> Any:
        if branch is None:
            return None
        values = dict(zip(branch.fields, parts, strict=True))
        is_plain = branch.name == PLAIN_BRANCH
        return values if is_plain else {BRANCH_FIELD: branch.name, branch.name: values}

    made = struct_type(record)
    words = texts.combine_chunks().dictionary_encode()
    values = [read_record(text, record, SCALARS, build) for text in words.dictionary.to_pylist()]
    return pa.array(values, made).take(words.indices)
