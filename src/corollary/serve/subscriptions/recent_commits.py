"""The last commits, kept for all subscribers together: who keeps up reads nothing from the disk."""

from collections import deque
from collections.abc import Iterable

from corollary.serve.subscriptions.feed import CommitChanges, Interest

RECENT_MAX_COMMITS = 64
RECENT_MAX_BYTES = 8 << 20
"""How many commits, and how many bytes of them, are kept for subscribers."""


class RecentCommits:
    """The changes of the last commits, each with what it was read for.

    Attributes:
        latest: the last commit that it has seen.
    """

    def __init__(self, latest: int) -> None:
        self.latest = latest
        self._kept: deque[tuple[Interest, CommitChanges]] = deque()
        self._bytes = 0

    def add(self, interest: Interest, commits: Iterable[CommitChanges]) -> None:
        """Add the next commits; the oldest ones go where there are too many."""
        for each in commits:
            assert each.commit == self.latest + 1, "commits come one after the other"
            self._kept.append((interest, each))
            self._bytes += each.size
            self.latest = each.commit
        while len(self._kept) > RECENT_MAX_COMMITS or self._bytes > RECENT_MAX_BYTES:
            self._bytes -= self._kept.popleft()[1].size

    def restart(self, latest: int) -> None:
        """Begin anew after a commit."""
        self._kept.clear()
        self._bytes, self.latest = 0, latest

    def since(self, commit: int, interest: Interest) -> list[CommitChanges] | None:
        """Return the commits after one; None if not all of them are kept with what is asked."""
        count = self.latest - commit
        if count > len(self._kept):
            return None
        found = [self._kept[at] for at in range(len(self._kept) - count, len(self._kept))]
        if not all(read_for.includes(interest) for read_for, _ in found):
            return None
        return [each for _, each in found]
