r"""JSON: a file that is one array of all rows (`IO=jsonfile`), and the objects of JSON lines.

| `format` | a row                      | `[1, nil]` in it            | `$Leaf(1)` in it     |
|----------|----------------------------|-----------------------------|----------------------|
| `list`   | `["a", 7]`                 | `[1, null]`                 | `{"Leaf": [1]}`      |
| `object` | `{"name": "a", "size": 7}` | `{"head": 1, "tail": null}` | `{"Leaf": {"n": 1}}` |

Both are read, whatever `format` says. `params` names the columns in objects, in the form that
Soufflé has: `{"relation": {"params": ["name", "size"]}}`.

A column is turned into texts at once; of texts and records, each distinct one is.
"""

import json
from collections.abc import Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import distinct_values, single_array, sort_rows
from corollary.core.program import Directive, Relation
from corollary.core.records.record_text import read_record
from corollary.core.types import PLAIN_BRANCH, Branch, Kind, Type
from corollary.core.values import SCALARS, value_to_json
from corollary.data_class import dataclass
from corollary.errors import InputError

_DIRECT_KINDS = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.BOOL})
"""The kinds of which Arrow writes the JSON text."""

_ESCAPED = r'["\\\x00-\x1f]'
"""What JSON escapes in a text."""


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How rows are written: the names of the columns, and whether rows and records are objects."""

    columns: tuple[str, ...]
    has_objects: bool = True


def form_of(relation: Relation, directive: Directive) -> JsonForm:
    """Return the form that a directive describes.

    Raises:
        InputError: `C0806`, `params` does not name all columns.
    """
    has_objects = directive.parameter("format", "list") == "object"
    text = directive.parameter("params")
    if not text:
        return JsonForm(relation.columns, has_objects)
    try:
        columns = tuple(map(str, json.loads(text)["relation"]["params"]))
    except (ValueError, TypeError, KeyError):
        columns = ()
    if len(set(columns)) != len(columns) or len(columns) != relation.arity:
        example = json.dumps({"relation": {"params": relation.columns}})
        raise InputError.of(
            "C0806",
            f"`params` does not give {relation.arity} names to the columns of `{relation.name}`",
            directive.span,
            f"write it as JSON, as in {example}, or leave it out",
        )
    return JsonForm(columns, has_objects)


def write(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    """Write the rows, sorted, as one array."""
    if relation.types:
        texts = row_texts(sort_rows(table), relation, form_of(relation, directive))
    else:
        texts = pa.array(["null"] * table.num_rows, pa.string())
    stream.write(b"[" + join_texts(texts, ",\n") + b"]\n")


def row_texts(table: pa.Table, relation: Relation, form: JsonForm) -> pa.Array:
    """Return the JSON text of each row.

    >>> from corollary.core.types import NUMBER, SYMBOL
    >>> edge = Relation("edge", ("x", "n"), (SYMBOL, NUMBER), is_derived=False)
    >>> row_texts(pa.table({"x": ["a"], "n": [1]}), edge, JsonForm(edge.columns)).to_pylist()
    ['{"x": "a", "n": 1}']
    """
    opened, closed = "{}" if form.has_objects else "[]"
    parts: list[pa.Array | str] = [opened]
    columns = zip(form.columns, table.columns, relation.types, strict=True)
    for at, (name, column, type_) in enumerate(columns):
        separator = ", " if at else ""
        label = f"{json.dumps(name, ensure_ascii=False)}: " if form.has_objects else ""
        parts += [separator + label, value_texts(single_array(column), type_, form)]
    return pc.binary_join_element_wise(*parts, closed, "")


def join_texts(texts: pa.Array, separator: str) -> bytes:
    r"""Return texts one after the other.

    >>> join_texts(pa.array(["[1]", "[2]"]), ",\n")
    b'[1],\n[2]'
    """
    if not len(texts):
        return b""
    whole = pa.LargeListArray.from_arrays([0, len(texts)], texts.cast(pa.large_string()))
    joined = pc.binary_join(whole, pa.scalar(separator, pa.large_string()))
    return bytes(joined[0].as_buffer())


def value_texts(values: pa.Array, type_: Type, form: JsonForm) -> pa.Array:
    """Return the JSON text of each value."""
    if type_.logical_kind in _DIRECT_KINDS:
        return pc.fill_null(pc.cast(values, pa.string()), "null")
    if type_.is_symbol and type_.record is None:
        words = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        distinct, rows = _quoted(words.dictionary), words.indices
    else:
        found, rows = distinct_values(values)
        made = (_as_json(value, type_, form) for value in found)
        texts = [json.dumps(each, ensure_ascii=False) for each in made]
        distinct = pa.array(texts, pa.string())
    return pc.fill_null(distinct.take(rows), "null")


def _quoted(texts: pa.Array) -> pa.Array:
    """Return texts as JSON has them; those with characters to escape one by one."""
    plain = pc.binary_join_element_wise('"', texts.cast(pa.string()), '"', "")
    is_special = pc.match_substring_regex(texts, _ESCAPED)
    escaped = [
        json.dumps(each, ensure_ascii=False) for each in texts.filter(is_special).to_pylist()
    ]
    return pc.replace_with_mask(plain, is_special, pa.array(escaped, pa.string()))


def _as_json(value: Any, type_: Type, form: JsonForm) -> Any:
    """Return a value for JSON; records are objects by the names of their fields, or arrays."""
    if type_.record is None or not form.has_objects:
        return value_to_json(value, type_)

    def build(branch: Branch | None, parts: Sequence[Any]) -> Any:
        if branch is None:
            return None
        made = {
            name: part if inner.record else value_to_json(part, inner)
            for name, part, inner in zip(branch.fields, parts, branch.types, strict=True)
        }
        return made if branch.name == PLAIN_BRANCH else {branch.name: made}

    return read_record(value, type_.record, SCALARS, build)
