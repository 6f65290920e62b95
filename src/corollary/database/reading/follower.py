"""Follows a relation: what commits have changed in it, whichever process makes them.

A follower reads the history, and keeps the number of the last commit that it has seen: whoever
stores that number goes on from there later. Grants are looked up each time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import single_array
from corollary.core.arrow_buffers import fixed_values
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.database.feed_tables import COMMIT_COLUMNS, UNWATCHED
from corollary.warehouse.files.durable_files import DELETE, INSERT

POLL_SECONDS = 0.2
"""The time between two looks at the catalog while a follower waits."""


@dataclass(frozen=True, slots=True)
class FollowedChange:
    """What one commit has changed in a relation.

    Attributes:
        commit: its number.
        at: when it was made.
        relation: the relation as it is declared then.
        added: the tuples that it has gained.
        removed: those that it has lost.
        is_known: False if the relation is virtual and the commit has not watched it, or has given
            it other columns: nobody knows what has changed, so read it anew.
    """

    commit: int
    at: datetime
    relation: Relation
    added: pa.Table
    removed: pa.Table
    is_known: bool = True


class Follower:
    """Returns the changes of a relation, commit by commit.

    Args:
        relation: its name.
        since: the last commit that is known already.
        latest: returns the number of the last commit.
        read: returns the feed of the relation, after one commit and up to another.

    Attributes:
        relation: its name.
        commit: the last commit that it has seen.
    """

    def __init__(
        self,
        relation: str,
        since: int,
        latest: Callable[[], int],
        read: Callable[[int, int], Iterator[tuple[Relation, pa.Table]]],
    ) -> None:
        self.relation = relation
        self.commit = since
        self._latest = latest
        self._read = read

    def __repr__(self) -> str:
        return f"<Follower of {self.relation}: commit {self.commit}>"

    def poll(self) -> list[FollowedChange]:
        """Return what the commits since the last call have changed, in their order.

        Raises:
            AccessError: the relation is not granted any more.
            WarehouseError: not all these commits are kept; begin anew.
        """
        latest = self._latest()
        if latest <= self.commit:
            return []
        found = [
            each
            for fed, table in self._read(self.commit, latest)
            for each in changes_by_commit(fed, table)
        ]
        self.commit = latest
        return found

    def wait(self, seconds: float | None = None) -> list[FollowedChange]:
        """Return the next changes, as soon as there are some.

        Args:
            seconds: how long to wait for them; then the list is empty. For ever if not given.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            found = self.poll()
            left = POLL_SECONDS if end is None else end - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(left, POLL_SECONDS))


def changes_by_commit(fed: Relation, table: pa.Table) -> Iterator[FollowedChange]:
    """Yield the changes of a feed's table, whose rows are in the order of commits."""
    width = len(fed.columns) - len(COMMIT_COLUMNS)
    relation = replace(fed, columns=fed.columns[:width], types=fed.types[:width])
    kinds, versions, times = table.columns[width:]
    numbers = fixed_values(single_array(versions), np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
        kind = kinds.slice(start, stop - start)
        rows = table.slice(start, stop - start)
        added, removed = (
            rows.filter(pc.equal(kind, sign)).select(list(range(width)))
            for sign in (INSERT, DELETE)
        )
        is_known = not pc.any(pc.equal(kind, UNWATCHED)).as_py()
        at = times[start].as_py()
        yield FollowedChange(int(numbers[start]), at, relation, added, removed, is_known)
