"""What a transaction changed: for each relation the tuples that came and those that went."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corollary.core.arrow import to_python
from corollary.core.engine import Kept
from corollary.core.program import Relation
from corollary.core.values import json_of

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 1000
"""Longer lists are cut in JSON, unless asked otherwise."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one relation; the tuples are decoded when they are asked for."""

    relation: Relation
    _added: Kept
    _removed: Kept

    @property
    def added(self) -> "pa.Table":
        """The tuples that came."""
        return self._added.table()

    @property
    def removed(self) -> "pa.Table":
        """The tuples that went."""
        return self._removed.table()

    @property
    def counts(self) -> tuple[int, int]:
        """How many came and went."""
        return len(self._added), len(self._removed)

    def pandas(self) -> Any:
        """Return both as one pandas frame, with the column `_change_type`."""
        import pyarrow as pa

        tables = [
            table.append_column("_change_type", pa.array([kind] * table.num_rows, pa.string()))
            for table, kind in ((self.added, "insert"), (self.removed, "delete"))
        ]
        return pa.concat_tables(tables).to_pandas()

    def as_json(self, max_rows: int = MAX_ROWS) -> dict[str, Any]:
        """Return the change as JSON: rows as arrays, sorted, cut at `max_rows`."""
        added, removed = (json_rows(table, self.relation) for table in (self.added, self.removed))
        found: dict[str, Any] = {"added": added[:max_rows], "removed": removed[:max_rows]}
        if max(len(added), len(removed)) > max_rows:
            found |= {"truncated": True, "counts": {"added": len(added), "removed": len(removed)}}
        return found


def json_rows(table: "pa.Table", relation: Relation) -> list[list[Any]]:
    """Return the rows of a relation as JSON arrays, sorted."""
    rows = sorted(to_python(table), key=lambda row: [(value is not None, value) for value in row])
    return [
        [json_of(value, type_) for value, type_ in zip(row, relation.types, strict=True)]
        for row in rows
    ]


class Changes(Mapping[str, Change]):
    """The changes of a transaction by relation; a relation that did not change has empty ones.

    Iteration goes over the relations that changed; any stored or watched one may be asked for.
    """

    def __init__(self, changes: Mapping[str, Change], known: Mapping[str, Change]) -> None:
        self._changes = changes
        self._known = known

    def __getitem__(self, relation: str) -> Change:
        found = self._changes.get(relation) or self._known.get(relation)
        if found is None:
            raise KeyError(
                f"`{relation}` is neither stored nor watched: watch it before the change"
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)
