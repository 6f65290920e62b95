"""Records made and taken apart, on arrays of their texts; `core/records` has the syntax.

A record is made by joining the texts of its fields. It is taken apart by a regular expression where
that is possible: where its text has no quotes, and at most one field is a record itself or only
fields before the first such field are asked for. Otherwise each distinct record is read once.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import null_mask, text_scalar
from corollary.core.records.record_terms import BRANCH_OF, FIELD_OF, RECORD_OF
from corollary.core.records.record_text import (
    NEEDS_QUOTES,
    closing_bracket,
    quote_field,
    record_text,
    split_record,
)
from corollary.core.types import NIL, PLAIN_BRANCH, SYMBOL, Branch, RecordType, Type
from corollary.core.values import SCALARS, parse_value
from corollary.engines.local.evaluation.kernels import Operand, Result
from corollary.engines.local.evaluation.text_functions import to_text
from corollary.engines.local.evaluation.value_vector import ValueVector, union_masks
from corollary.engines.local.values import native
from corollary.engines.local.values.texts import Texts

_MARK = "\x00"
"""Stands for a field in the text of a record; no symbol has it."""


def _record_type(type_: Type) -> RecordType:
    assert type_.record is not None
    return type_.record


# --- making --------------------------------------------------------------------------------------


def _record_of(operands: list[Operand], type_: Type) -> Result:
    (names, _), *fields = operands
    if not len(names):
        return Texts.of([]), []
    branch = _record_type(type_).branches[names[0]]
    close = closing_bracket(branch.name)
    texts = [_field_texts(values, kind, close) for values, kind in fields]
    between = record_text(branch, [_MARK] * len(texts)).split(_MARK)
    if not texts:
        return Texts.of(between).repeat(len(names)), []
    parts: list[Any] = [text_scalar(between[0])]
    for text, after in zip(texts, between[1:], strict=True):
        parts += [text, text_scalar(after)]
    return Texts(pc.binary_join_element_wise(*parts, text_scalar(""))), []


def _field_texts(values: Any, type_: Type, close: str) -> pa.Array:
    """Return the texts of a field as they stand in a record."""
    if type_.record is not None:
        return values.array
    texts, _ = to_text([(values, type_)], SYMBOL)
    if not type_.is_symbol:
        return texts.array
    needs = pc.match_substring_regex(texts.array, NEEDS_QUOTES[close])
    if not pc.any(needs).as_py():
        return texts.array
    found, rows = texts.distinct()
    return Texts.of([quote_field(text, close) for text in found.tolist()]).take(rows).array


# --- taking apart --------------------------------------------------------------------------------


def _field_of(inputs: list[ValueVector], type_: Type) -> ValueVector:
    whole, names, numbers = inputs
    count = len(whole.values)
    if not count:
        return ValueVector(native.filler_values(0, type_), type_, None, whole.faults)
    record = _record_type(whole.type)
    branch, at = record.branches[names.values[0]], int(numbers.values[0])
    values, missing = _extract(whole.values, record, branch, at)
    nulls = union_masks(union_masks(whole.nulls, missing), whole.fault_mask)
    return ValueVector(values, type_, nulls, whole.faults)


def _extract(texts: Texts, record: RecordType, branch: Branch, at: int) -> tuple[Any, Any]:
    """Return the values of a field, and the rows whose records do not have it."""
    type_ = branch.types[at]
    pattern = _pattern(branch, at)
    has_quotes = pc.any(pc.match_substring(texts.array, '"')).as_py()
    if pattern is not None and not has_quotes:
        found = pc.struct_field(pc.extract_regex(texts.array, pattern), [0])
        missing = null_mask(found)
        return _scalars(Texts(found.fill_null(text_scalar(""))), missing, type_), missing
    distinct, rows = texts.distinct()
    parts = [split_record(text, record, SCALARS) if text else None for text in distinct.tolist()]
    is_there = np.array([part is not None and part.branch == branch.name for part in parts])
    present = [part.fields[at] for part in parts if part and part.branch == branch.name]
    values = native.scatter_values(native.from_python(present, type_), is_there)
    return values[rows], ~is_there[rows]


def _pattern(branch: Branch, at: int) -> str | None:
    """Return an expression with one group, for the field; None where there is none."""
    nested = [number for number, type_ in enumerate(branch.types) if type_.record is not None]
    if len(nested) > 1 and at >= nested[0]:
        return None
    plain = f"[^,{re.escape(closing_bracket(branch.name))}]*"
    parts = [".*" if number in nested else plain for number in range(len(branch.types))]
    parts[at] = f"(?P<field>{parts[at]})"
    if len(nested) > 1:  # what comes from the first one on is not looked at
        parts = [*parts[: nested[0]], ".*"]
    between = record_text(branch, [_MARK]).split(_MARK)
    return f"(?s)^{re.escape(between[0])}{', '.join(parts)}{re.escape(between[1])}$"


def _scalars(texts: Texts, missing: Any, type_: Type) -> Any:
    """Return the values of a field's texts."""
    if type_.is_symbol:
        return texts
    if type_.is_number:
        numbers = texts.array if missing is None else _filled(texts, missing, "0")
        values, _ = native.from_arrow(pa.chunked_array([numbers.cast(pa.int64())]), type_)
        return values
    distinct, rows = texts.distinct()
    words = distinct.tolist()
    is_there = np.array([bool(text) for text in words], np.bool_)
    found = [parse_value(text, type_) for text in words if text]
    return native.scatter_values(native.from_python(found, type_), is_there)[rows]


def _filled(texts: Texts, missing: Any, filler: str) -> pa.Array:
    return pc.if_else(pa.array(missing), text_scalar(filler), texts.array)


def _branch_of(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    ((texts, kind),) = operands
    if _record_type(kind).is_algebraic:
        found = pc.struct_field(pc.extract_regex(texts.array, r"^\$(?P<name>[^(]*)"), [0])
        return Texts(found.fill_null(text_scalar(""))), []
    is_nil = pc.equal(texts.array, text_scalar(NIL))
    return Texts(pc.if_else(is_nil, text_scalar(NIL), text_scalar(PLAIN_BRANCH))), []


RECORD_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    RECORD_OF: _record_of,
    BRANCH_OF: _branch_of,
}

RECORD_COMBINATIONS: Mapping[str, Callable[..., Any]] = {FIELD_OF: _field_of}
"""The functors whose result may be null where no argument is."""
