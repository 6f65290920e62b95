"""Read JSON lines by vectors: the same rows as `json_file` line by line, or no answer at all.

Arrow reads a stream of objects and does not care for lines. If each line begins with `{` and ends
with `}`, no object goes over a line break (behind a `}` inside of one a comma or a bracket would
have to follow), and as many objects as lines means one in each. Of what is no JSON Arrow takes only
`NaN` and `Infinity`; of odd keys none, so that a file with other columns is read line by line.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from corollary.core.arrow import arrow_type, canonical_floats, schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.warehouse import fast
from corollary.warehouse.contents import LONGEST_LINE

_PLAIN = {Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.BOOL}


def read(data: bytes, relation: Relation) -> pa.Table | None:
    """Return the rows of some lines, or None if they need a closer look.

    Args:
        data: whole lines.
        relation: the relation that the rows are of.
    """
    data = data.removesuffix(b"\n")
    lines = data.count(b"\n") + 1
    is_regular = data.startswith(b"{") and data.endswith(b"}")
    if not relation.types or not is_regular or data.count(b"}\n{") != lines - 1:
        return None
    wanted = [(name, _read_as(type_)) for name, type_ in _columns(relation)]
    try:
        table = json.read_json(
            pa.BufferReader(data),
            read_options=json.ReadOptions(block_size=LONGEST_LINE),
            parse_options=json.ParseOptions(
                explicit_schema=pa.schema(wanted),
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
        table.validate(full=True)  # texts are UTF-8
    except (pa.ArrowException, UnicodeError):
        return None
    if table.num_rows != lines:
        return None
    columns = [_converted(table.column(name), type_) for name, type_ in _columns(relation)]
    if any(column is None for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=schema_of(relation))


def _columns(relation: Relation) -> list[tuple[str, Type]]:
    return list(zip(relation.columns, relation.types, strict=True))


def _read_as(type_: Type) -> pa.DataType:
    return arrow_type(type_) if type_.kind in _PLAIN else pa.string()


def _converted(column: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray | None:
    if column.null_count and not type_.nullable:
        return None
    if type_.kind is Kind.FLOAT:
        is_finite = pc.all(pc.is_finite(column), min_count=0).as_py()
        return canonical_floats(column) if is_finite else None
    return column if type_.kind in _PLAIN else fast.convert(column, type_)
