"""The answer to a question in SQL."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from corollary.core.arrow import sort_rows, to_python
from corollary.core.arrow_buffers import index_array
from corollary.core.engine import LocalTable, TableHandle
from corollary.core.program import Relation
from corollary.core.records.record_rows import to_python_rows
from corollary.data_class import dataclass
from corollary.database.engines import SparkFrames
from corollary.database.reading.questions import answer_shape
from corollary.warehouse.copies import CopiesHandle

if TYPE_CHECKING:
    from corollary.frontends.sql.statements.questions import CompiledQuestion

SHOWN_MAX_ROWS = 10
"""The maximum number of rows in the `repr` of an answer."""


@dataclass(frozen=True, repr=False, eq=False)
class SqlAnswer:
    """The rows that a question has, in their order.

    Rows in partitions stay there until they are read, as long as the database is open.
    """

    _every: Relation
    """All columns of the question, of which the user's come first."""
    _rows: TableHandle
    """In this process as they are shown; in partitions with all columns, in no order."""
    _question: "CompiledQuestion"
    _frames: SparkFrames

    @classmethod
    def of(
        cls,
        every: Relation,
        rows: TableHandle,
        question: "CompiledQuestion",
        frames: SparkFrames,
        *,
        has_counts: bool,
    ) -> Self:
        """Return the answer to a question.

        Args:
            every: the columns of the rows.
            rows: in no order.
            question: what was asked.
            frames: make Spark frames of them.
            has_counts: whether the last column of the rows has the number of copies.
        """
        rows = CopiesHandle(rows) if has_counts else rows
        if question.limit is not None or rows.portions() is None:
            rows = LocalTable(_arrange(rows, question))
        return cls(every, rows, question, frames)

    @cached_property
    def shape(self) -> Relation:
        """The columns, and their types."""
        return answer_shape(self._every.types, self._question)

    @property
    def is_ordered(self) -> bool:
        """Whether the question says an order."""
        return self._question.is_ordered

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.shape.columns

    @cached_property
    def _table(self) -> pa.Table:
        rows = self._rows
        return rows.rows if isinstance(rows, LocalTable) else _arrange(rows, self._question)

    def __len__(self) -> int:
        return max(0, len(self._rows) - self._offset)

    @property
    def _offset(self) -> int:
        """How many rows in partitions are not shown."""
        return 0 if isinstance(self._rows, LocalTable) else self._question.offset

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{name}: {type_}"
            for name, type_ in zip(self.shape.columns, self.shape.types, strict=True)
        )
        lines = [f"<answer ({listed}), {len(self):,} row{'s' * (len(self) != 1)}>"]
        if isinstance(self._rows, LocalTable):
            lines += [f"  {row}" for row in to_python(self._table.slice(0, SHOWN_MAX_ROWS))]
        if len(self) > SHOWN_MAX_ROWS:
            lines.append("  …")
        return "\n".join(lines)

    def fetched(self) -> Self:
        """Return the answer with its rows in this process, whatever becomes of the database."""
        return replace(self, _rows=LocalTable(self._table))

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._table

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as Python values, records as tuples."""
        return to_python_rows(self._table, self.shape.types)

    def pandas(self) -> Any:
        """Return the rows as a pandas frame."""
        return self._table.to_pandas()

    def spark(self, view: str | None = None) -> Any:
        """Return the rows as a frame of the Spark session that was passed, or of a local one.

        Tasks read and sort the rows in partitions. It is also shown as a temp view if `view` names
        one.
        """
        rows: list[tuple[TableHandle, dict[str, pa.Scalar]]] = [(self._rows, {})]
        question = self._question
        if isinstance(self._rows, LocalTable):
            return self._frames.create_frame(rows, self.shape, view)
        types = self._every.types[: len(question.columns)]
        names = tuple(f"column{at}" for at in range(len(types)))  # the user's may be equal
        shape = replace(self.shape, columns=names, types=types)
        order = question.order if question.is_ordered else None, question.offset, self.columns
        return self._frames.create_frame(rows, shape, view, order=order)


def _arrange(rows: TableHandle, question: "CompiledQuestion") -> pa.Table:
    """Return the rows in their order, up to the limit, with the user's columns."""
    if question.limit is None or not rows.is_distributed:
        table = rows.table()
    else:
        count = question.offset + question.limit
        first = partial(_first_rows, order=question.order, start=0, count=count)
        table = pa.concat_tables(rows.map_partitions(first))
    if question.is_ordered:
        table = _first_rows(table, question.order, question.offset, question.limit)
    names = [column.name for column in question.columns[: question.width]]
    return table.select(list(range(question.width))).rename_columns(names)


def _first_rows(
    table: pa.Table, order: Sequence[tuple[int, bool, bool]], start: int, count: int | None
) -> pa.Table:
    """Return some of the first rows in an order: column, whether it descends, nulls first."""
    keys, nulls = [(at, descends) for at, descends, _ in order], {at: n for at, _, n in order}
    rows = sort_rows(table, keys, nulls).slice(start, count)
    # A slice would keep all rows, also when it is pickled.
    return rows if count is None else rows.take(index_array(np.arange(rows.num_rows)))
