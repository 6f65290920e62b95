"""What a source is to a run: something that can tell what has changed since it was last read.

Between runs the caller keeps the *position* of each source, and the rows that it gave: its *part*
of the relation. A position and a part belong together, so both change in one commit; then a run
that is killed at any point is simply done again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from corollary.core.program import Relation
from corollary.errors import Diagnostic
from corollary.warehouse.sources.quarantine import BadRow

Position = dict[str, Any]
"""How far a source has been read, fit for JSON; only the source itself looks inside."""
Content: TypeAlias = pa.Table | Callable[[], pa.Table]
"""The rows that a source had when it was last read, or what returns them when they are needed."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What has changed in a source since a position.

    Attributes:
        added: the rows that it has now and had not then, each once.
        removed: the rows that it had then and has not now, each once.
        position: where it has been read to; worth keeping also if no row has changed.
        bad: the malformed records that were found, set aside.
        reread: the files whose malformed records of earlier readings no longer count; None if
            that is so for all files of the source.
        warnings: what is doubtful, but was no reason to stop.
    """

    added: pa.Table
    removed: pa.Table
    position: Position
    bad: tuple[BadRow, ...] = ()
    reread: frozenset[str] | None = frozenset()
    warnings: tuple[Diagnostic, ...] = ()


class Source(Protocol):
    """A source of one base relation."""

    @property
    def name(self) -> str:
        """What the source is called, the same in every run, and unlike all others."""

    @property
    def relation(self) -> Relation:
        """The relation that it fills."""

    def is_same(self, before: Position | None) -> bool:
        """Return whether nothing has changed since a position, without reading data.

        Raises:
            InputError: the source is gone or out of reach.
        """

    def difference(self, before: Position | None, content: Content) -> SourceChange:
        """Return what has changed since a position.

        Args:
            before: the position of the last reading; None if there is none.
            content: the rows that the source had then, as a table with the relation's columns, or
                what returns them; that is called at most once, and not if files tell it all.

        Raises:
            InputError: the source cannot be read, or has rows that are not acceptable.
        """
