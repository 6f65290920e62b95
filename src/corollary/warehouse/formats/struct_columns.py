"""Arrow structs as the texts of records, by vectors: level by level, each distinct value once.

A struct has the fields of its record type by name, in any order (`core.records.record_structs` has
the other direction). Arrow types end somewhere, so a value of a type that contains itself is a
struct that is as deep as its deepest value:

    struct<head: int64, tail: struct<head: int64, tail: struct<head: int64>>>

Where a field of a record type is missing or null, the value is `nil`. Values of an algebraic data
type name their branch in a field `branch`, and have a struct for it.

Of each level there are *codes*, one for each row, of its distinct texts; a level is made of the
levels below it:

| rows                     | codes of `x` | codes of `y` | distinct pairs   | texts, and codes  |
|--------------------------|--------------|--------------|------------------|-------------------|
| (1, a), (2, a), (1, a)   | 0, 1, 0      | 0, 0, 0      | (0, 0), (1, 0)   | `[1, a]` `[2, a]` |
|                          |              |              |                  | 0, 1, 0           |
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import single_array
from corollary.core.arrow_buffers import index_array, true_mask
from corollary.core.records.record_structs import BRANCH_FIELD
from corollary.core.records.record_text import NEEDS_QUOTES, closing_bracket
from corollary.core.types import NIL, PLAIN_BRANCH, Branch, RecordType, Type
from corollary.data_class import dataclass
from corollary.warehouse.formats.delimited_lines import text_column

Codes = npt.NDArray[np.int64]
Failures = dict[int, str]


class ScalarColumns(NamedTuple):
    """How columns of what is not a record are converted.

    Attributes:
        is_readable: whether values of an Arrow type can be converted to a type.
        convert: a column in one of our types, null where a value cannot be converted, and why.
    """

    is_readable: Callable[[pa.DataType, Type], bool]
    convert: Callable[[pa.ChunkedArray, Type], tuple[pa.ChunkedArray, Failures]]


NO_VALUE = -1
"""The code of a row without a value."""


@dataclass(frozen=True, slots=True)
class InternedTexts:
    """Texts by codes."""

    codes: Codes
    words: pa.Array

    def __len__(self) -> int:
        return len(self.codes)


def is_struct_of(
    found: pa.DataType, record: RecordType, is_readable: Callable[[pa.DataType, Type], bool]
) -> bool:
    """Return whether values of an Arrow type are structs that can be records of a type."""
    if not pa.types.is_struct(found):
        return False

    def has_fields(inside: pa.DataType, branch: Branch) -> bool:
        if not pa.types.is_struct(inside):
            return bool(pa.types.is_null(inside))
        for name, type_ in zip(branch.fields, branch.types, strict=True):
            at = inside.get_field_index(name)
            may_be_nil = type_.record is not None and not type_.record.is_algebraic
            is_missing = at < 0 or pa.types.is_null(inside.field(at).type)
            if not may_be_nil if is_missing else not is_readable(inside.field(at).type, type_):
                return False
        return True

    if not record.is_algebraic:
        return has_fields(found, record.branches[PLAIN_BRANCH])
    names = {field.name for field in found}
    return BRANCH_FIELD in names and all(
        has_fields(found.field(name).type, branch)
        for name, branch in record.branches.items()
        if name in names and branch.fields
    )


def record_texts(
    column: pa.ChunkedArray, type_: Type, scalars: ScalarColumns
) -> tuple[pa.ChunkedArray, Failures]:
    """Return structs as the texts of records, null where a value cannot be converted.

    Args:
        column: the structs; null is `nil`, or null in a nullable column.
        type_: of the column, a record type.
        scalars: converts what is not a record.
    """
    record = type_.record
    assert record is not None
    array = single_array(column)
    level = _Level(scalars, {})
    interned = level.of_record(array, record)
    codes, failures = interned.codes, level.failures
    if type_.nullable:
        codes = np.where(true_mask(array.is_null()), NO_VALUE, codes)
    texts = interned.words.take(index_array(codes, nulls=codes == NO_VALUE))
    return pa.chunked_array([texts]), dict(sorted(failures.items()))


@dataclass(frozen=True, slots=True)
class _Level:
    """Makes texts of values of a level; failures are by the number of the row."""

    scalars: ScalarColumns
    failures: Failures

    def of_record(self, array: pa.Array, record: RecordType) -> InternedTexts:
        """Return the texts of structs; those of the levels below come first."""
        is_there = true_mask(array.is_valid())
        if record.is_algebraic:
            return self._of_branches(array, record, is_there)
        nil = InternedTexts(np.zeros(len(array), np.int64), pa.array([NIL]))
        if not pa.types.is_struct(array.type):  # a field without a type, which is always null
            return nil
        made = self._of_fields(array, record.branches[PLAIN_BRANCH], record, is_there)
        return _choose(is_there, made, nil)

    def _of_branches(
        self, array: pa.Array, record: RecordType, is_there: npt.NDArray[np.bool_]
    ) -> InternedTexts:
        names = pc.struct_field(array, BRANCH_FIELD) if array.type.num_fields else array
        chosen = InternedTexts(np.full(len(array), NO_VALUE), pa.array([], pa.string()))
        for name, branch in record.branches.items():
            is_own = true_mask(pc.fill_null(pc.equal(names, name), False)) & is_there
            if not is_own.any():
                continue
            if branch.fields:
                at = array.type.get_field_index(name)
                inner = pa.nulls(len(array)) if at < 0 else pc.struct_field(array, name)
                is_empty = is_own & true_mask(inner.is_null())
                for row in np.flatnonzero(is_empty).tolist():
                    self._fail(row, f"there is no struct for the branch `{name}`")
                made = self._of_fields(inner, branch, record, is_own & ~is_empty)
            else:
                made = InternedTexts(np.zeros(len(array), np.int64), pa.array([f"${name}"]))
            chosen = _choose(is_own, made, chosen)
        for row in np.flatnonzero(chosen.codes == NO_VALUE).tolist():
            self._fail(row, f"the struct names no branch of `{record.name}`")
        return chosen

    def _of_fields(
        self, array: pa.Array, branch: Branch, record: RecordType, is_there: npt.NDArray[np.bool_]
    ) -> InternedTexts:
        """Return the texts of structs with the fields of a branch."""
        close = closing_bracket(branch.name)
        opening = "[" if branch.name == PLAIN_BRANCH else f"${branch.name}("
        levels: list[InternedTexts] = []
        for name, type_ in zip(branch.fields, branch.types, strict=True):
            has_field = pa.types.is_struct(array.type) and array.type.get_field_index(name) >= 0
            values = pc.struct_field(array, name) if has_field else pa.nulls(len(array))
            if type_.record is not None and not pa.types.is_string(values.type):
                level = self._nested(values, type_.record, is_there)
            else:
                level = self._of_scalars(values, type_, close, is_there)
            for row in np.flatnonzero((level.codes == NO_VALUE) & is_there).tolist():
                self._fail(row, f"null is not a value of the field `{name}` of `{record.name}`")
            levels.append(level)
        return _join(opening, levels, close)

    def _nested(
        self, values: pa.Array, record: RecordType, is_there: npt.NDArray[np.bool_]
    ) -> InternedTexts:
        """Return the texts of a field; what is inside of a value that is not there cannot fail."""
        inner = _Level(self.scalars, {})
        level = inner.of_record(values, record)
        for row, reason in inner.failures.items():
            if is_there[row]:
                self._fail(row, reason)
        return level

    def _of_scalars(
        self, values: pa.Array, type_: Type, close: str, is_there: npt.NDArray[np.bool_]
    ) -> InternedTexts:
        """Return the texts of values as they stand in a record that ends with a bracket."""
        found = values.type
        if not pa.types.is_null(found) and not self.scalars.is_readable(found, type_):
            reason = f"a `{found}` is not a `{type_}`"
            failed = dict.fromkeys(np.flatnonzero(is_there).tolist(), reason)
            values = pa.nulls(len(values))
        else:
            failed = {}
        nullable = type_.with_null(True)
        converted, more = self.scalars.convert(pa.chunked_array([values]), nullable)
        for row, reason in {**more, **failed}.items():
            if is_there[row]:
                self._fail(row, reason)
        distinct = single_array(converted).dictionary_encode()
        texts = text_column(pa.chunked_array([distinct.dictionary]), type_)
        if type_.is_symbol and type_.record is None:
            needs = pc.match_substring_regex(texts, NEEDS_QUOTES[close])
            texts = pc.if_else(needs, _quoted(texts), texts)
        codes = distinct.indices.fill_null(NO_VALUE).to_numpy(zero_copy_only=False)
        return InternedTexts(codes.astype(np.int64), texts)

    def _fail(self, row: int, reason: str) -> None:
        self.failures.setdefault(row, reason)


def _quoted(texts: pa.Array) -> pa.Array:
    """Return symbols in quotes, as `record_text.quoted` does."""
    escaped = pc.replace_substring(texts, "\\", "\\\\")
    escaped = pc.replace_substring(escaped, '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def _choose(
    is_first: npt.NDArray[np.bool_], first: InternedTexts, second: InternedTexts
) -> InternedTexts:
    """Return the texts of one or the other, row by row."""
    others = np.where(second.codes == NO_VALUE, NO_VALUE, second.codes + len(first.words))
    codes = np.where(is_first, first.codes, others)
    return InternedTexts(codes, pa.concat_arrays([first.words, second.words]))


def _join(opening: str, levels: list[InternedTexts], closing: str) -> InternedTexts:
    """Return the texts that levels make together; no value where one of them has none."""
    if not levels:
        return InternedTexts(np.zeros(0, np.int64), pa.array([opening + closing]))
    keys, firsts = levels[0].codes, np.zeros(0, np.int64)
    is_whole = np.ones(len(keys), np.bool_)
    for at, level in enumerate(levels):
        is_whole &= level.codes != NO_VALUE
        if at:
            keys = keys * (len(level.words) + 1) + level.codes
        _, firsts, keys = np.unique(keys, return_index=True, return_inverse=True)
        keys = keys.astype(np.int64)
    parts: list[pa.Array | str] = [opening]
    for at, level in enumerate(levels):
        chosen = level.codes[firsts]
        words = level.words.take(index_array(chosen, nulls=chosen == NO_VALUE))
        parts += [", " if at else "", words]
    words = pc.binary_join_element_wise(*parts, closing, "", null_handling="emit_null")
    return InternedTexts(np.where(is_whole, keys, NO_VALUE), words)
