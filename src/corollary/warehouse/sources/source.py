"""The protocol of sources, which return what has changed since they were last read.

Between runs the caller stores the *position* of each source, and its rows: its *part* of the
relation. A position and a part belong together, so both change in one commit; then a run that is
killed at any point is simply repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from corollary.analysis.change_streams import ChangeStream
from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import LocalTable, TableHandle, ValueRange
from corollary.core.program import Directive, Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.warehouse.row_words import is_among, row_words
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS


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


Rows: TypeAlias = pa.Table | TableHandle
"""Rows of a relation: a table, or a handle on those that tasks have read."""

Position = dict[str, Any]
"""The state of a source when it was last read, as JSON values that only the source interprets."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Change events that have come, which say what the rows of a source are now.

    Attributes:
        stream: how they change the relation.
        rows: the columns of a row, its sequence, and whether it is gone.
        is_first: whether they are all that there ever were.
        lag: how many messages are left for the next reading.
    """

    stream: ChangeStream
    rows: pa.Table
    is_first: bool
    lag: int


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What has changed in a source since a position.

    Attributes:
        added: the rows that it has now and did not have then; each once, if it had any rows. Of
            large files it is compact (`core.arrow.expand_table`).
        removed: the rows that it had then and does not have now, each once. Where equal rows are
            copies, both have as many as came or went.
        position: its position now; worth storing even if no row has changed.
        bad_rows: the malformed records that were found, as rows of the quarantine.
        reread_files: the files whose earlier malformed records no longer count; None for all files
            of the source.
        warnings: problems that did not abort the run.
        good_records: how many good records it has now; None if they are not counted.
        emptied_files: the files that have lost everything, also the header that they promise.
        events: what came of a stream of events, in place of added and removed rows.
    """

    added: Rows
    removed: Rows
    position: Position
    bad_rows: pa.Table = field(default_factory=lambda: NO_BAD_ROWS)
    reread_files: frozenset[str] | None = frozenset()
    warnings: tuple[Diagnostic, ...] = ()
    good_records: int | None = None
    emptied_files: tuple[str, ...] = ()
    events: EventBatch | None = None


class Source(Protocol):
    """A source of one base relation."""

    @property
    def name(self) -> str:
        """The unique name of the source, the same in every run."""

    @property
    def relation(self) -> Relation:
        """The relation that it fills."""

    @property
    def directive(self) -> Directive:
        """The `.input` that it is read for."""

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether nothing has changed since a position, without reading data.

        Raises:
            InputError: the source does not exist or cannot be read.
        """

    def change_since(self, before: Position | None, earlier: EarlierRows) -> SourceChange:
        """Return what has changed since a position.

        Args:
            before: the position of the last reading; None if there is none.
            earlier: the rows that the source had then, read only where they are needed.

        Raises:
            InputError: the source cannot be read, or has rows that are not acceptable.
        """
