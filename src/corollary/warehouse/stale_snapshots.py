"""Which snapshots a fold writes anew: those that changes have left behind.

Opening reads the index, which every fold writes. A snapshot is read where the index is lost, and
for earlier commits; then the changes since are applied. So a large relation of which little has
changed may keep its snapshot: writing it costs what the relation holds, not what has changed.
"""

from collections.abc import Iterable

from corollary.warehouse.catalog.catalog_reader import CatalogReader

SNAPSHOT_MIN_ROWS = 1 << 14
"""Smaller snapshots are written anew after any change."""

SNAPSHOT_CHANGED_FRACTION = 4
"""So are larger ones when one in this many tuples has changed."""


def stale_snapshots(
    catalog: CatalogReader, relations: Iterable[str], number: int, max_commits: int
) -> list[str]:
    """Return the relations whose snapshot at a commit is worth writing.

    Args:
        catalog: of the warehouse.
        relations: the stored ones.
        number: of the commit.
        max_commits: a snapshot that is older than this many commits is written anew; with 0, all
            that have changed.
    """
    snapshots, changed = catalog.latest_snapshots(number), catalog.changed_tuples(number)

    def may_stay(name: str) -> bool:
        found = snapshots.get(name)
        return (
            found is not None
            and found.rows >= SNAPSHOT_MIN_ROWS
            and number - found.commit < max_commits
            and changed.get(name, 0) * SNAPSHOT_CHANGED_FRACTION < found.rows
        )

    stale = catalog.relations_to_fold(relations, number)
    return [name for name in stale if not may_stay(name)]
