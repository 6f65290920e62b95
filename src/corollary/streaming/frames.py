"""The rows of a micro-batch as events: which column is which, in which order, of which types.

| the frame has                | its columns are matched |
|------------------------------|-------------------------|
| all names of the relation    | by name                 |
| none of them, the same arity | by position             |
| anything else                | not at all (`C0983`)    |

`op` and `order` are always matched by name. Values are converted as those of Parquet files are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import nullary_table
from corollary.core.program import Directive, Relation
from corollary.core.types import SYMBOL
from corollary.errors import Diagnostic, InputError
from corollary.streaming.events import Events, insert_signs, with_operation
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
        empty = frame.sparkSession.createDataFrame([], frame.schema).toArrow()
        self._sorted(empty)
        self._positions(empty.schema, relation)

    def read(
        self, frame: Any, relation: Relation, source: str, batch: str
    ) -> tuple[Events, list[list[Diagnostic]]]:
        """Return the events of a batch, and the findings about malformed rows."""
        table = self._sorted(frame.toArrow())
        shape = with_operation(relation, self.op)
        if not shape.columns:
            return Events(nullary_table(min(1, table.num_rows))), []
        columns = [table.column(at) for at in self._positions(table.schema, relation)]
        expected = ExpectedColumns(shape, Directive("input", relation.name))
        rows, malformed = convert_records(columns, batch, expected)
        return Events(rows, tuple(to_bad_rows(relation.name, source, batch, malformed))), malformed

    def _sorted(self, table: pa.Table) -> pa.Table:
        """Return the rows sorted by `order`; among equals, deletes come before inserts."""
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
            return table
        order = table.column(self.order)
        keys = {"is_known": order.is_valid(), "order": order}  # null comes before everything
        if self.op is not None:
            keys["sign"] = insert_signs(table.column(self.op))
        try:
            by = [(name, "ascending") for name in keys]
            at = pc.sort_indices(pa.table(keys), sort_keys=by)
        except pa.ArrowException:
            kind = table.schema.field(self.order).type
            hint = "order by numbers, texts, dates or times"
            raise _mismatch("C0984", f"`{self.order}` is a `{kind}`, without order", hint) from None
        return table.take(at)

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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _mismatch(code: str, message: str, hint: str) -> InputError:
    return InputError.of(code, f"{message}.", None, hint)
