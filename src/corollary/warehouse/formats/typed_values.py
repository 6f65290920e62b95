"""Converts values of formats with types of their own to our types, without loss or guessing.

| type      | JSON                               | Arrow (Parquet, Delta)                          |
|-----------|------------------------------------|-------------------------------------------------|
| symbol    | string                             | string, also large, view or dictionary          |
| number    | number without fraction            | integer; decimal with scale 0                   |
| unsigned  | the same                           | the same                                        |
| float     | number; `"nan"`, `"inf"`, `"-inf"` | float; integer that a float holds               |
| decimal   | string or number                   | decimal or integer that needs no rounding       |
| bool      | true, false                        | bool                                            |
| date      | string                             | date                                            |
| timestamp | string                             | timestamp of whole microseconds; no zone is UTC |
| records   | array, object, string              | struct, string                                  |

Null is null, in a nullable column.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core import arrow, arrow_buffers
from corollary.core.functors.times import DAY_MICROSECONDS, LAST_DAY, LEAST_DAY
from corollary.core.logic import Value
from corollary.core.program import Relation
from corollary.core.records.arrays import offsets_of
from corollary.core.records.record_values import record_from_python
from corollary.core.types import Kind, Type
from corollary.core.values import (
    SCALARS,
    canonical_float,
    from_stored,
    has_key_twice,
    is_encodable,
    parse_base64,
    parse_value,
    quote_text,
    to_float32,
)
from corollary.warehouse.formats.struct_columns import ScalarColumns, is_struct_of, record_texts
from corollary.warehouse.formats.text_columns import are_plain, convert_records, convert_texts

_MAX_DIGITS = 40
_NULL = "null is not allowed in a column that is not nullable"
_VALUES_MIN = 64
"""So few values are converted one by one, if Arrow's cast refuses one of them."""
_PARTS = 16
"""The number of parts into which more values are split then."""

Failures = dict[int, str]
"""By the number of a row, from 0, why its value does not have the type."""


def is_readable(found: pa.DataType, type_: Type) -> bool:
    """Return whether values of an Arrow type can be converted to one of ours."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if type_.record is not None and is_struct_of(found, type_.record, is_readable):
        return True
    is_whole = pa.types.is_integer(found) or (pa.types.is_decimal(found) and found.scale == 0)
    match type_.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            return found in {pa.string(), pa.large_string(), pa.string_view()}
        case Kind.NUMBER | Kind.UNSIGNED:
            return bool(is_whole)
        case Kind.FLOAT | Kind.FLOAT32:
            return bool(pa.types.is_floating(found) or pa.types.is_integer(found))
        case Kind.DECIMAL:
            return bool(pa.types.is_decimal(found) or pa.types.is_integer(found))
        case Kind.BOOL:
            return bool(pa.types.is_boolean(found))
        case Kind.DATE:
            return bool(pa.types.is_date(found))
        case Kind.TIMESTAMP:
            return bool(pa.types.is_timestamp(found))
        case Kind.TIMESTAMP_NTZ:
            return bool(pa.types.is_timestamp(found)) and found.tz is None
        case Kind.TIME_OF_DAY:
            return found == arrow.arrow_type(type_) or bool(pa.types.is_integer(found))
        case Kind.DURATION:  # Spark writes their microseconds
            return bool(pa.types.is_duration(found) or pa.types.is_integer(found))
        case Kind.MONTHS:
            return bool(pa.types.is_integer(found))
        case Kind.BINARY:
            return found in {pa.binary(), pa.large_binary(), pa.binary_view()} or bool(
                pa.types.is_fixed_size_binary(found)
            )
        case Kind.ARRAY:
            assert type_.element is not None
            is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
            return is_list and is_readable(found.value_type, type_.element)
        case Kind.MAP:
            members = (found.key_type, found.item_type) if pa.types.is_map(found) else ()
            inner = [each for _, each in type_.members]
            return bool(members) and all(map(is_readable, members, inner))
        case Kind.STRUCT:
            fields = {each.name: each.type for each in found} if pa.types.is_struct(found) else {}
            return all(
                name in fields and is_readable(fields[name], each) for name, each in type_.members
            )
        case _:
            assert_never(type_.logical_kind)


def from_arrow(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return a column as one of our types, null where a value cannot be converted.

    Values that Arrow's cast refuses are found by splitting, and only they, with a few neighbours,
    are converted one by one.
    """
    if type_.record is not None and pa.types.is_struct(column.type):
        return record_texts(column, type_, SCALAR_COLUMNS)
    failures: Failures = {}
    nullable = type_.with_null(True)
    if column.null_count and not type_.nullable:
        nulls = arrow_buffers.true_mask(arrow.single_array(pc.is_null(column)))
        failures = dict.fromkeys(np.flatnonzero(nulls).tolist(), _NULL)
    if type_.element is not None:
        lists = _from_lists(arrow.single_array(column), type_.element, failures)
        return pa.chunked_array([lists.cast(arrow.arrow_type(type_))]), failures
    if type_.is_map:
        return pa.chunked_array([_from_maps(arrow.single_array(column), type_, failures)]), failures
    if type_.is_struct:
        return pa.chunked_array(
            [_from_structs(arrow.single_array(column), type_, failures)]
        ), failures
    pieces = _convert_parts(column, nullable, 0, failures)
    return pa.chunked_array(pieces, arrow.arrow_type(type_)), failures


def _from_lists(lists: pa.Array, element: Type, failures: Failures) -> pa.Array:
    """Return lists with elements of one of our types, and note those whose elements are not."""
    sizes = arrow_buffers.fixed_values(
        pc.list_value_length(lists).fill_null(0).cast(pa.int64()), np.int64
    )
    values, failed = from_arrow(pa.chunked_array([lists.flatten()]), element)
    owners = np.repeat(np.arange(len(lists)), sizes)
    for number, reason in failed.items():
        failures.setdefault(int(owners[number]), reason)
    return arrow_buffers.list_array(
        offsets_of(sizes), arrow.single_array(values), arrow_buffers.null_mask(lists)
    )


def _from_maps(maps: pa.Array, type_: Type, failures: Failures) -> pa.Array:
    """Return maps with keys and values of our types, and note those that have others."""
    offsets, *members = arrow.entries_of(maps)
    owners = np.repeat(np.arange(len(maps)), np.diff(offsets))
    columns: list[pa.Array] = []
    for array, (_, inner) in zip(members, type_.members, strict=True):
        values, failed = from_arrow(pa.chunked_array([array]), inner)
        columns.append(arrow.single_array(values))
        for number, reason in failed.items():
            failures.setdefault(int(owners[number]), reason)
    keys = columns[0]
    for number in owners[arrow_buffers.true_mask(keys.is_null())].tolist():
        failures.setdefault(number, "a key of a map is null")
    named = pa.table({"owner": owners, "key": keys, "n": owners})
    counts = arrow.group_rows(named, ["owner", "key"], [("n", "count")])
    for number in counts.filter(pc.greater(counts["n_count"], 1))["owner"].to_pylist():
        failures.setdefault(number, "a map has a key twice")
    return arrow_buffers.map_array(offsets, keys, columns[1], arrow_buffers.null_mask(maps))


def _from_structs(structs: pa.StructArray, type_: Type, failures: Failures) -> pa.Array:
    """Return structs with fields of our types, and note those whose fields are not."""
    fields = dict(zip((each.name for each in structs.type), structs.flatten(), strict=True))
    columns: list[pa.Array] = []
    for name, inner in type_.members:
        values, failed = from_arrow(pa.chunked_array([fields[name]]), inner)
        columns.append(arrow.single_array(values))
        failures |= {**failed, **failures}
    nulls = structs.is_null()
    return pa.StructArray.from_arrays(columns, fields=list(arrow.arrow_type(type_)), mask=nulls)


SCALAR_COLUMNS = ScalarColumns(is_readable, from_arrow)


def from_arrow_or_dictionary(
    column: pa.ChunkedArray, type_: Type
) -> tuple[pa.ChunkedArray, Failures]:
    """Return a column as one of our types; texts in dictionaries stay there if all are good."""
    is_plain = type_.record is None and pa.types.is_dictionary(column.type)
    if is_plain and (type_.nullable or not column.null_count):
        try:
            for chunk in column.chunks:
                chunk.dictionary.validate(full=True)  # texts have to be UTF-8
        except pa.ArrowException:
            return from_arrow(column, type_)
        words = [chunk.dictionary for chunk in column.chunks]
        if not any(each.null_count or _has_nul(each) for each in words):
            return column, {}
    return from_arrow(column, type_)


def from_json(values: Sequence[object], type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return decoded JSON values as a column, null where a value cannot be converted."""
    classes = set(map(type, values))
    if type_.nullable:
        classes.discard(type(None))
    is_plain = type_.record is None and len(type_.spec.python) == 1
    is_plain = is_plain and classes <= set(type_.spec.python)
    if is_plain:  # exact classes: `bool` is a subclass of `int`
        try:
            array = pa.array(values, arrow.arrow_type(type_))
        except (pa.ArrowException, OverflowError, UnicodeError):
            array = None
        if array is not None and not (type_.is_symbol and _has_nul(array)):
            return pa.chunked_array([array]), {}
    return _one_by_one(values, type_, _from_json)


def from_texts(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return texts as a column of values, read as in delimited files."""
    texts = arrow.single_array(column)
    converted = convert_texts(texts, type_)
    if converted is not None:
        return pa.chunked_array([converted]), {}
    is_plain = are_plain(texts, type_)
    others = np.flatnonzero(~is_plain)
    converted = convert_texts(texts.filter(arrow_buffers.bool_array(is_plain)), type_)
    assert converted is not None, "plain texts are values"
    some = texts.take(arrow_buffers.index_array(others)).to_pylist()
    exact, failed = _one_by_one(some, type_, lambda text, type_: parse_value(str(text), type_))
    # All values in the order of their rows.
    rows = np.argsort(np.concatenate([np.flatnonzero(is_plain), others]))
    values = pa.concat_arrays([converted, *exact.chunks]).take(arrow_buffers.index_array(rows))
    return pa.chunked_array([values]), {
        int(others[number]): reason for number, reason in failed.items()
    }


def convert_columns(
    columns: Iterable[Any],
    relation: Relation,
    convert: Callable[[Any, Type], tuple[pa.ChunkedArray, Failures]],
) -> tuple[pa.Table, dict[int, list[str]]]:
    """Return the table of the rows that can be converted, and for each other row, from 0, why not.

    Args:
        columns: one for each column of the relation.
        relation: the relation of the rows.
        convert: one of the functions above.
    """
    converted: list[pa.ChunkedArray] = []
    failures: dict[int, list[str]] = {}
    for column, name, type_ in zip(columns, relation.columns, relation.types, strict=True):
        array, failed = convert(column, type_)
        converted.append(array)
        for row, reason in failed.items():
            failures.setdefault(row, []).append(f"{reason} (column `{name}` of `{relation.name}`)")
    table = pa.table(converted, list(relation.columns))
    if failures:
        is_good = np.ones(table.num_rows, np.bool_)
        is_good[list(failures)] = False
        table = table.filter(arrow_buffers.bool_array(is_good))
    schema = pa.schema(
        field.with_type(column.type) if pa.types.is_dictionary(column.type) else field
        for field, column in zip(arrow.schema_of(relation), table.columns, strict=True)
    )
    return table.cast(schema), failures


def _one_by_one(
    values: Sequence[object], type_: Type, convert: Callable[[object, Type], Value]
) -> tuple[pa.ChunkedArray, Failures]:
    converted: list[Value] = []
    failures: Failures = {}
    for number, value in enumerate(values):
        try:
            is_nil = value is None and type_.record is not None and convert is _from_json
            if value is None and not type_.nullable and not is_nil:
                raise ValueError(_NULL)
            is_null = value is None and (type_.nullable or not is_nil)
            converted.append(None if is_null else convert(value, type_))
        except ValueError as error:
            converted.append(None)
            failures[number] = str(error)
    return pa.chunked_array([pa.array(converted, arrow.arrow_type(type_))]), failures


# --- JSON ----------------------------------------------------------------------------------------


def _from_json(value: object, type_: Type) -> Value:
    """Return a decoded JSON value as one of our values."""
    if type_.record is not None:
        return record_from_python(value, type_.record, SCALARS, _from_json)
    match type_.logical_kind, value:
        case Kind.SYMBOL, str():
            return _encodable(value)
        case Kind.BOOL, bool():
            return value
        case _, bool():
            pass
        case ((Kind.NUMBER | Kind.UNSIGNED), int()):
            return parse_value(_digits(value), type_)
        case ((Kind.FLOAT | Kind.FLOAT32), (int() | float() | Decimal())):
            return _finite(value, type_)
        case ((Kind.FLOAT | Kind.FLOAT32), str()):
            found = parse_value(value, type_.with_null(False))
            if isinstance(found, float) and not math.isfinite(found):
                return found
        case Kind.DECIMAL, (int() | Decimal()):
            return parse_value(_digits(value), type_)
        case (
            (
                Kind.DECIMAL
                | Kind.DATE
                | Kind.TIMESTAMP
                | Kind.TIMESTAMP_NTZ
                | Kind.DURATION
                | Kind.MONTHS
                | Kind.TIME_OF_DAY
            ),
            str(),
        ):
            return parse_value(value, type_.with_null(False))
        case Kind.BINARY, str():
            return parse_base64(value)
        case Kind.BINARY, bytes():
            return value
        case Kind.ARRAY, list():
            element = type_.element
            assert element is not None
            return tuple(None if each is None else _from_json(each, element) for each in value)
        case Kind.MAP, dict():
            (_, kind), (_, held) = type_.members
            pairs = [(parse_value(key, kind.with_null(False)), each) for key, each in value.items()]
            if has_key_twice(pairs):
                raise ValueError("a map has a key twice")
            return tuple((k, None if x is None else _from_json(x, held)) for k, x in pairs)
        case Kind.STRUCT, dict():
            parts = [(value.get(name), each) for name, each in type_.members]
            return tuple(None if part is None else _from_json(part, each) for part, each in parts)
        case _:
            pass
    raise ValueError(_mismatch(value, type_))


def _encodable(text: str) -> str:
    if not is_encodable(text):
        what = "a NUL character" if "\0" in text else "half a surrogate pair"
        raise ValueError(f"{quote_text(text)} contains {what}, which is not text")
    return text


def _digits(number: int | Decimal) -> str:
    """Return a number without exponent.

    One beyond all our types becomes another such number: the digits of `1e999999999` would not fit
    into memory.
    """
    if isinstance(number, int):
        return str(number) if number.bit_length() < 128 else "1" + "0" * _MAX_DIGITS
    if number and not -_MAX_DIGITS < number.adjusted() < _MAX_DIGITS:
        return "1" + "0" * _MAX_DIGITS if number.adjusted() > 0 else "0." + "0" * 50 + "1"
    return f"{number:f}"


def _finite(number: float | Decimal, type_: Type) -> float:
    try:
        value = to_float32(float(number)) if type_.is_float32 else float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise ValueError(
            f"{quote_text(str(number)[:50])} is out of range for {type_.with_null(False)}"
        )
    return canonical_float(value)


def _mismatch(value: object, type_: Type) -> str:
    match value:
        case dict():
            subject = "an object"
        case list():
            subject = "an array"
        case bool():
            subject = "`true`" if value else "`false`"
        case str():
            subject = f"the text {quote_text(value)}"
        case _:
            subject = quote_text(str(value)[:50])
    article = "an" if type_.is_unsigned else "a"
    return f"{subject} is not {article} {type_.with_null(False)}"


# --- Arrow ---------------------------------------------------------------------------------------


def _convert_parts(
    column: pa.ChunkedArray, type_: Type, first: int, failures: Failures
) -> list[pa.Array]:
    """Return a column as one of our types, in parts, and note the values that are not.

    Args:
        column: the values.
        type_: their type; null is allowed.
        first: the number of the first row.
        failures: gets those of these values.
    """
    converted = _cast(column, type_)
    if converted is not None:
        return list(converted.chunks)
    if len(column) > _VALUES_MIN:
        size = -(-len(column) // _PARTS)
        parts = (
            _convert_parts(column.slice(start, size), type_, first + start, failures)
            for start in range(0, len(column), size)
        )
        return [array for part in parts for array in part]
    values: list[object] = []
    for each in column:
        try:
            values.append(each.as_py())
        except (ValueError, OverflowError) as error:  # UnicodeDecodeError is a ValueError
            values.append(error)
    exact, failed = _one_by_one(values, type_, _from_arrow)
    failures |= {first + number: reason for number, reason in failed.items()}
    return list(exact.chunks)


def _cast(column: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray | None:
    """Return the column as one of our types, or None if a value cannot be converted."""
    if column.null_count and not type_.nullable:
        return None
    wanted = arrow.arrow_type(type_)
    try:
        if pa.types.is_integer(column.type) and type_.is_decimal:
            column = column.cast(pa.decimal128(20, 0))
        converted = column.cast(wanted)
        if type_.is_symbol:
            converted.validate(full=True)  # Parquet readers do not check that texts are UTF-8
            if _has_nul(converted):
                return None
            if type_.record is not None:
                records = convert_records(arrow.single_array(converted), type_)
                return None if records is None else pa.chunked_array([records])
    except pa.ArrowException:
        return None
    if type_.kind is Kind.FLOAT:
        is_kept = pc.equal(pc.is_inf(converted), pc.is_inf(column))
        return arrow.canonical_floats(converted) if pc.all(is_kept, min_count=0).as_py() else None
    if type_.is_time and not _is_in_calendar(converted, type_):
        return None
    if type_.is_time_of_day and not _is_in_day(converted):
        return None
    return converted


def _has_nul(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether a text has a NUL character."""
    return bool(pc.any(pc.match_substring(texts, "\0"), min_count=0).as_py())


def _is_in_calendar(column: pa.ChunkedArray, type_: Type) -> bool:
    is_date = type_.is_date
    found = pc.min_max(column.cast(pa.int32() if is_date else pa.int64()))
    least, most = found["min"].as_py(), found["max"].as_py()
    unit = 1 if is_date else DAY_MICROSECONDS
    return least is None or (LEAST_DAY * unit <= least and most < (LAST_DAY + 1) * unit)


_DAY = range(DAY_MICROSECONDS)


def _is_in_day(column: pa.ChunkedArray) -> bool:
    found = pc.min_max(column.cast(pa.int64()))
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (least in _DAY and most in _DAY)


def _from_arrow(value: object, type_: Type) -> Value:
    """Return a value of an Arrow column as one of our values."""
    match value:
        case UnicodeDecodeError():
            raise ValueError("the text is not UTF-8")
        case Exception() if type_.kind is Kind.TIMESTAMP:
            raise ValueError("the time has parts of a microsecond, or is out of range")
        case Exception():
            raise ValueError(f"the value is out of range for {type_.with_null(False)}")
        case int() if type_.kind is Kind.FLOAT and _finite(value, type_) != value:
            plain = type_.with_null(False)
            raise ValueError(f"{quote_text(str(value))} has more digits than a {plain} holds")
        case int() | float() if type_.kind is Kind.FLOAT:
            return _finite(value, type_) if math.isfinite(value) else canonical_float(value)
        case str():
            return parse_value(_encodable(value), type_)
        case bool() | time():
            return value
        case int() if (
            type_.is_time_of_day and type_.spec.bounds[0] <= value <= type_.spec.bounds[1]
        ):
            return from_stored(value, type_)  # type: ignore[no-any-return]
        case int() | Decimal():
            return parse_value(_digits(value), type_)
        case float() if value.is_integer():
            return parse_value(_digits(int(value)), type_)
        case datetime():
            if getattr(value, "nanosecond", 0):  # a pandas Timestamp, which has nanoseconds
                raise ValueError(f"{quote_text(str(value))} has parts of a microsecond")
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return value
        case _:
            raise ValueError(_mismatch(value, type_))
