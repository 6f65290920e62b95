"""Envelopes of Debezium: what values in them stand for, and what changes in their tables.

| in the table | in an envelope | is read as |
|---|---|---|
| a date | days since 1970 | a date |
| a time | a number of units since 1970, which the schema or `timestamp_unit` says | a time |
| a decimal | bytes in Base64, with the scale in the schema; else a text | a decimal |

A column that is missing, or has values of another kind than before, stops before anything is
written: the table was altered, and what came would not be what it was.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from corollary.analysis.change_streams import ChangeStream
from corollary.core.arrow import arrow_type
from corollary.core.program import Relation
from corollary.core.types import DATE, NUMBER, SYMBOL, TIMESTAMP, TIMESTAMP_NTZ
from corollary.errors import InputError
from corollary.warehouse.sources.events.messages import EventFieldReader
from corollary.warehouse.sources.schema_drift import ExpectedColumns, missing_column

UNAVAILABLE = "__debezium_unavailable_value"
"""Stands for a large value that an update has not changed."""
CHANGES = ("c", "r", "u", "d")
OTHERS = ("m", "status", "ddl")
"""What tells of transactions and statements, and changes no row."""
TRUNCATE = "t"

_DAYS, _DECIMAL = "days", "decimal"
_LOGICAL = {
    "io.debezium.time.Date": _DAYS,
    "org.apache.kafka.connect.data.Date": _DAYS,
    "io.debezium.time.Timestamp": "ms",
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
_KINDS = {
    **dict.fromkeys(("UBIGINT", "BIGINT", "HUGEINT", "UHUGEINT", "DOUBLE"), "number"),
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "OBJECT": "object",
    "ARRAY": "array",
}
_TIMES = (TIMESTAMP, TIMESTAMP_NTZ)


def encodings_of(
    stream: ChangeStream,
    fields: EventFieldReader,
    rows: pa.ChunkedArray,
    schemas: Iterable[str],
    known: Mapping[str, Sequence[str]],
) -> tuple[dict[str, tuple[str, int]], dict[str, list[str]]]:
    """Return how columns are written, and which kinds of values they have had so far.

    Args:
        stream: the events.
        fields: finds their fields.
        rows: those after changes.
        schemas: the different schemas that came with them.
        known: the kinds of values that earlier events had.

    Raises:
        InputError: `C0950`, a column is missing; `C1733`, it has other values than before, or
            numbers for times, of which nothing says what they are.
    """
    found = fields.kinds(rows, stream.filled)
    kinds: dict[str, list[str]] = {}
    directive = stream.directive
    expected = ExpectedColumns(stream.relation, directive)
    file = directive.parameter("topic") or directive.parameter("filename") or directive.relation
    for name, types in found.items():
        if "" in types:
            raise missing_column(
                expected, file, name, [each for each in found if "" not in found[each]]
            )
        now = {_KINDS[each] for each in types if each in _KINDS}
        before = set(known.get(name, ()))
        if before and now - before:
            raise _refusal(
                stream,
                f"`{name}` was {' or '.join(sorted(before))} in the events of `{file}`, and is "
                f"{' or '.join(sorted(now - before))} now.",
                f"fit the column of `{stream.relation.name}` to the altered table, in a relation "
                "that reads the events from their start",
            )
        kinds[name] = sorted(before | now)
    encodings: dict[str, tuple[str, int]] = {}
    for text in schemas:
        encodings |= _schema_encodings(json.loads(text))
    for name in stream.filled:
        type_ = stream.type_of(name).with_null(False)
        if name in encodings or "number" not in kinds[name]:
            continue
        if type_ == DATE:
            encodings[name] = _DAYS, 0
        elif type_ in _TIMES:
            unit = stream.directive.parameter("timestamp_unit")
            if not unit:
                raise _refusal(
                    stream,
                    f"`{name}` is a time, the events of `{file}` have numbers for it, and nothing "
                    "says of what.",
                    f'write `.input {stream.relation.name}(…, timestamp_unit="us")`, or `ms` or '
                    "`ns`; or let the connector send schemas",
                )
            encodings[name] = unit, 0
    return encodings, kinds


def _refusal(stream: ChangeStream, message: str, cure: str) -> InputError:
    return InputError.of("C1733", message, stream.directive.span, f"{cure}; nothing was changed")


def _schema_encodings(schema: Any) -> dict[str, tuple[str, int]]:
    """Return how the columns of a row are written, as its schema says."""
    parts = {each.get("field"): each for each in schema.get("fields", ())}
    row = parts.get("after") or parts.get("before") or {}
    found = {}
    for each in row.get("fields", ()):
        name = each.get("name", "")
        if name == "org.apache.kafka.connect.data.Decimal":
            found[each["field"]] = _DECIMAL, int(each.get("parameters", {}).get("scale", 0))
        elif name in _LOGICAL:
            found[each["field"]] = _LOGICAL[name], 0
    return found


def encoded_shape(relation: Relation, encodings: Mapping[str, tuple[str, int]]) -> Relation:
    """Return a relation with the types of what stands for values."""
    types = []
    for name, type_ in zip(relation.columns, relation.types, strict=True):
        how = encodings.get(name, ("", 0))[0]
        is_time = type_.with_null(False) in (DATE, *_TIMES)
        if how == _DECIMAL and type_.is_decimal:
            type_ = SYMBOL.with_null(type_.nullable)
        elif how and how != _DECIMAL and is_time:
            type_ = NUMBER.with_null(type_.nullable)
        types.append(type_)
    return replace(relation, types=tuple(types))


def decode_columns(
    rows: pa.Table, relation: Relation, encodings: Mapping[str, tuple[str, int]]
) -> pa.Table:
    """Return rows with the values that theirs stand for.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    for at, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True)):
        how, scale = encodings.get(name, ("", 0))
        wanted, column = arrow_type(type_), rows.column(name)
        if column.type == wanted:
            continue
        if how == _DAYS:
            column = column.cast(pa.int32()).cast(pa.date32()).cast(wanted)
        elif how == _DECIMAL:
            column = _decimals(column, scale).cast(wanted)
        else:
            zone = getattr(wanted, "tz", None)
            column = column.cast(pa.timestamp(how, tz=zone)).cast(wanted, safe=False)
        rows = rows.set_column(at, pa.field(name, wanted, nullable=type_.nullable), column)
    return rows


def _decimals(column: pa.ChunkedArray, scale: int) -> pa.Array:
    """Return the decimals that bytes in Base64 are: the distinct ones are converted one by one."""
    encoded = column.combine_chunks().dictionary_encode()
    values = []
    for text in encoded.dictionary.to_pylist():
        try:
            number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
        except ValueError as error:
            raise pa.ArrowInvalid(f"`{text}` is no decimal: {error}") from None
        values.append(Decimal(number).scaleb(-scale))
    return pa.array(values, pa.decimal128(38, scale)).take(encoded.indices)
