"""Tables as Arrow, decoded at once or through a handle."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.core.engine import LocalHandle, slice_bounds
from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.storage.arrangement import merge_layers
from corollary.engines.local.storage.layout import Layout, Words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary


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
        return self._decode(merge_layers(self._layers, self._layout))

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables of about equal size, each decoded when it is asked for."""
        words = merge_layers(self._layers, self._layout)
        for start, end in slice_bounds(len(words), max_rows):
            yield self._decode(words[start:end])

    def _decode(self, words: Words) -> pa.Table:
        return decode_words(words, self._layout, self._types, self._names, self._dictionary)


def decode_table(
    table: Table, state: State, names: Sequence[str], dictionary: Dictionary
) -> pa.Table:
    """Return the tuples of a table in a state."""
    return decode_words(table.tuples(state), table.layout, table.types, names, dictionary)


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
