"""The least part of a commit that does what the commit did.

A cause D is a set of base and rule changes of the commit. With does(D): D alone, on the state
before, adds (or removes) the tuple.

    does(D), and for no d in D: does(D − {d})

First the sets of one change, of two and of three, as far as dry runs reach; then what may have
caused it at all, from which parts are dropped, halves first, until no single change can go. D is
*smallest* if all smaller sets were tried.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb

from corollary.data_class import dataclass
from corollary.provenance.nodes import BaseChange

MAX_TRIED_SIZE = 3
"""The size of the largest sets of which all are tried."""

Changes = tuple[BaseChange, ...]


class CauseLimitError(Exception):
    """No more sets may be tried."""


@dataclass(frozen=True, slots=True)
class LeastCause:
    """A set of changes that does it.

    Attributes:
        is_minimal: whether it does not without any one of them.
        is_smallest: whether no smaller set does it.
    """

    changes: Changes
    is_minimal: bool
    is_smallest: bool


class LeastCauseSearch:
    """Looks for the least cause.

    Args:
        does: whether a set of changes does it; raises `CauseLimitError` if no more may be tried.
        every: all changes that can matter, or None if they are too many to list.
        likely: those that may have caused it; they do it together.
        tries: how many sets may be tried.
    """

    def __init__(
        self,
        does: Callable[[frozenset[BaseChange]], bool],
        every: Sequence[BaseChange] | None,
        likely: Sequence[BaseChange],
        tries: int,
    ) -> None:
        self._does = does
        self._likely = tuple(likely)
        self._every = None if every is None else self._in_order(every)
        self._tries = tries
        self._known: dict[frozenset[BaseChange], bool] = {}

    def _in_order(self, every: Sequence[BaseChange]) -> Changes:
        """Return all changes, the likely ones first."""
        return tuple(dict.fromkeys((*(each for each in self._likely if each in every), *every)))

    def run(self) -> LeastCause:
        """Return the least cause that was found."""
        tried = 0  # all sets of so many changes were tried, and none does it
        best = self._likely
        try:
            for size in range(1, MAX_TRIED_SIZE + 1):
                for source in (self._likely, self._every):
                    if source is None or not self._is_affordable(len(source), size):
                        continue
                    found = self._first(source, size)
                    if found is not None:
                        best = found
                        return LeastCause(found, self._is_minimal(found), tried == size - 1)
                    if source is self._every and tried == size - 1:
                        tried = size
            for fewer in self._dropping(best):
                best = fewer
            return LeastCause(best, True, tried >= len(best) - 1)
        except CauseLimitError:
            return LeastCause(best, len(best) == 1, len(best) == 1 or tried >= len(best) - 1)

    def _try(self, changes: Iterable[BaseChange]) -> bool:
        key = frozenset(changes)
        if key not in self._known:
            if not key:
                return False
            if len(self._known) >= self._tries:
                raise CauseLimitError
            self._known[key] = self._does(key)
        return self._known[key]

    def _is_affordable(self, count: int, size: int) -> bool:
        """Whether all sets of a size can be tried, and enough is left to drop changes."""
        left = self._tries - len(self._known) - 2 * min(len(self._likely), self._tries // 4)
        return count >= size and comb(count, size) <= left

    def _first(self, source: Changes, size: int) -> Changes | None:
        return next((each for each in combinations(source, size) if self._try(each)), None)

    def _is_minimal(self, changes: Changes) -> bool:
        return not any(self._try(less) for less in combinations(changes, len(changes) - 1))

    def _dropping(self, changes: Changes) -> Iterable[Changes]:
        """Yield ever smaller sets that do it; the last one does not without any one change."""
        size = max(1, len(changes) // 2)
        while True:
            start, has_dropped = 0, False
            while start < len(changes):
                fewer = changes[:start] + changes[start + size :]
                if fewer and self._try(fewer):
                    changes, has_dropped = fewer, True
                    yield changes
                else:
                    start += size
            if size > 1:
                size = max(1, size // 2)
            elif not has_dropped:
                return
