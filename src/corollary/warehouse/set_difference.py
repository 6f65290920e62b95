"""Differences of relations as sets, by a word for each row.

Null equals null, NaN equals NaN, -0.0 equals 0.0; how often a row occurs does not matter.
"""

import numpy as np
import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.core.arrow_buffers import index_array
from corollary.warehouse.row_words import Words, is_among, row_words


def difference(before: pa.Table, now: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows that only the second table has, and those that only the first has, each once.

    >>> came, went = difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 3, 3]}))
    >>> came["x"].to_pylist(), went["x"].to_pylist()
    ([3], [1])
    """
    if not now.num_columns:
        had, has = before.num_rows > 0, now.num_rows > 0
        return nullary_table(has and not had), nullary_table(had and not has)
    before = before.cast(now.schema)
    # Words of both tables together: only then are equal words equal rows.
    both = pa.concat_tables([before, now])
    words = row_words(both.columns, both.num_rows)
    then, there = words[: before.num_rows], words[before.num_rows :]
    return _only_once(now, there, then), _only_once(before, then, there)


def minus(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return the rows of the left table that the right one does not have, each once."""
    return difference(right, left)[0]


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table, each once."""
    return minus(table, table.slice(0, 0))


def _only_once(table: pa.Table, words: Words, others: Words) -> pa.Table:
    """Return the rows whose words are not among others, each once and in order."""
    numbers = np.flatnonzero(~is_among(words, others)) if len(others) else np.arange(len(words))
    _, first = np.unique(words[numbers], return_index=True)
    return table.take(index_array(numbers[np.sort(first)]))
