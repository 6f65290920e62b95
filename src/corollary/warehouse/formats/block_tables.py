"""Makes tables of blocks, several at the same time, and puts them together."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind

Block = TypeVar("Block")
Result = TypeVar("Result")

_READERS_MAX = 4
"""The maximum number of blocks that are read at the same time."""


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
    """The tables of blocks of one relation, as one table with a chunk for each.

    If there are several, texts are in dictionaries, one for each block: so the size of a relation
    in memory does not depend on the length of texts that occur often.
    """

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add the rows of the next block."""
        if not table.num_rows:
            return
        if len(self._tables) == 1:
            self._tables[0] = self._encoded(self._tables[0])
        self._tables.append(self._encoded(table) if self._tables else table)

    def union(self) -> pa.Table:
        """Return the rows of all blocks."""
        if not self._relation.types:
            return nullary_table(min(1, sum(table.num_rows for table in self._tables)))
        if not self._tables:
            return schema_of(self._relation).empty_table()
        return pa.concat_tables(self._tables)

    def _encoded(self, table: pa.Table) -> pa.Table:
        for at, type_ in enumerate(self._relation.types):
            column = table.column(at)
            if type_.kind is Kind.SYMBOL and not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
                field = table.schema.field(at).with_type(column.type)
                table = table.set_column(at, field, column)
        return table
