"""Relations as Arrow tables: the types of columns, rows as Python values, the order of rows.

| type                       | Arrow                     | Python                          |
|----------------------------|---------------------------|---------------------------------|
| symbol                     | string                    | str                             |
| number, unsigned           | int64, uint64             | int                             |
| float                      | float64                   | float; no -0.0, one NaN         |
| float32                    | float32                   | the same, rounded               |
| decimal(p,s)               | decimal128(p, s)          | Decimal with exponent -s        |
| bool                       | bool                      | bool                            |
| date                       | date32                    | date                            |
| timestamp                  | timestamp(us, UTC)        | datetime with `datetime.UTC`    |
| timestamp_ntz              | timestamp(us)             | datetime without a zone         |
| binary                     | binary                    | bytes                           |
| duration                   | duration(us)              | timedelta                       |
| months                     | int32                     | int                             |
| time_of_day                | time64(us)                | time                            |
| [T]                        | list                      | tuple                           |
| {a: T, b: U}               | struct                    | tuple                           |
| {K -> V}                   | map                       | tuple of pairs, in order of key |
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import (
    bool_array,
    fixed_array,
    fixed_values,
    index_array,
    list_array,
    map_array,
    null_mask,
    python_array,
    string_array,
)
from corollary.core.logic import Value
from corollary.core.program import Relation
from corollary.core.records.arrays import (
    Offsets,
    contents,
    from_pieces,
    hex_bytes,
    hex_digits,
    join_entries,
    join_fields,
    join_pieces,
    offsets_of,
    split_entries,
    split_fields,
    split_pieces,
    to_pieces,
)
from corollary.core.types import Type
from corollary.core.values import from_stored, to_float32, to_stored
from corollary.data_class import dataclass

ArrowColumn: TypeAlias = "pa.Array | pa.ChunkedArray"

_NO_TEXT = pa.nulls(1, pa.large_string())[0]
_NAN, _ZERO = fixed_array(np.array([math.nan, 0.0]), pa.float64())


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type that holds the values of a type.

    >>> from corollary.core.types import decimal
    >>> arrow_type(decimal(12, 2))
    Decimal128Type(decimal128(12, 2))
    """
    match type_.spec.arrow:
        case "decimal128":
            return pa.decimal128(type_.precision, type_.scale)
        case "timestamp":
            return pa.timestamp("us", tz="UTC")
        case "timestamp_ntz":
            return pa.timestamp("us")
        case "list":
            assert type_.element is not None
            return pa.list_(arrow_type(type_.element))
        case "struct":
            return pa.struct([(each, arrow_type(inner)) for each, inner in type_.members])
        case "map":
            return pa.map_(*(arrow_type(inner) for _, inner in type_.members))
        case name:
            return pa.type_for_alias(name)


def schema_of(relation: Relation) -> pa.Schema:
    """Return the Arrow schema of a relation."""
    return pa.schema(
        pa.field(name, arrow_type(type_), nullable=type_.nullable)
        for name, type_ in zip(relation.columns, relation.types, strict=True)
    )


def nullary_table(rows: int) -> pa.Table:
    """Return a table without columns: the relation with the empty tuple if it has a row.

    >>> nullary_table(1).num_rows
    1
    """
    # `pa.table({})` has no rows; a table whose columns are all dropped keeps their number.
    return pa.table({"unit": pa.nulls(rows)}).select([])


def empty_table(relation: Relation) -> pa.Table:
    """Return the table of a relation without rows."""
    if not relation.types:
        return nullary_table(0)
    schema = schema_of(relation)
    # `Schema.empty_table` imports pandas where that is installed, which takes long.
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def from_columns(columns: Sequence[Sequence[Value]], relation: Relation, rows: int) -> pa.Table:
    """Return a table of Python values that are given column by column."""
    if not relation.types:
        return nullary_table(rows)
    schema = schema_of(relation)
    if not rows:
        return empty_table(relation)
    arrays = [
        python_array(values, field.type) for values, field in zip(columns, schema, strict=True)
    ]
    arrays = [canonical_floats(array) if _is_float(array) else array for array in arrays]
    return pa.Table.from_arrays(arrays, schema=schema)


def from_python(rows: Iterable[Sequence[Value]], relation: Relation) -> pa.Table:
    """Return a table of rows of Python values."""
    listed = list(rows)
    columns = list(zip(*listed, strict=True)) if listed else [()] * relation.arity
    return from_columns(columns, relation, len(listed))


def to_python(table: pa.Table) -> list[tuple[Value, ...]]:
    """Return the rows of a table as tuples of Python values.

    >>> to_python(pa.table({"x": [1, 2], "y": ["a", None]}))
    [(1, 'a'), (2, None)]
    """
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(_to_python_column(column) for column in table.columns), strict=True))


def canonical_floats(column: pa.Array) -> pa.Array:
    """Return a float column with 0.0 for -0.0 and one NaN for all."""
    nan, zero = (each.cast(column.type) for each in (_NAN, _ZERO))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def to_stored_column(column: ArrowColumn, type_: Type) -> ArrowColumn:
    """Return a column as it is stored.

    >>> from corollary.core.types import BINARY
    >>> column = pa.chunked_array([[b"az", None, b""]])
    >>> to_stored_column(column, BINARY).to_pylist()
    ['617A', None, '']
    >>> from_stored_column(to_stored_column(column, BINARY), BINARY) == column
    True
    """
    if type_.logical is None or pa.types.is_string(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not type_.stores_texts:
        return column.cast(arrow_type(type_.stored))
    if type_.members:
        column = column.cast(arrow_type(type_))
    return comparable_column(column)


def comparable_column(column: ArrowColumn) -> ArrowColumn:
    r"""Return nested values and bytes as texts, as they are stored, and others as they are.

    >>> comparable_column(pa.chunked_array([[[], ["b"], ["a", None]]])).to_pylist()
    ['', '"b\x01', '"a\x01\x01']
    """
    if not is_compared_as_text(column.type):
        return column
    convert = (
        _from_lists
        if _is_list(column.type)
        else _from_structs
        if pa.types.is_struct(column.type)
        else _from_maps
        if pa.types.is_map(column.type)
        else _from_bytes
    )
    if isinstance(column, pa.Array):
        return convert(column)
    return pa.chunked_array([convert(each) for each in column.chunks], pa.large_string())


def is_compared_as_text(type_: pa.DataType) -> bool:
    """Whether Arrow does not order values of a type as we do: nested ones and bytes."""
    return bool(
        pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    )


def distinct_values(array: pa.Array) -> tuple[list[Value], pa.Array]:
    """Return the distinct values of a column, and for each row the number of its value."""
    if not pa.types.is_nested(array.type):
        words = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        return words.dictionary.to_pylist(), words.indices
    encoded = single_array(comparable_column(pa.chunked_array([array]))).dictionary_encode()
    numbers = fixed_values(encoded.indices.fill_null(-1), np.int32)
    found, firsts = np.unique(numbers, return_index=True)
    values = array.take(index_array(firsts[found >= 0]))
    return _to_python_column(pa.chunked_array([values])), encoded.indices


def store_value(value: Any, type_: Type) -> Any:
    """Return a value of Python as it is stored.

    >>> from corollary.core.types import NUMBER, array_of
    >>> load_value(store_value((1, None), array_of(NUMBER)), array_of(NUMBER))
    (1, None)
    """
    if type_.is_float32 and value is not None:
        return to_float32(value)
    if not type_.members or value is None:
        return to_stored(value)
    column = pa.chunked_array([python_array([value], arrow_type(type_))])
    return to_stored_column(column, type_)[0].as_py()


def load_value(value: Any, type_: Type) -> Any:
    """Return a stored value as Python has it."""
    if not type_.members or value is None:
        return from_stored(value, type_)
    column = pa.chunked_array([string_array([value])])
    return _to_python_column(from_stored_column(column, type_))[0]


def from_stored_column(column: ArrowColumn, type_: Type) -> ArrowColumn:
    """Return a column of stored values as Arrow has them."""
    if type_.logical is None:
        return column
    if not type_.is_binary and not type_.members:
        return column.cast(arrow_type(type_))
    if isinstance(column, pa.ChunkedArray):
        chunks = [from_stored_column(each, type_) for each in column.chunks]
        return pa.chunked_array(chunks, arrow_type(type_))
    if type_.is_binary:
        return _to_bytes(column)
    if type_.is_map:
        return _to_maps(column, type_)
    return _to_lists(column, type_) if type_.is_array else _to_structs(column, type_)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _from_lists(lists: pa.Array) -> pa.Array:
    sizes = pc.list_value_length(lists).fill_null(0).cast(pa.int64())
    pieces = to_pieces(comparable_column(lists.flatten()))
    texts = join_pieces(offsets_of(fixed_values(sizes, np.int64)), pieces)
    return pc.if_else(lists.is_valid(), texts, _NO_TEXT) if lists.null_count else texts


def entries_of(maps: pa.Array) -> tuple[Offsets, pa.Array, pa.Array]:
    """Return where the entries of each map of Arrow begin, and their keys and values."""
    key, value = maps.type.key_field, maps.type.item_field
    lists = maps.cast(pa.large_list(pa.struct([("key", key.type), ("value", value.type)])))
    sizes = pc.list_value_length(lists).fill_null(0)
    return offsets_of(fixed_values(sizes, np.int64)), *lists.flatten().flatten()


def _from_maps(maps: pa.Array) -> pa.Array:
    offsets, *members = entries_of(maps)
    keys, values = (to_pieces(comparable_column(each)) for each in members)
    texts = join_entries(offsets, keys, values)
    return pc.if_else(maps.is_valid(), texts, _NO_TEXT) if maps.null_count else texts


def _to_maps(texts: pa.Array, type_: Type) -> pa.Array:
    nulls = null_mask(texts)
    offsets, *pieces = split_entries(texts.cast(pa.large_string()).fill_null(""))
    keys, values = (
        from_stored_column(from_pieces(each, arrow_type(inner.stored)), inner)
        for each, (_, inner) in zip(pieces, type_.members, strict=True)
    )
    return map_array(offsets, keys, values, nulls)


def _from_structs(structs: pa.Array) -> pa.Array:
    fields = (comparable_column(pa.chunked_array([each])) for each in structs.flatten())
    texts = join_fields([to_pieces(single_array(each)) for each in fields])
    return pc.if_else(structs.is_valid(), texts, _NO_TEXT) if structs.null_count else texts


def _to_structs(texts: pa.Array, type_: Type) -> pa.Array:
    nulls = null_mask(texts)
    pieces = split_fields(texts, len(type_.members))
    fields = [
        from_stored_column(from_pieces(each, arrow_type(inner.stored)), inner)
        for each, (_, inner) in zip(pieces, type_.members, strict=True)
    ]
    mask = None if nulls is None else bool_array(nulls)
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type(type_)), mask=mask)


def _to_lists(texts: pa.Array, type_: Type) -> pa.Array:
    assert type_.element is not None
    nulls = null_mask(texts)
    offsets, pieces = split_pieces(texts.cast(pa.large_string()).fill_null(""))
    stored = from_pieces(pieces, arrow_type(type_.element.stored))
    values = from_stored_column(stored, type_.element)
    return list_array(offsets, values, nulls).cast(arrow_type(type_))


def _from_bytes(array: pa.Array) -> pa.Array:
    array = array.cast(pa.large_binary())
    offsets, data = contents(array)
    return _array_of(pa.large_string(), array, 2 * offsets, hex_digits(data))


def _to_bytes(array: pa.Array) -> pa.Array:
    array = array.cast(pa.large_string())
    offsets, digits = contents(array.fill_null(""))  # a null may stand above any text
    data = hex_bytes(digits)
    return _array_of(pa.large_binary(), array, offsets // 2, data).cast(pa.binary())


def _array_of(
    type_: pa.DataType, like: pa.Array, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
) -> pa.Array:
    """Return an array of texts or bytes with the nulls of another."""
    is_valid = like.is_valid().buffers()[1] if like.null_count else None
    buffers = [is_valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(type_, len(like), buffers)


def single_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; what is one already is not copied."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def expand_table(table: pa.Table, relation: Relation) -> pa.Table:
    """Return a compact table, of narrow integers and dictionaries, with the types of a relation."""
    return table.cast(schema_of(relation)) if relation.types else table


def sort_rows(
    table: pa.Table,
    first: Sequence[tuple[int, bool]] = (),
    nulls_first: Mapping[int, bool] | None = None,
) -> pa.Table:
    """Return the rows ordered by value, column by column: null first, NaN last, false < true.

    Args:
        table: the rows.
        first: columns that count before the others, each with whether it descends.
        nulls_first: for some of them, whether nulls come first; else they do unless it descends.

    >>> sort_rows(pa.table({"x": [2.0, None, float("nan"), -1.0]}))["x"].to_pylist()
    [None, -1.0, 2.0, nan]
    >>> sort_rows(pa.table({"x": [2.0, None, float("nan"), -1.0]}), [(0, True)])["x"].to_pylist()
    [nan, 2.0, -1.0, None]
    """
    if not table.num_columns or table.num_rows < 2:
        return table
    if not first and _ascends(table.column(0)):  # as tables are stored
        return table
    keys: dict[str, pa.ChunkedArray] = {}
    orders: list[tuple[str, str]] = []
    leading = dict(reversed(first))
    for number in dict.fromkeys((*(at for at, _ in first), *range(table.num_columns))):
        column, descends = comparable_column(table.column(number)), leading.get(number, False)
        # Arrow sorts nulls and NaN last in both directions, so they are keys of their own.
        made = {f"value{number}": column}
        if descends and _is_float(column):
            made = {f"nan{number}": pc.is_nan(column).fill_null(False), **made}
        keys |= made
        if column.null_count:
            keys[f"valid{number}"] = pc.is_valid(column)
            is_first = (nulls_first or {}).get(number, not descends)
            orders.append((f"valid{number}", "ascending" if is_first else "descending"))
        orders += [(name, "descending" if descends else "ascending") for name in made]
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=orders))


def sort_by_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows in ascending order of some columns, null last."""
    keys = pa.table({name: comparable_column(table.column(name)) for name in names})
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]))


def group_rows(
    table: pa.Table,
    names: Sequence[str],
    aggregates: Sequence[tuple[str, str]] = (),
    *,
    use_threads: bool = True,
) -> pa.Table:
    """Return what Arrow's `group_by` gives, of keys that are lists and structs, too.

    >>> table = pa.table({"x": [[1], None, [1]], "n": [1, 2, 3]})
    >>> to_python(group_rows(table, ["x"], [("n", "sum")]))
    [((1,), 4), (None, 2)]
    """
    nested = [name for name in names if pa.types.is_nested(table.column(name).type)]
    if not nested:
        return table.group_by(list(names), use_threads=use_threads).aggregate(list(aggregates))
    keyed = table
    for name in nested:
        at = keyed.column_names.index(name)
        keyed = keyed.set_column(at, name, comparable_column(keyed.column(at)))
    row = "row of a group"
    keyed = keyed.append_column(row, index_array(np.arange(table.num_rows)))
    groups = keyed.group_by(list(names), use_threads=use_threads)
    found = groups.aggregate([*aggregates, (row, "min")])
    rows, found = found.column(f"{row}_min"), found.drop_columns([f"{row}_min"])
    for name in nested:
        values = table.column(name).take(rows)
        found = found.set_column(found.column_names.index(name), name, values)
    return found


def _ascends(column: pa.ChunkedArray) -> bool:
    """Return whether a column has integers, each greater than the one before."""
    if not pa.types.is_int64(column.type) or column.null_count:
        return False
    values = column.to_numpy()
    return bool((values[1:] > values[:-1]).all())


def dependency_violations(
    rows: pa.Table, determinants: Sequence[int], dependents: Sequence[int]
) -> tuple[pa.Table, pa.Table]:
    """Return pairs of rows that violate a functional dependency, one pair for each determinant.

    >>> table = pa.table({"k": [1, 1, 2], "v": [5, 6, 7]})
    >>> [to_python(side) for side in dependency_violations(table, [0], [1])]
    [[(1, 5)], [(1, 6)]]
    """
    least, most = _extreme_rows(rows, determinants, dependents)
    several = pc.not_equal(least, most)
    return rows.take(least.filter(several)), rows.take(most.filter(several))


def _extreme_rows(
    rows: pa.Table, determinants: Sequence[int], dependents: Sequence[int]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the numbers of two rows for each determinant, which differ in the dependents.

    They are the same if all rows agree there.
    """
    # First one row for each pair of determinant and dependent values; a determinant with two such
    # rows, a least and a greatest, violates the dependency.
    number = "row"
    names = [str(at) for at in range(rows.num_columns)]
    columns = [*map(comparable_column, rows.columns), index_array(np.arange(rows.num_rows))]
    numbered = pa.Table.from_arrays(columns, [*names, number])
    keys, rest = ([names[at] for at in side] for side in (determinants, dependents))
    pairs = numbered.group_by([*keys, *rest]).aggregate([(number, "min")])
    pairs = pairs.rename_columns([*keys, *rest, number])
    groups = pairs.group_by(keys).aggregate([(number, "min"), (number, "max")])
    return groups[f"{number}_min"], groups[f"{number}_max"]


@dataclass(frozen=True, slots=True)
class Violations:
    """Pairs of rows that violate a functional dependency: the first ones, and how many pairs."""

    ones: pa.Table
    others: pa.Table
    count: int


NO_VIOLATIONS = Violations(pa.table({}), pa.table({}), 0)


@dataclass(frozen=True, slots=True)
class DependencyCheck:
    """Rows that agree in the determinants should agree in the dependents.

    Attributes:
        determinants, dependents: columns.
        max_pairs: the maximum number of pairs that do not.
    """

    determinants: tuple[int, ...]
    dependents: tuple[int, ...]
    max_pairs: int

    def violations(self, rows: pa.Table) -> Violations:
        """Return what violates the dependency, one pair for each determinant."""
        ones, others = dependency_violations(rows, self.determinants, self.dependents)
        first, second = (each.slice(0, self.max_pairs) for each in (ones, others))
        return Violations(first, second, ones.num_rows)

    def representatives(self, rows: pa.Table) -> pa.Table:
        """Return one row for each determinant, or two if rows differ in the dependents.

        >>> check = DependencyCheck((0,), (1,), 20)
        >>> table = pa.table({"k": [1, 1, 1, 2, 2], "v": [5, 6, 7, 8, 8]})
        >>> to_python(check.representatives(table))
        [(1, 5), (1, 7), (2, 8)]
        """
        chosen = np.concatenate(
            [
                fixed_values(each.combine_chunks(), np.int64)
                for each in _extreme_rows(rows, self.determinants, self.dependents)
            ]
        )
        return rows.take(index_array(np.unique(chosen)))


def _to_datetimes(chunk: pa.Array) -> list[Value]:
    naive = fixed_values(chunk.cast(pa.timestamp("us")), "M8[us]").tolist()
    nulls = null_mask(chunk)
    is_null = [False] * len(naive) if nulls is None else nulls.tolist()
    return [
        None if nothing else value.replace(tzinfo=UTC)
        for value, nothing in zip(naive, is_null, strict=True)
    ]


def _to_tuples(lists: pa.Array) -> list[Value]:
    values = _to_python_column(pa.chunked_array([lists.flatten()]))
    sizes = pc.list_value_length(lists).to_pylist()
    ends = list(accumulate((size or 0 for size in sizes), initial=0))
    return [
        None if size is None else tuple(values[start : start + size])
        for start, size in zip(ends, sizes, strict=False)
    ]


def _to_rows(structs: pa.Array) -> list[Value]:
    columns = [_to_python_column(pa.chunked_array([each])) for each in structs.flatten()]
    rows = zip(*columns, strict=True) if columns else [()] * len(structs)
    is_valid = structs.is_valid().to_pylist()
    return [row if is_one else None for row, is_one in zip(rows, is_valid, strict=True)]


def _to_pairs(maps: pa.Array) -> list[Value]:
    offsets, *members = entries_of(maps)
    pairs = list(
        zip(*(_to_python_column(pa.chunked_array([each])) for each in members), strict=True)
    )
    is_valid = maps.is_valid().to_pylist()
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), is_valid, strict=True)
    return [tuple(pairs[start:end]) if is_one else None for start, end, is_one in bounds]


def _is_float(array: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pa.types.is_floating(array.type))


def _to_python_column(column: pa.ChunkedArray) -> list[Value]:
    if _is_list(column.type):
        return [each for chunk in column.chunks for each in _to_tuples(chunk)]
    if pa.types.is_struct(column.type):
        return [each for chunk in column.chunks for each in _to_rows(chunk)]
    if pa.types.is_map(column.type):
        return [each for chunk in column.chunks for each in _to_pairs(chunk)]
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        # Arrow names the zone by a ZoneInfo, which is equal to datetime.UTC but not the same.
        return [value for chunk in column.chunks for value in _to_datetimes(chunk)]
    values: list[Value] = column.to_pylist()
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        # One NaN for all: it equals itself in tuples and sets only if it is the same object.
        return [
            math.nan if isinstance(each, float) and math.isnan(each) else each for each in values
        ]
    return values
