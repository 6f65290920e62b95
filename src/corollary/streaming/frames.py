"""The rows of a micro-batch as events: which column is which, in which order, of which types.

| the frame has                | its columns are matched |
|------------------------------|-------------------------|
| all names of the relation    | by name                 |
| none of them, the same arity | by position             |
| anything else                | not at all (`C0983`)    |

`op` and `order` are always matched by name. Values are converted as those of Parquet files are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import nullary_table, single_array
from corollary.core.arrow_buffers import bool_array, fixed_values
from corollary.core.program import Directive, Relation
from corollary.core.types import SYMBOL
from corollary.data_class import dataclass
from corollary.database.writing import events
from corollary.engines.spark.frames import empty_rows
from corollary.errors import InputError
from corollary.warehouse.formats.typed_values import is_readable
from corollary.warehouse.sources.parquet_file import convert_records
from corollary.warehouse.sources.quarantine import to_bad_rows
from corollary.warehouse.sources.schema_drift import ExpectedColumns


@dataclass(frozen=True, slots=True)
class FrameReader:
    """Reads the micro-batches of a frame that the user made."""

    op: str | None = None
    order: str | None = None

    def check(self, frame: Any, relation: Relation) -> None:
        """Check that a frame fits a relation, before the stream is started.

        Raises:
            InputError: `C0983` or `C0984`.
        """
        # An empty frame has the same types as all micro-batches.
        empty = empty_rows(frame.sparkSession.createDataFrame([], frame.schema))
        self._check_columns(empty)
        self._positions(empty.schema, relation)

    def select(self, frame: Any) -> Any:
        """Return what is read of a micro-batch."""
        return frame

    def read(
        self, table: pa.Table, relation: Relation, source: str, batch: str
    ) -> list[events.Events]:
        """Return the events of some rows of a batch.

        Raises:
            InputError: `C0983` or `C0984`.
        """
        self._check_columns(table)
        shape = events.with_operation(relation, self.op)
        if not shape.columns:
            return [events.Events(nullary_table(min(1, table.num_rows)))]
        columns = [table.column(at) for at in self._positions(table.schema, relation)]
        expected = ExpectedColumns(shape, Directive("input", relation.name))
        rows, findings = convert_records(columns, batch, expected)
        bad = to_bad_rows(relation.name, source, batch, findings)
        if self.order is not None:
            order = table.column(self.order).filter(_is_good(bad, table.num_rows))
            rows = rows.append_column(events.ORDER_COLUMN, order)
        rows, unknown = events.with_signs(rows, relation, self.op, source, batch)
        bad = pa.concat_tables([bad, unknown])
        return [events.Events(rows, bad, tuple(findings), records=table.num_rows)]

    def _check_columns(self, table: pa.Table) -> None:
        """Check the columns of operation and order."""
        for column in filter(None, (self.op, self.order)):
            if table.column_names.count(column) != 1:
                raise _mismatch(
                    "C0984",
                    f"The frame has no column `{column}`"
                    if column not in table.column_names
                    else f"The frame has several columns `{column}`",
                    f"its columns are {_listed(table.column_names)}",
                )
        if self.op is not None and not is_readable(table.schema.field(self.op).type, SYMBOL):
            kind = table.schema.field(self.op).type
            raise _mismatch("C0984", f"The column `{self.op}` is a `{kind}`", "make it a string")
        if self.order is None:
            return
        try:
            events.in_order(pa.table({events.ORDER_COLUMN: table.column(self.order).slice(0, 0)}))
        except pa.ArrowException:
            kind = table.schema.field(self.order).type
            hint = "order by numbers, texts, dates or times"
            raise _mismatch("C0984", f"`{self.order}` is a `{kind}`, without order", hint) from None

    def _positions(self, schema: pa.Schema, relation: Relation) -> list[int]:
        """Return the positions of the columns of the events in a frame."""
        names = list(schema.names)
        if self.op is not None and self.op in relation.columns:
            raise _mismatch(
                "C0984",
                f"`{self.op}` is a column of `{relation.name}`, so it cannot be the operation",
                f'rename that of the frame: `frame.withColumnRenamed("{self.op}", …)`',
            )
        others = [at for at, name in enumerate(names) if name not in (self.op, self.order)]
        if all(names.count(name) == 1 for name in relation.columns):
            positions = [names.index(name) for name in relation.columns]
        elif len(others) == relation.arity and not set(names) & set(relation.columns):
            positions = others
        else:
            wanted = ", ".join(f'"{name}"' for name in relation.columns)
            raise _mismatch(
                "C0983",
                f"The columns of the frame, {_listed(names)}, are not those of `{relation.name}`",
                f"select and rename them: `frame.select({wanted})`",
            )
        for at, name, type_ in zip(positions, relation.columns, relation.types, strict=True):
            found = schema.field(at).type
            if not is_readable(found, type_):
                raise _mismatch(
                    "C0983",
                    f"Column `{name}` of `{relation.name}` is a `{type_}`, but `{names[at]}` of "
                    f"the frame is a `{found}`",
                    "cast it in the frame; what cannot be cast is null there, and set aside here",
                )
        return positions if self.op is None else [*positions, names.index(self.op)]


def _is_good(bad: pa.Table, rows: int) -> pa.Array:
    """Return for each row whether it is not among the malformed ones."""
    found = np.ones(rows, np.bool_)
    found[fixed_values(single_array(bad.column("line")), np.int64) - 1] = False
    return bool_array(found)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _mismatch(code: str, message: str, hint: str) -> InputError:
    return InputError.of(code, f"{message}.", None, hint)
