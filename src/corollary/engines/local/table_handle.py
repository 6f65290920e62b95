"""Tables as Arrow, decoded at once, slice by slice or through a handle."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.core.arrow_buffers import fixed_array
from corollary.core.engine import LocalHandle, slice_bounds
from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.storage.arrangement import merge_layers
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Row, Words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

LOOKUP_RANGE_PER_ROW = 32
"""Distinct codes are found by a table if their range is at most this many times the rows."""

DICTIONARY_ROWS_PER_TEXT = 16
"""Texts that occur this often on average are decoded as dictionaries: a file repeats these."""

TAKE_ROWS_PER_TEXT = 2
"""Texts that occur this often on average are decoded once each."""


class EncodedTableHandle(LocalHandle):
    """The tuples that a relation had in a state, decoded when they are read.

    The arrays of a table are never modified, so keeping references to them costs no copy.
    """

    __slots__ = ("_dictionary", "_layers", "_layout", "_names", "_size", "_types")

    def __init__(
        self, table: Table, state: State, names: Sequence[str], dictionary: Dictionary
    ) -> None:
        arrangement = table.arrangement(table.primary_order)
        self._layers = arrangement.layers(state)
        self._layout = arrangement.layout
        self._types = table.types
        self._size = table.size(state)
        self._names = tuple(names)
        self._dictionary = dictionary

    def __len__(self) -> int:
        return self._size

    def table(self) -> pa.Table:
        """Return the tuples as an Arrow table."""
        words = merge_layers(self._layers, self._layout)
        return decode_words(words, self._layout, self._types, self._names, self._dictionary)

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables of about equal size, each decoded when it is asked for.

        A column of few texts is one of dictionaries.
        """
        words = merge_layers(self._layers, self._layout)
        for start, end in slice_bounds(len(words), max_rows):
            yield self._decode_slice(words[start:end])

    def _decode_slice(self, words: Words) -> pa.Table:
        if not self._types:
            return nullary_table(len(words))
        columns = []
        for index, type_ in enumerate(self._types):
            codes = self._layout.unpack_column(words, index)
            decode = _decode_texts if type_.stores_texts else Dictionary.decode_arrow
            columns.append(decode(self._dictionary, codes, type_))
        return pa.table(columns, names=list(self._names))


class RowsHandle(LocalHandle):
    """Few tuples that a relation has gained or lost, decoded when they are read."""

    __slots__ = ("_dictionary", "_names", "_rows", "_types")

    def __init__(
        self,
        rows: Sequence[Row],
        types: tuple[Type, ...],
        names: Sequence[str],
        dictionary: Dictionary,
    ) -> None:
        self._rows = tuple(rows)
        self._types = types
        self._names = tuple(names)
        self._dictionary = dictionary

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> pa.Table:
        """Return the tuples as an Arrow table."""
        if not self._types:
            return nullary_table(len(self._rows))
        codes = np.array(sorted(self._rows), np.int64).reshape(len(self._rows), len(self._types))
        columns = [
            self._dictionary.decode_arrow(column, type_)
            for column, type_ in zip(np.ascontiguousarray(codes.T), self._types, strict=True)
        ]
        return pa.table(columns, names=list(self._names))


def decode_table(
    table: Table, state: State, names: Sequence[str], dictionary: Dictionary
) -> pa.Table:
    """Return the tuples of a table in a state."""
    return decode_words(table.tuples(state), table.layout, table.types, names, dictionary)


def recode_table(table: Table, before: Dictionary, after: Dictionary) -> Table:
    """Return a table with the committed tuples of another, coded by another dictionary."""
    other = Table(table.types)
    for order in table.old_layers():
        other.want(order)
    names = [f"c{at}" for at in range(len(table.types))]
    rows = decode_table(table, State.OLD, names, before)
    columns = [after.encode_arrow(rows.column(at), each) for at, each in enumerate(table.types)]
    other.insert(columns, rows.num_rows)
    other.commit()
    return other


def decode_words(
    words: Words,
    layout: Layout,
    types: tuple[Type, ...],
    names: Sequence[str],
    dictionary: Dictionary,
) -> pa.Table:
    """Return packed tuples as an Arrow table."""
    if not types:
        return nullary_table(len(words))
    columns = [
        dictionary.decode_arrow(layout.unpack_column(words, index), type_)
        for index, type_ in enumerate(types)
    ]
    return pa.table(columns, names=list(names))


def encode_words(rows: pa.Table, table: Table, dictionary: Dictionary) -> Words:
    """Return the tuples of an Arrow table packed for a table, neither sorted nor distinct."""
    columns = [
        dictionary.encode_arrow(rows.column(at), type_) for at, type_ in enumerate(table.types)
    ]
    return table.pack(columns, rows.num_rows)


def _decode_texts(dictionary: Dictionary, codes: Codes, type_: Type) -> pa.Array | pa.ChunkedArray:
    """Return what is stored as texts, repeated ones decoded once; few texts as dictionaries."""
    least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
    if not most or most - least > LOOKUP_RANGE_PER_ROW * len(codes):
        return dictionary.decode_arrow(codes, type_)
    offsets = codes - least
    is_used = np.zeros(most - least + 1, np.bool_)
    is_used[offsets] = True
    is_used[: 1 - min(least, 1)] = False  # null, code 0, is not a text
    distinct = is_used.nonzero()[0]
    if len(distinct) * TAKE_ROWS_PER_TEXT > len(codes):
        return dictionary.decode_arrow(codes, type_)
    positions = np.empty(len(is_used), np.int32)
    positions[distinct] = np.arange(len(distinct), dtype=np.int32)
    texts = dictionary.decode_arrow(distinct + least, type_)
    nulls = codes == 0 if not least else None
    indices = fixed_array(positions[offsets], pa.int32(), nulls)
    is_few = len(distinct) * DICTIONARY_ROWS_PER_TEXT <= len(codes)
    if is_few and isinstance(texts, pa.Array) and not pa.types.is_nested(texts.type):
        return pa.DictionaryArray.from_arrays(indices, texts)
    return texts.take(indices)
