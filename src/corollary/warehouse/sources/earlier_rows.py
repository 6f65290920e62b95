"""The rows that a source had when it was last read; few are looked at where few are needed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from corollary.core.arrow_buffers import Mask, bool_array
from corollary.core.engine import ValueRange
from corollary.warehouse.row_words import is_among, row_words


class EarlierRows(Protocol):
    """The rows that a source had when it was last read."""

    def __len__(self) -> int:
        """Return how many there are."""

    def table(self) -> pa.Table:
        """Return all of them, with the columns of the relation in any order."""

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return those in one of several boxes, each once, perhaps with others.

        A box has ranges for some columns, in which the values of a row have to be.
        """

    def matching(self, rows: pa.Table, columns: Sequence[int]) -> pa.Table:
        """Return those that agree with one of some rows in some columns, each once."""


class TableRows:
    """Rows in a table."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def table(self) -> pa.Table:
        """Return all rows."""
        return self._rows

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:  # noqa: ARG002
        """Return all rows."""
        return self._rows

    def matching(self, rows: pa.Table, columns: Sequence[int]) -> pa.Table:
        """Return those that agree with one of some rows in some columns."""
        names = [rows.column_names[at] for at in columns]
        return rows_matching(self._rows, rows, names)


def rows_matching(rows: pa.Table, others: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the rows that agree with one of others, of the same types, in some columns.

    >>> some, others = pa.table({"x": [1, 2], "y": [3, 4]}), pa.table({"x": [2], "y": [5]})
    >>> rows_matching(some, others, ["x"]).to_pylist()
    [{'x': 2, 'y': 4}]
    """
    return rows.filter(bool_array(_is_matching(rows, others, columns)))


def rows_without(rows: pa.Table, others: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the rows that agree with none of others, of the same types, in some columns.

    >>> some, others = pa.table({"x": [1, 2], "y": [3, 4]}), pa.table({"x": [2], "y": [5]})
    >>> rows_without(some, others, ["x"]).to_pylist()
    [{'x': 1, 'y': 3}]
    """
    return rows.filter(bool_array(~_is_matching(rows, others, columns)))


def _is_matching(rows: pa.Table, others: pa.Table, columns: Sequence[str]) -> Mask:
    both = [pa.chunked_array([*rows[name].chunks, *others[name].chunks]) for name in columns]
    words = row_words(both, rows.num_rows + others.num_rows)
    return is_among(words[: rows.num_rows], words[rows.num_rows :])
