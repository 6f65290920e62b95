"""Converts columns of texts to values by vectors: exactly as `values.parse_value`, or not at all.

Arrow's casts accept more than we do (`0xff…` as a negative number, `1e999` as infinity, 38 digits
that overflow a decimal), so each column is first restricted to texts on which both agree. Where one
text is not such a text, patterns select those that certainly are; all others are for the exact
reader, which may accept them.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type, canonical_floats, from_stored_column
from corollary.core.arrow_buffers import true_mask
from corollary.core.functors.times import DAY_MICROSECONDS, LEAST_DAY
from corollary.core.logic import Value
from corollary.core.types import DECIMAL_MAX_DIGITS, Kind, Type
from corollary.core.values import parse_value

Mask = npt.NDArray[np.bool_]

_PLAIN_BYTES = (ord("-"), ord("9"))
"""The range of `-`, `.`, `/` and the digits; no cast accepts a `/`."""
_OTHER_BYTES = {Kind.FLOAT: b"0123456789-.eE+nainf", Kind.TIMESTAMP: b"0123456789-:.TZ "}
"""The bytes on which we agree for kinds that have others than these."""
_SHORTEST_TIMESTAMP = len("2026-11-15T08:00:00Z")

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DAY = (
    f"{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_MOMENT = rf"{_DAY}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_PATTERNS = {
    Kind.BINARY: "(?:[0-9a-fA-F]{2})*",
    Kind.NUMBER: "-?[0-9]{1,18}",
    Kind.UNSIGNED: "[0-9]{1,19}",
    Kind.FLOAT: r"-?[0-9]{1,17}(?:\.[0-9]{1,17})?(?:[eE]-?[0-9]{1,2})?",
    Kind.DATE: _DAY,
    Kind.TIMESTAMP_NTZ: _MOMENT,
    Kind.TIMESTAMP: f"{_MOMENT}Z",
}


def convert_texts(text: pa.Array, type_: Type) -> pa.Array | None:
    """Return a column of texts as values, or None if a text may not be one of the type."""
    if type_.record is not None:
        return convert_records(text, type_)
    if type_.is_symbol:
        return text if type_.nullable or not text.null_count else pc.fill_null(text, "")
    if text.null_count and not type_.nullable:
        return None
    if type_.is_bool:
        truth = pc.equal(text, "true")
        is_known = pc.or_(truth, pc.equal(text, "false"))
        return truth if pc.all(is_known, min_count=0).as_py() else None
    if type_.is_timestamp_ntz:
        zoned = pc.binary_join_element_wise(text, "Z", "", null_handling="emit_null")
        found = convert_texts(zoned, type_.stored)
        return None if found is None else from_stored_column(found, type_)
    if type_.is_binary:
        is_all = pc.all(_match(text, type_), min_count=0).as_py()
        return from_stored_column(pc.ascii_upper(text), type_) if is_all else None
    if type_.members or type_.is_float32 or type_.is_time_of_day:
        words = text.dictionary_encode()
        try:
            values = [parse_value(each, type_) for each in words.dictionary.to_pylist()]
        except ValueError:
            return None
        return pa.array(values, arrow_type(type_)).take(words.indices)
    if not _has_agreed_bytes(text, type_.logical_kind):
        return None
    if type_.is_timestamp and not _is_plain_timestamp(text):
        return None
    if type_.is_decimal and not _is_short_decimal(text, type_):
        return None
    try:
        column = pc.cast(text, arrow_type(type_))
    except pa.ArrowException:
        return None
    match type_.logical_kind:
        case Kind.FLOAT:
            return canonical_floats(column) if _is_in_range(column, text) else None
        case Kind.DATE:
            return column if _is_after_year_0(column, pa.int32(), LEAST_DAY) else None
        case Kind.TIMESTAMP:
            return (
                column
                if _is_after_year_0(column, pa.int64(), LEAST_DAY * DAY_MICROSECONDS)
                else None
            )
        case _:
            return column


def convert_records(text: pa.Array, type_: Type) -> pa.Array | None:
    """Return the one text of each record, or None if a text is not one of the type."""
    if text.null_count and not type_.nullable:
        return None
    encoded = text.dictionary_encode()
    found = [_record(each, type_) for each in encoded.dictionary.to_pylist()]
    if None in found:
        return None
    return pa.array(found, text.type).take(encoded.indices)


def _record(text: str, type_: Type) -> Value:
    """Return the one text of a record; None if it is not one of the type."""
    try:
        return parse_value(text, type_)
    except ValueError:
        return None


def are_plain(text: pa.Array, type_: Type) -> Mask:
    """Return for each text whether it is certainly a value: `convert_texts` converts all these."""
    is_plain = true_mask(_match(text, type_))
    return is_plain | true_mask(pc.is_null(text)) if type_.nullable else is_plain


def _match(text: pa.Array, type_: Type) -> pa.Array:
    if type_.record is not None:
        encoded = text.dictionary_encode()
        known = [_record(each, type_) is not None for each in encoded.dictionary.to_pylist()]
        return pa.array(known, pa.bool_()).take(encoded.indices)
    if type_.is_bool:
        return pc.or_(pc.equal(text, "true"), pc.equal(text, "false"))
    pattern = _PATTERNS.get(type_.logical_kind, "")
    if type_.is_decimal:
        whole = f"-?[0-9]{{1,{type_.precision - type_.scale}}}" if _has_whole(type_) else "-?0"
        fraction = rf"(?:\.[0-9]{{1,{type_.scale}}})?" if type_.scale else ""
        pattern = whole + fraction
    return pc.match_substring_regex(text, f"^(?:{pattern})$")


def _has_whole(type_: Type) -> bool:
    return type_.precision > type_.scale


def _has_agreed_bytes(text: pa.Array, kind: Kind) -> bool:
    """Return whether the texts consist of bytes on which Arrow's cast and ours agree."""
    # All texts of an array are one buffer, which is checked at once; a slice has an offset.
    _, offsets, buffer = text.buffers()
    if buffer is None or not len(text):
        return True
    bounds = np.frombuffer(offsets, np.int32)[[text.offset, text.offset + len(text)]]
    content = np.frombuffer(buffer, np.uint8)[bounds[0] : bounds[1]]
    if not len(content):
        return True
    least, most = _PLAIN_BYTES
    if content.min() >= least and content.max() <= most:
        return True
    if kind not in _OTHER_BYTES:
        return False
    table = np.zeros(256, np.bool_)
    table[list(_OTHER_BYTES[kind])] = True
    return bool(table[content].all())


def _is_plain_timestamp(text: pa.Array) -> bool:
    """Return whether all texts have seconds and end in `Z`."""
    is_long = pc.greater_equal(pc.binary_length(text), _SHORTEST_TIMESTAMP)
    return bool(pc.all(pc.and_(is_long, pc.ends_with(text, "Z")), min_count=0).as_py())


def _is_short_decimal(text: pa.Array, type_: Type) -> bool:
    """Return whether no text has so many digits that Arrow's cast may overflow unnoticed."""
    length = pc.binary_length(text)
    longest = pc.max(length).as_py()
    if longest is None or longest + type_.scale <= DECIMAL_MAX_DIGITS:
        return True
    signs = pc.cast(pc.starts_with(text, "-"), pa.int32())
    point = pc.find_substring(text, ".")
    has_point = pc.greater_equal(point, 0)
    # A zero before the point counts for nothing.
    signs = pc.add(signs, pc.cast(pc.match_substring_regex(text, r"^-?0(?:\.|$)"), pa.int32()))
    whole = pc.subtract(pc.if_else(has_point, point, length), signs)
    digits = pc.subtract(pc.subtract(length, signs), pc.cast(has_point, pa.int32()))
    is_short = pc.and_(
        pc.less_equal(whole, type_.precision - type_.scale),
        pc.less_equal(digits, DECIMAL_MAX_DIGITS),
    )
    return bool(pc.all(is_short, min_count=0).as_py())


def _is_in_range(column: pa.Array, text: pa.Array) -> bool:
    """Return whether every infinity was written as one, and is not a number that is too large."""
    infinite = pc.is_inf(column)
    if not pc.any(infinite, min_count=0).as_py():
        return True
    named = pc.match_substring(text, "inf")
    return bool(pc.all(pc.equal(infinite, named), min_count=0).as_py())


def _is_after_year_0(column: pa.Array, integers: pa.DataType, first: int) -> bool:
    lowest = pc.min(column.view(integers)).as_py()
    return lowest is None or lowest >= first
