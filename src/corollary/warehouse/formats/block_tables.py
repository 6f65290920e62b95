"""Makes tables of blocks, several at the same time, and puts them together in little memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import empty_table, nullary_table, schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind, Type

Block = TypeVar("Block")
Result = TypeVar("Result")

_READERS_MAX = 4
"""The maximum number of blocks that are read at the same time."""
_DICTIONARIES_MIN_BYTES = 2**28
"""The size up to which each block keeps its dictionary of texts."""
_INT8_INDICES, _INT16_INDICES = 2**7 - 1, 2**15 - 1
_DECIMAL32_DIGITS = 9
_DECIMAL64_DIGITS = 18


def map_blocks(function: Callable[[Block], Result], blocks: Iterable[Block]) -> Iterator[Result]:
    """Yield the results of a function for each block, in order.

    Arrow and NumPy release the interpreter's lock while they work, so threads are enough. Only a
    few blocks are in memory at the same time.

    >>> list(map_blocks(len, ["a", "bc", ""]))
    [1, 2, 0]
    """
    rest = iter(blocks)
    first = next(rest, None)
    second = None if first is None else next(rest, None)
    if first is not None and second is None:  # most files: no thread is needed
        yield function(first)
    if first is None or second is None:
        return
    readers = min(_READERS_MAX, os.cpu_count() or 1)
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(readers) as pool:
        pending += (pool.submit(function, first), pool.submit(function, second))
        for block in rest:
            if len(pending) > readers:
                yield pending.popleft().result()
            pending.append(pool.submit(function, block))
        while pending:
            yield pending.popleft().result()


class BlockTables:
    """The tables of the blocks of one relation, put together as one table.

    If there are several, the table is compact: integers and decimals are no wider than their
    values need, and texts are in one dictionary. `Table.cast` to the schema of the relation undoes
    it. So a large file needs no more memory than its rows do once they are coded.

    Args:
        relation: whose rows they are.
        is_compact: False where that would be undone at once, as in a task.
    """

    def __init__(self, relation: Relation, *, is_compact: bool = True) -> None:
        self._relation = relation
        self._is_compact = is_compact
        self._tables: list[pa.Table] = []  # those that are not in the columns
        self._rows = 0
        self._columns: list[_CompactColumn] = []

    def add(self, table: pa.Table) -> None:
        """Add the rows of the next block."""
        if not table.num_rows:
            return
        self._rows += table.num_rows
        self._tables.append(table)
        if self._rows == table.num_rows or not self._is_compact:
            return
        if not self._columns:
            self._columns = [_compact_column(type_) for type_ in self._relation.types]
        for each in self._tables:
            for column, values in zip(self._columns, each.columns, strict=True):
                column.add(values)
        self._tables.clear()

    def union(self) -> pa.Table:
        """Return the rows of all blocks."""
        if not self._relation.types:
            return nullary_table(min(1, self._rows))
        if self._tables:
            return pa.concat_tables(self._tables)
        schema = schema_of(self._relation)
        if not self._columns:
            return empty_table(self._relation)
        columns = [column.values() for column in self._columns]
        pa.default_memory_pool().release_unused()
        fields = [
            field.with_type(column.type) for field, column in zip(schema, columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))


class _CompactColumn:
    """The values of a column, block by block."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []

    def add(self, values: pa.ChunkedArray) -> None:
        """Add the values of a block."""
        self._chunks += values.chunks

    def values(self) -> pa.ChunkedArray:
        """Return all values; none can be added afterwards."""
        return pa.chunked_array(self._chunks)


class _CompactDecimals(_CompactColumn):
    """Decimals in 32 or 64 bits, if all of the type fit."""

    def __init__(self, type_: Type) -> None:
        super().__init__()
        make = pa.decimal32 if type_.precision <= _DECIMAL32_DIGITS else pa.decimal64
        self._type = make(type_.precision, type_.scale)

    def add(self, values: pa.ChunkedArray) -> None:
        """Add the values of a block."""
        super().add(values.cast(self._type))


class _CompactIntegers(_CompactColumn):
    """Integers in as few bytes as the values need."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        super().__init__()
        self._types = types
        self._widest = types[0]

    def add(self, values: pa.ChunkedArray) -> None:
        """Add the values of a block."""
        type_ = self._narrowest(values)
        self._widest = max(self._widest, type_, key=lambda each: each.bit_width)
        super().add(values.cast(type_))

    def values(self) -> pa.ChunkedArray:
        """Return all values; none can be added afterwards."""
        return pa.chunked_array([each.cast(self._widest) for each in self._chunks])

    def _narrowest(self, values: pa.ChunkedArray) -> pa.DataType:
        bounds = pc.min_max(values)
        for type_ in self._types:
            try:
                bounds["min"].cast(type_), bounds["max"].cast(type_)
            except pa.ArrowInvalid:
                continue
            return type_
        return self._types[-1]


class _CompactTexts(_CompactColumn):
    """Texts in one dictionary, which is made whenever those of the blocks have become large."""

    def __init__(self) -> None:
        super().__init__()
        self._unified_bytes = self._new_bytes = 0

    def add(self, values: pa.ChunkedArray) -> None:
        """Add the values of a block."""
        chunks = values.dictionary_encode().chunks
        self._chunks += chunks
        self._new_bytes += sum(each.dictionary.nbytes for each in chunks)
        if self._new_bytes > max(_DICTIONARIES_MIN_BYTES, self._unified_bytes):
            self._unify()

    def values(self) -> pa.ChunkedArray:
        """Return all values; none can be added afterwards."""
        self._unify()
        return pa.chunked_array(_with_narrow_indices(self._chunks))

    def _unify(self) -> None:
        """Replace the dictionaries by one, and the chunks by one."""
        try:
            column = pa.chunked_array(self._chunks).unify_dictionaries().combine_chunks()
        except pa.ArrowException:  # more than 2 GiB of different texts: they stay as they are
            self._new_bytes = 0
            return
        self._chunks = [column]
        self._unified_bytes, self._new_bytes = column.dictionary.nbytes, 0


def _with_narrow_indices(chunks: list[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """Return texts with indices of one or two bytes, if they are in one small dictionary."""
    if len(chunks) > 1 or len(chunks[0].dictionary) >= _INT16_INDICES:
        return chunks
    (chunk,) = chunks
    type_ = pa.int8() if len(chunk.dictionary) < _INT8_INDICES else pa.int16()
    return [pa.DictionaryArray.from_arrays(chunk.indices.cast(type_), chunk.dictionary)]


def _compact_column(type_: Type) -> _CompactColumn:
    match type_.logical_kind:
        case Kind.SYMBOL:
            return _CompactTexts()
        case Kind.NUMBER:
            return _CompactIntegers((pa.int8(), pa.int16(), pa.int32(), pa.int64()))
        case Kind.UNSIGNED:
            return _CompactIntegers((pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()))
        case Kind.DECIMAL if type_.precision <= _DECIMAL64_DIGITS:
            return _CompactDecimals(type_)
        case _:
            return _CompactColumn()
