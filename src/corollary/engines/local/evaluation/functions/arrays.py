"""Functors of arrays and structs, on all rows at once.

Elements are compared by their pieces (`core/records/arrays.py`), which have the order of values:
those of all arguments are ranked together, and functors compute with ranks. The rank of null is 0.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import (
    bool_array,
    fixed_values,
    index_array,
    null_mask,
    string_array,
    text_scalar,
)
from corollary.core.functors.arrays import FIELD, FIELDS, STRUCT, ZIP
from corollary.core.functors.catalog import FUNCTORS
from corollary.core.records.arrays import (
    END,
    Offsets,
    from_pieces,
    join_fields,
    join_pieces,
    offsets_of,
    owners_of,
    split_entries,
    split_fields,
    split_pieces,
    to_pieces,
)
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.kernels import (
    Kernel,
    Operand,
    Result,
    compute_rows,
    distinct_columns,
    on_values,
    spread_rows,
)
from corollary.engines.local.evaluation.value_vector import ComputedRows, ValueVector
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.texts import Texts

NO_ELEMENT = "an array has no such element"
SIZE_MAX = 1 << 24
"""The maximum number of elements of an array that is made by a number; Spark runs out of memory."""

TEXT_MAX_BYTES = 32 * SIZE_MAX
"""The maximum length of what is stored of such an array."""

TOO_LONG = f"an array would have more than {SIZE_MAX} elements"

_NOTHING, _END = text_scalar(""), text_scalar(END)
_NO_TEXT = pa.nulls(1, pa.large_string())[0]


def pieces_of(values: Any, nulls: Mask | None, type_: Type) -> Texts:
    """Return native values as the pieces of elements."""
    return Texts(to_pieces(native.to_arrow(values, nulls, type_.stored)))


def values_of(pieces: pa.Array, type_: Type) -> tuple[Any, Mask | None]:
    """Return the native values of pieces, and the mask of nulls."""
    stored = from_pieces(pieces, arrow_type(type_.stored))
    return native.from_arrow(pa.chunked_array([stored]), type_.stored)


@dataclass(frozen=True, slots=True)
class Lists:
    """Arrays by the ranks of their elements.

    Attributes:
        offsets: where each array begins, and where the last one ends.
    """

    offsets: Offsets
    ranks: Codes

    @property
    def sizes(self) -> Codes:
        """The number of elements of each array."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Codes:
        """The array of each element."""
        return owners_of(self.offsets)

    @property
    def places(self) -> Codes:
        """The place of each element in its array, from 0."""
        return np.arange(len(self.ranks)) - self.offsets[:-1].repeat(self.sizes)

    def where(self, mask: Mask) -> "Lists":
        """Return the arrays of the elements of a mask."""
        sizes = np.bincount(self.owners[mask], minlength=len(self.sizes))
        return Lists(offsets_of(sizes), self.ranks[mask])

    def ordered(self, *keys: Codes) -> "Lists":
        """Return the arrays with their elements in another order, by the last key first."""
        return Lists(self.offsets, self.ranks[np.lexsort((*keys, self.owners))])

    def firsts(self) -> Mask:
        """Return the mask of elements that none before is equal to."""
        mask = np.zeros(len(self.ranks), np.bool_)
        mask[np.unique(self.keys(self), return_index=True)[1]] = True
        return mask

    def keys(self, *others: "Lists") -> Codes:
        """Return a number for each pair of an array and an element."""
        width = max((int(each.ranks.max(initial=0)) for each in (self, *others)), default=0) + 1
        return self.owners * width + self.ranks

    def has(self, other: "Lists") -> Mask:
        """Return the mask of the elements of another that this one has, too."""
        return np.isin(other.keys(self), self.keys(other))

    def any(self, mask: Mask) -> Mask:
        """Return the arrays that have an element of a mask."""
        found = np.zeros(len(self.sizes), np.bool_)
        found[self.owners[mask]] = True
        return found


def _joined(one: Lists, other: Lists) -> Lists:
    owners = np.concatenate([one.owners, other.owners])
    ranks = np.concatenate([one.ranks, other.ranks])[np.argsort(owners, kind="stable")]
    return Lists(one.offsets + other.offsets, ranks)


def _distinct(lists: Lists) -> Lists:
    return lists.where(lists.firsts())


def _extreme(is_greatest: bool, lists: Lists) -> Codes:
    present = lists.where(lists.ranks != 0)
    result = np.zeros(len(lists.sizes), np.int64)
    found = np.flatnonzero(present.sizes)
    if len(found):
        reduce = np.maximum if is_greatest else np.minimum
        result[found] = reduce.reduceat(present.ranks, present.offsets[found])
    return result


def _sort(lists: Lists, ascends: Codes) -> Lists:
    signs = np.where(ascends != 0, 1, -1)[lists.owners]
    return lists.ordered(signs * lists.ranks)


def _position(lists: Lists, wanted: Codes) -> Codes:
    is_found = lists.ranks == wanted[lists.owners]
    owners, firsts = np.unique(lists.owners[is_found], return_index=True)
    result = np.zeros(len(wanted), np.int64)
    result[owners] = lists.places[is_found][firsts] + 1
    return result


def _slice(lists: Lists, start: Codes, length: Codes) -> tuple[Lists, Mask]:
    first = np.where(start > 0, start - 1, lists.sizes + start)
    bad = (start == 0) | (length < 0)
    last = np.where(bad | (first < 0), first, first + np.minimum(length, lists.sizes))
    places, owners = lists.places, lists.owners
    return lists.where((places >= first[owners]) & (places < last[owners])), bad


def _insert(lists: Lists, place: Codes, added: Codes) -> tuple[Lists, Mask]:
    """Return arrays with one more element; nulls fill what is between it and the others."""
    sizes = lists.sizes
    bad = (place == 0) | (place > SIZE_MAX) | (place < -SIZE_MAX)
    place = np.where(bad, 1, place)
    at = np.where(place > 0, place - 1, sizes + place + 1)
    before = at < 0
    total = np.where(before, -place, np.maximum(sizes, at) + 1)
    offsets, at = offsets_of(total), np.maximum(at, 0)
    ranks = np.zeros(offsets[-1], np.int64)
    owners, places = lists.owners, lists.places
    shift = np.where(before, total - sizes, 1)[owners]
    ranks[offsets[owners] + places + np.where(places >= at[owners], shift, 0)] = lists.ranks
    ranks[offsets[:-1] + at] = added
    return Lists(offsets, ranks), bad


def _contains(lists: Lists, wanted: Codes) -> tuple[Codes, Mask]:
    found = lists.any(lists.ranks == wanted[lists.owners])
    return found.astype(np.int64), ~found & lists.any(lists.ranks == 0)


def _overlap(one: Lists, other: Lists) -> tuple[Codes, Mask]:
    found = other.any(one.has(other) & (other.ranks != 0))
    has_null = one.any(one.ranks == 0) | other.any(other.ranks == 0)
    are_filled = (one.sizes > 0) & (other.sizes > 0)
    return found.astype(np.int64), ~found & has_null & are_filled


_KERNELS: dict[str, Callable[..., Any]] = {
    "array_distinct": _distinct,
    "array_union": lambda one, other: _distinct(_joined(one, other)),
    "array_intersect": lambda one, other: _distinct(one.where(other.has(one))),
    "array_except": lambda one, other: _distinct(one.where(~other.has(one))),
    "array_remove": lambda lists, x: lists.where(lists.ranks != x[lists.owners]),
    "array_compact": lambda lists: lists.where(lists.ranks != 0),
    "array_reverse": lambda lists: lists.ordered(-lists.places),
    "array_sort": lambda lists: lists.ordered(lists.ranks, lists.ranks == 0),
    "sort_array": _sort,
    "array_position": _position,
    "array_min": partial(_extreme, False),
    "array_max": partial(_extreme, True),
    "slice": _slice,
    "array_insert": _insert,
    "array_contains": _contains,
    "arrays_overlap": _overlap,
}
"""Functors of ranks; beside a result some give the rows without a value, or those that are null."""

_TAKE_NULL = frozenset({"array", "array_append", "array_prepend", "array_insert", "array_repeat"})
"""Functors for which a null among the elements is one like others."""


class ArrayRows(ComputedRows):
    """The rows that a functor computes, elements as pieces.

    Attributes:
        columns: the arguments in these rows.
    """

    __slots__ = ("columns",)

    def __init__(self, name: str, inputs: Sequence[ValueVector]) -> None:
        spec = FUNCTORS[name]
        elements = [at for at in range(len(inputs)) if len(spec.shape_at(at)) == 1]
        super().__init__(inputs, elements if name in _TAKE_NULL else ())
        columns: list[Any] = [each.values for each in inputs]
        for at in elements:
            columns[at] = pieces_of(columns[at], inputs[at].nulls, inputs[at].type)
        self.columns = list(map(self.take, columns))


def _by_ranks(name: str, inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """Return what a kernel computes of the ranks of elements."""
    spec = FUNCTORS[name]
    table = ArrayRows(name, inputs)
    columns, rows = distinct_columns(table.columns)
    split = [
        split_pieces(column.array) if spec.shape_at(at) == "[T]" else None
        for at, column in enumerate(columns)
    ]
    pieces = [pa.nulls(1, pa.large_string()).fill_null(_NOTHING)]
    for at, (column, lists) in enumerate(zip(columns, split, strict=True)):
        if lists is not None:
            pieces.append(lists[1])
        elif spec.shape_at(at) == "T":
            pieces.append(column.array)
    ordered, ranks = Texts(pa.concat_arrays(pieces)).ranks()
    starts = offsets_of(np.array([len(each) for each in pieces]))
    parts = iter(ranks[start:end] for start, end in pairwise(starts[1:]))
    arguments = [
        Lists(lists[0], next(parts))
        if lists is not None
        else next(parts)
        if spec.shape_at(at) == "T"
        else column
        for at, (column, lists) in enumerate(zip(columns, split, strict=True))
    ]
    made = _KERNELS[name](*arguments)
    found, mask = made if isinstance(made, tuple) else (made, None)
    values, nulls = found, None
    if isinstance(found, Lists):
        values = Texts(join_pieces(found.offsets, ordered.take(found.ranks).array))
    elif spec.shape[-1] == "T":
        values, nulls = values_of(ordered.take(found).array, type_)
    values, mask = spread_rows(values, rows), None if mask is None else spread_rows(mask, rows)
    nulls = None if nulls is None else spread_rows(nulls, rows)
    if spec.is_fallible and mask is not None:
        return table.vector(values, type_, nulls, [(mask, NO_ELEMENT)])
    return table.vector(values, type_, mask if nulls is None else nulls)


def _access(first: int, is_null: bool, inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """Return elements by their numbers.

    Args:
        first: the number of the first element; from 1, negative numbers count from the end.
        is_null: whether what is not there is null.
        inputs: arrays and numbers.
        type_: of the elements.
    """
    table = ArrayRows("get", inputs)
    texts, numbers = table.columns
    found, rows = texts.distinct()
    offsets, pieces = split_pieces(found.array)
    sizes = np.diff(offsets)[rows]
    places = np.where((numbers < 0) & (first == 1), sizes + numbers, numbers - first)
    absent = (places < 0) | (places >= sizes)
    if first == 1 and is_null:
        bad = numbers == 0
    else:
        bad = np.zeros(len(absent), np.bool_) if is_null else absent
    chosen = index_array(np.where(absent, 0, offsets[rows] + places), absent)
    values, nulls = values_of(pieces.take(chosen).fill_null(_NOTHING), type_)
    return table.vector(values, type_, nulls, [(bad, NO_ELEMENT)])


def _join_arguments(name: str, inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    """Return arrays whose texts are those of the arguments one after the other."""
    table = ArrayRows(name, inputs)
    parts = [
        pc.binary_join_element_wise(column.array, _END, _NOTHING)
        if FUNCTORS[name].shape_at(at) == "T"
        else column.array
        for at, column in enumerate(table.columns)
    ]
    if name == "array_prepend":
        parts.reverse()
    return table.vector(Texts(pc.binary_join_element_wise(*parts, _NOTHING)), type_)


def _struct(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("array", inputs[1::2])
    return table.vector(Texts(join_fields([each.array for each in table.columns])), type_)


def _field(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    structs, names = inputs
    table = ArrayRows("get", [structs])
    found, rows = table.columns[0].distinct()
    values, nulls = values_of(_field_pieces(found.array, structs.type, names), type_)
    nulls = None if nulls is None else spread_rows(nulls, rows)
    return table.vector(spread_rows(values, rows), type_, nulls)


def _field_pieces(texts: pa.Array, type_: Type, names: ValueVector) -> pa.Array:
    fields = [name for name, _ in type_.members]
    at = fields.index(names.values[0]) if len(names.values) else 0
    return split_fields(texts, len(fields))[at]


def _array_field(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    arrays, names = inputs
    table = ArrayRows("get", [arrays])
    offsets, pieces = split_pieces(table.columns[0].array)
    assert arrays.type.element is not None
    structs = from_pieces(pieces, pa.large_string())
    held = _field_pieces(structs, arrays.type.element, names)
    return table.vector(Texts(join_pieces(offsets, held)), type_)


def _zip(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("array_concat", inputs[1::2])
    lists = [split_pieces(each.array) for each in table.columns]
    sizes = np.max([np.diff(offsets) for offsets, _ in lists], axis=0)
    whole = Lists(offsets_of(sizes), np.zeros(sizes.sum(), np.int64))
    owners, places = whole.owners, whole.places
    fields = []
    for offsets, pieces in lists:
        absent = places >= np.diff(offsets)[owners]
        chosen = index_array(np.where(absent, 0, offsets[:-1][owners] + places), absent)
        fields.append(pieces.take(chosen).fill_null(_NOTHING))
    structs = to_pieces(join_fields(fields))
    return table.vector(Texts(join_pieces(whole.offsets, structs)), type_)


def _repeat(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("array_repeat", inputs)
    piece, counts = table.columns
    ended = pc.binary_join_element_wise(piece.array, _END, _NOTHING)
    lengths = fixed_values(pc.binary_length(ended).cast(pa.int64()), np.int64)
    large = counts > TEXT_MAX_BYTES // np.maximum(lengths, TEXT_MAX_BYTES // SIZE_MAX)
    times = index_array(np.where(large, 0, np.maximum(counts, 0)))
    repeated = Texts(pc.binary_repeat(ended, times))
    return table.vector(repeated, type_, faults=[(large, TOO_LONG)])


def _flatten(inputs: Sequence[ValueVector], type_: Type) -> ValueVector:
    table = ArrayRows("flatten", inputs)
    offsets, pieces = split_pieces(table.columns[0].array)
    inner = from_pieces(pieces, pa.large_string())
    texts = pc.binary_join(pa.LargeListArray.from_arrays(index_array(offsets), inner), _NOTHING)
    return table.vector(Texts(texts.fill_null(_NOTHING)), type_, null_mask(texts))


def count_pieces(texts: Texts) -> Codes:
    """Return the number of pieces of each array or map."""
    return fixed_values(pc.count_substring(texts.array, END).cast(pa.int64()), np.int64)


def join_texts(
    lists: tuple[Offsets, pa.Array], between: pa.Array | pa.Scalar, instead: pa.Array | None
) -> pa.Array:
    """Return the texts of each list with something between them, and instead of nulls, if at all.

    Args:
        lists: where each begins, and their texts.
        between: what is between them.
        instead: for each list, what is there for a null; None to leave it out.
    """
    offsets, texts = lists
    owners = owners_of(offsets)
    if instead is not None:
        texts = pc.coalesce(texts, instead.take(index_array(owners)))
    nulls = null_mask(texts)
    if nulls is not None:
        owners, texts = owners[~nulls], texts.drop_null()
    sizes = np.bincount(owners, minlength=len(offsets) - 1)
    found = pa.LargeListArray.from_arrays(index_array(offsets_of(sizes)), texts)
    return pc.binary_join(found, between)


def _array_join(*columns: Texts) -> Texts:
    (arrays, between, *instead), rows = distinct_columns(list(columns))
    offsets, pieces = split_pieces(arrays.array)
    texts = from_pieces(pieces, pa.large_string())
    joined = join_texts((offsets, texts), between.array, instead[0].array if instead else None)
    found: Texts = spread_rows(Texts(joined), rows)
    return found


def show_nested(
    texts: Texts,
    type_: Type,
    show: Callable[..., Texts],
    names: Sequence[str] | None = None,
    *,
    keeps_nulls: bool = False,
) -> Texts:
    """Return arrays, structs and maps as texts, given what shows their members.

    Args:
        texts: what is stored of them.
        type_: that of an array, a struct or a map.
        show: shows values of a type.
        names: what is written before the fields of structs; without it, they are as in
            `[1, null, a]` and `{1, a}`.
        keeps_nulls: whether fields with names that are null are written, too.
    """
    between, null = text_scalar(", " if names is None else ","), text_scalar("null")

    def shown(pieces: pa.Array, member: Type, null: pa.Scalar) -> pa.Array:
        values, nulls = values_of(pieces, member)
        if nulls is None:
            return show(values, member).array
        values = native.scatter_values(values[~nulls], ~nulls)
        return pc.if_else(bool_array(nulls), null, show(values, member).array)

    first, last = "[]" if type_.is_array else "{}"
    if type_.element is not None:
        offsets, pieces = split_pieces(texts.array)
        joined = join_texts((offsets, shown(pieces, type_.element, null)), between, None)
    elif type_.is_map:
        offsets, *members = split_entries(texts.array)
        kinds = zip(members, (each for _, each in type_.members), strict=True)
        parts = (shown(each, inner, null) for each, inner in kinds)
        arrow = text_scalar(" -> " if names is None else ":")
        entries = pc.binary_join_element_wise(*parts, arrow)
        joined = join_texts((offsets, entries), between, None)
    else:
        fields = zip(split_fields(texts.array, len(type_.members)), type_.members, strict=True)
        if names is None:
            found = [shown(each, inner, null) for each, (_, inner) in fields]
            joined = pc.binary_join_element_wise(*found, between)
        else:
            absent = null if keeps_nulls else _NO_TEXT
            ended = [
                pc.binary_join_element_wise(
                    text_scalar(name), shown(each, inner, absent), between, _NOTHING
                ).fill_null(_NOTHING)
                for name, (each, (_, inner)) in zip(names, fields, strict=True)
            ]
            joined = pc.utf8_rtrim(pc.binary_join_element_wise(*ended, _NOTHING), between.as_py())
    return Texts(
        pc.binary_join_element_wise(text_scalar(first), joined, text_scalar(last), _NOTHING)
    )


def _sequence(operands: list[Operand], type_: Type) -> Result:
    first, last, step = (values for values, _ in operands)
    bad = ((step == 0) & (first != last)) | ((first < last) & (step < 0))
    bad |= (first > last) & (step > 0)
    # The distance of two numbers may need all 64 bits.
    low, high = np.minimum(first, last), np.maximum(first, last)
    distance = high.astype(np.uint64) - low.astype(np.uint64)
    steps = np.maximum(np.where(step < 0, -step, step).astype(np.uint64), np.uint64(1))
    counts = distance // steps
    large = ~bad & (counts >= SIZE_MAX)
    sizes = np.where(bad | large, 0, np.minimum(counts, SIZE_MAX).astype(np.int64) + 1)
    offsets = offsets_of(sizes)
    places = np.arange(offsets[-1]) - offsets[:-1].repeat(sizes)
    assert type_.element is not None
    pieces = pieces_of(first.repeat(sizes) + places * step.repeat(sizes), None, type_.element)
    reasons = ((bad, "a sequence never ends"), (large, TOO_LONG))
    return Texts(join_pieces(offsets, pieces.array)), list(reasons)


def each_list(function: Callable[..., Any]) -> Kernel:
    """Return a function that computes lists of texts, distinct rows one by one; None is null."""

    def apply(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
        lists, faults, rows = compute_rows(function, operands)
        pieces = to_pieces(string_array([text for each in lists for text in each or ()]))
        offsets = offsets_of(np.array([len(each or ()) for each in lists], np.int64))
        return spread_rows(Texts(join_pieces(offsets, pieces)), rows), faults

    return apply


def split_texts(text: str, pattern: str, limit: int) -> list[str]:
    """Split a text as Java does, and by an empty pattern into characters."""
    if text and not pattern:
        single = len(text) if limit <= 0 else min(limit, len(text)) - 1
        return [*text[:single], *([text[single:]] if single < len(text) else ())]
    start = 0
    found: list[str] = []
    for match in re2.finditer(pattern, text):
        if 0 < limit <= len(found) + 1:
            break
        if match.end():  # what matches nothing at the beginning does not count
            found.append(text[start : match.start()])
            start = match.end()
    return [*found, text[start:]]


ARRAY_COMBINATIONS: dict[str, Callable[[Sequence[ValueVector], Type], ValueVector]] = {
    **{name: partial(_by_ranks, name) for name in _KERNELS},
    **{
        name: partial(_join_arguments, name)
        for name in ("array", "array_append", "array_prepend", "array_concat")
    },
    "array_repeat": _repeat,
    "flatten": _flatten,
    STRUCT: _struct,
    FIELD: _field,
    FIELDS: _array_field,
    ZIP: _zip,
    "get": partial(_access, 0, True),
    "element": partial(_access, 0, False),
    "element_at": partial(_access, 1, False),
    "try_element_at": partial(_access, 1, True),
}

ARRAY_FUNCTIONS: dict[str, Kernel] = {
    "size": on_values(count_pieces),
    "array_join": on_values(_array_join),
    "sequence": _sequence,
    "split": each_list(split_texts),
}
