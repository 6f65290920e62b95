"""Which variables of a body determine which others, and which cannot be null."""

from collections.abc import Iterable
from dataclasses import field
from itertools import combinations

from corollary.data_class import dataclass

KEY_SEARCH = ((3, 12), (2, 40), (1, 1 << 62))
"""How many columns beside the needed ones are tried together, if there are at most so many."""


@dataclass(slots=True)
class Dependencies:
    """Functional dependencies between variables, by name, and the variables that are never null.

    >>> known = Dependencies()
    >>> known.add({"k"}, {"a", "b"})
    >>> known.determines({"k"}, {"b"}), known.determines({"a"}, {"b"})
    (True, False)
    """

    rules: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    not_null: set[str] = field(default_factory=set)

    def add(self, left: Iterable[str], right: Iterable[str]) -> None:
        """Add that the variables on the left determine those on the right."""
        self.rules.append((frozenset(left), frozenset(right)))

    def include(self, other: "Dependencies") -> None:
        """Add all that another body has."""
        self.rules += other.rules
        self.not_null |= other.not_null

    def closure(self, names: Iterable[str]) -> set[str]:
        """Return the variables that some variables determine, these included."""
        found = set(names)
        open_rules = self.rules
        while True:
            left_open = []
            size = len(found)
            for left, right in open_rules:
                if left <= found:
                    found |= right
                else:
                    left_open.append((left, right))
            if len(found) == size:
                return found
            open_rules = left_open

    def determines(self, names: Iterable[str], targets: Iterable[str]) -> bool:
        """Whether variables determine others."""
        return set(targets) <= self.closure(names)

    def keys(self, columns: list[str], given: set[str], targets: set[str]) -> list[frozenset[int]]:
        """Return the smallest sets of columns, by number, that determine all targets.

        Args:
            columns: the variables in the columns.
            given: variables that are known anyway.
            targets: what must be determined.
        """
        if not self.determines({*columns, *given}, targets):
            return []
        needed = self._needed_columns(columns, given, targets)
        if self.determines({*(columns[each] for each in needed), *given}, targets):
            return [frozenset(needed)]
        found = self._small_keys(columns, given, targets, needed)
        if found:
            return found
        chosen = list(range(len(columns)))
        for column in reversed(range(len(columns))):
            rest = [each for each in chosen if each != column]
            if self.determines({*(columns[each] for each in rest), *given}, targets):
                chosen = rest
        return [frozenset(chosen)]

    def _needed_columns(self, columns: list[str], given: set[str], targets: set[str]) -> list[int]:
        """Return the columns that are in every key: all others do not determine the targets."""
        return [
            at
            for at in range(len(columns))
            if not self.determines({*columns[:at], *columns[at + 1 :], *given}, targets)
        ]

    def _small_keys(
        self, columns: list[str], given: set[str], targets: set[str], needed: list[int]
    ) -> list[frozenset[int]]:
        """Return the keys with few columns beside the needed ones, smaller ones first.

        Only columns that determine something else can stand for others, and of many columns only
        small sets are tried: a key that is missed costs a count of copies, nothing else.
        """
        base = {*(columns[at] for at in needed), *given}
        known = self.closure(base)
        helpful = targets.union(*(names for names, _ in self.rules)) - known
        useful = [at for at, name in enumerate(columns) if name in helpful]
        most = next(size for size, limit in KEY_SEARCH if len(useful) <= limit)
        found: list[frozenset[int]] = []
        for size in range(1, most + 1):
            for chosen in combinations(useful, size):
                key = frozenset((*needed, *chosen))
                if any(each <= key for each in found):
                    continue
                if self.determines({*base, *(columns[at] for at in chosen)}, targets):
                    found.append(key)
        return found
