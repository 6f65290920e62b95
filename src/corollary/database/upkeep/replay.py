"""Relations followed through their history by snapshots and changes alone, without an index."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corollary.core.program import NormalProgram, Relation
from corollary.engines.local.engine import LocalEngine
from corollary.warehouse.entries import StoredChange, StoredSnapshot
from corollary.warehouse.holdings import Holdings
from corollary.warehouse.places import relations_in
from corollary.warehouse.warehouse import Delta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

Event = tuple[int, StoredChange | StoredSnapshot | None]
"""A commit, and what it says of a relation; None for an index of that commit."""


class Past:
    """The programs of all commits, and what each relation looked like then."""

    def __init__(self, warehouse: Warehouse, holdings: Holdings) -> None:
        self._catalog = warehouse.catalog
        self._held = holdings
        self._known: dict[int, NormalProgram] = {}

    def program_at(self, commit: int) -> NormalProgram:
        """Return the relations, without rules, of the program in force at a commit.

        What is still there of earlier commits has not changed until the fold.
        """
        number = self._held.programs[max(commit, self._held.fold)]
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = relations_in(self._catalog.program(number).places)
        return known

    def shape_at(self, name: str, commit: int) -> Relation | None:
        """Return a relation as it was declared at a commit."""
        return self.program_at(commit).relations.get(name)


def events(
    changes: list[tuple[int, StoredChange]], snapshots: list[StoredSnapshot], indexes: list[int]
) -> Iterator[Event]:
    """Yield what is known of a relation, in order: change, snapshot, index of each commit."""
    found: list[tuple[int, int, StoredChange | StoredSnapshot | None]] = [
        *((commit, 0, change) for commit, change in changes),
        *((each.commit, 1, each) for each in snapshots),
        *((commit, 2, None) for commit in indexes),
    ]
    for commit, _, each in sorted(found, key=lambda one: one[:2]):
        yield commit, each


@dataclass(slots=True)
class Follower:
    """A relation on its way through history.

    Attributes:
        shape: its columns now; None as long as nothing was said of it.
        is_known: whether its tuples are known; not behind a change that is damaged, nor before
            the first snapshot where history was dropped.
    """

    shape: Relation | None = None
    is_known: bool = True
    _engine: LocalEngine | None = None

    def become(self, shape: Relation, table: "pa.Table | None" = None) -> None:
        """Hold these tuples, whatever was before."""
        self.shape, self.is_known = shape, True
        self._engine = LocalEngine()
        self._engine.declare({shape.name: shape})
        if table is not None:
            self._engine.insert(shape.name, table)

    def apply(self, shape: Relation, delta: Delta) -> bool:
        """Let a change happen; return whether it added what was not there and removed what was."""
        if self._engine is None or delta.is_full:
            self.become(shape)
        engine, name = self._engine, shape.name
        assert engine is not None
        size = engine.size(name)
        engine.delete(name, delta.removed)
        between = engine.size(name)
        engine.insert(name, delta.added)
        engine.commit()
        gone, come = size - between, engine.size(name) - between
        return bool(gone == delta.removed.num_rows and come == delta.added.num_rows)

    def table(self) -> "pa.Table":
        """Return the tuples."""
        assert self._engine is not None
        assert self.shape is not None
        return self._engine.read(self.shape.name)
