"""The answer to a question in SQL."""

from typing import TYPE_CHECKING, Any

from corollary.core.arrow import to_python
from corollary.core.engine import LocalTable
from corollary.core.program import Relation
from corollary.core.records.record_rows import to_python_rows
from corollary.data_class import dataclass
from corollary.database.engines import SparkFrames

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_MAX_ROWS = 10
"""The maximum number of rows in the `repr` of an answer."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SqlAnswer:
    """The rows that a question has, in their order.

    Attributes:
        shape: the columns, and their types.
        is_ordered: whether the question says an order.
    """

    shape: Relation
    _table: "pa.Table"
    _frames: SparkFrames
    is_ordered: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.shape.columns

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        listed = ", ".join(
            f"{name}: {type_}"
            for name, type_ in zip(self.shape.columns, self.shape.types, strict=True)
        )
        lines = [f"<answer ({listed}), {len(self):,} row{'s' * (len(self) != 1)}>"]
        lines += [f"  {row}" for row in to_python(self._table.slice(0, SHOWN_MAX_ROWS))]
        if len(self) > SHOWN_MAX_ROWS:
            lines.append("  …")
        return "\n".join(lines)

    def arrow(self) -> "pa.Table":
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

        It is also shown as a temp view if `view` names one.
        """
        return self._frames.create_frame([(LocalTable(self._table), {})], self.shape, view)
