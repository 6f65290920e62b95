"""The rows that a source had when it was last read; few are looked at where few are needed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import LocalTable, TableHandle, ValueRange
from corollary.warehouse.row_words import is_among, row_words


class EarlierRows(Protocol):
    """The rows that a source had when it was last read."""

    def __len__(self) -> int:
        """Return how many there are."""

    def table(self) -> pa.Table:
        """Return all of them, with their copies and the columns of the relation in any order."""

    def handle(self) -> TableHandle:
        """Return a handle on the same."""

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

    def handle(self) -> TableHandle:
        """Return a handle on all rows."""
        return LocalTable(self.table())

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:  # noqa: ARG002
        """Return all rows."""
        return self._rows

    def matching(self, rows: pa.Table, columns: Sequence[int]) -> pa.Table:
        """Return those that agree with one of some rows in some columns."""
        names = [rows.column_names[at] for at in columns]
        mine, others = self._rows.select(names).cast(rows.select(names).schema), rows.select(names)
        words = row_words(pa.concat_tables([mine, others]).columns, len(self) + rows.num_rows)
        return self._rows.filter(bool_array(is_among(words[: len(self)], words[len(self) :])))
