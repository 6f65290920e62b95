"""The rows that a source has given to its relation, in the engine, as the source asks for them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from corollary.core.arrow import empty_table
from corollary.core.engine import LocalTable, TableHandle, ValueRange
from corollary.core.program import Relation
from corollary.database.program.parts import find_agreeing
from corollary.database.state import DatabaseState
from corollary.warehouse.copies import CopiesHandle

if TYPE_CHECKING:
    import pyarrow as pa


class PartRows:
    """The tuples of one part of a base relation; none if there is no such part."""

    def __init__(self, state: DatabaseState, relation: Relation, part: str) -> None:
        normal = state.loaded.normal
        base = normal.bases.get(relation.name, relation.name)
        self._at = normal.parts.get(base, {}).get(part)
        self._state = state
        self._relation = relation
        self._has_copies = relation.name in normal.bags

    def __len__(self) -> int:
        return 0 if self._at is None else len(self._handle(self._at))

    def table(self) -> "pa.Table":
        """Return all tuples, with their copies."""
        return self._empty if self._at is None else self._handle(self._at).table()

    def handle(self) -> TableHandle:
        """Return a handle on all tuples, with their copies."""
        return LocalTable(self._empty) if self._at is None else self._handle(self._at)

    def _handle(self, name: str) -> TableHandle:
        handle = self._state.engine.handle(name)
        return CopiesHandle(handle) if self._has_copies else handle

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> "pa.Table":
        """Return those in one of several boxes, each once, perhaps with others."""
        return self._empty if self._at is None else self._state.engine.within(self._at, boxes)

    def matching(self, rows: "pa.Table", columns: Sequence[int]) -> "pa.Table":
        """Return those that agree with one of some rows in some columns, each once."""
        if self._at is None:
            return self._empty
        state = self._state
        normal = state.loaded.normal
        keys = rows.select(list(columns))
        return find_agreeing(
            state.engine, normal, self._at, keys, columns=columns, limits=state.limits
        )

    @property
    def _empty(self) -> "pa.Table":
        return empty_table(self._relation)
