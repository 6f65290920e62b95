"""The base changes of a transaction that may have added or removed a tuple, set at a time.

From the tuple down the rules: the changes of literals that directly caused tuples of one level
(`active/causes.py`) are the tuples of the next, until only changes of base relations are left.

The least part of a commit that does what the commit did.

A cause D is a set of base and rule changes of the commit. With does(D): D alone, on the state
before, adds (or removes) the tuple.

    does(D), and for no d in D: does(D − {d})

First the sets of one change, of two and of three, as far as dry runs reach; then what may have
caused it at all, from which parts are dropped, halves first, until no single change can go. D is
*smallest* if all smaller sets were tried.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

from corollary.active.causes import plan_causes
from corollary.core.arrow import to_python
from corollary.core.program import Relation
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.program.parts import working_copy
from corollary.database.state import DatabaseState
from corollary.maintain.update import Update
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import BaseChange, Row
from corollary.provenance.trials import user_names

ChangedTuples = dict[tuple[str, State], set[Row]]
"""Tuples that were added or removed, by relation and sign."""


@dataclass(frozen=True, slots=True)
class CausingChanges:
    """The changes of base tuples that a change may have come from.

    Attributes:
        is_complete: whether every way down was followed to base relations.
    """

    changes: tuple[BaseChange, ...]
    is_complete: bool


def causing_changes(
    state: DatabaseState, update: Update, change: tuple[str, State], row: Row, allowance: Allowance
) -> CausingChanges:
    """Return the base changes behind a change of one tuple, in a transaction that is open."""
    search = _CauseSearch(state, update, allowance)
    return search.run(change, row)


class _CauseSearch:
    def __init__(self, state: DatabaseState, update: Update, allowance: Allowance) -> None:
        self._state = state
        self._update = update
        self._allowance = allowance
        self._relations = {**update.old.relations, **update.new.relations}
        demand = state.demand(update.new)
        self._known = {
            (name, sign)
            for name, each in update.new.relations.items()
            for sign in CHANGES
            if each.is_stored or sign in demand.signs.get(name, ())
        }

    def run(self, change: tuple[str, State], row: Row) -> CausingChanges:
        """Follow the causes of a tuple to base relations."""
        seen: ChangedTuples = {}
        work: ChangedTuples = {change: {row}}
        is_complete = True
        while work:
            below: ChangedTuples = {}
            for key, rows in work.items():
                seen.setdefault(key, set()).update(rows)
                if self._relations[key[0]].is_derived:
                    self._allowance.expanded += len(rows)
                    found = self._direct(key, rows)
                    is_complete &= found is not None and self._allowance.tuples > 0
                    for other, tuples in (found or {}).items():
                        below.setdefault(other, set()).update(tuples)
            if self._allowance.tuples <= 0 or self._allowance.is_over:
                is_complete = False
                break
            work = {key: new for key, rows in below.items() if (new := rows - seen.get(key, set()))}
        return CausingChanges(tuple(sorted(self._base(seen), key=repr)), is_complete)

    def _base(self, seen: ChangedTuples) -> Iterator[BaseChange]:
        program = self._update.new
        users, counts = user_names(program), {rows: bag for bag, rows in program.bags.items()}
        for (name, sign), rows in seen.items():
            relation = self._relations[name]
            if not relation.is_derived:
                op = "+" if sign is State.ADDED else "-"
                end = -1 if name in counts else None  # a copy of a row, without its count
                for row in rows:
                    yield BaseChange(op, users.get(name, name), row[:end], relation.types[:end])

    def _direct(self, change: tuple[str, State], rows: set[Row]) -> ChangedTuples | None:
        """Return the direct causes of tuples; None if those of a relation cannot be read."""
        update, engine = self._update, self._state.engine
        relation = self._relations[change[0]]
        given = working_copy(relation, "given")
        plan, found = plan_causes(update, change, given.name, self._known)
        declared: dict[str, Relation] = {given.name: given}
        for each in found:
            shape = self._relations[each.relation]
            declared[each.target] = replace(
                shape, name=each.target, is_derived=False, is_declared=False
            )
        is_readable = all(name in {each.relation for each in found} for name in self._below(change))
        engine.declare(declared)
        try:
            engine.insert(given.name, sorted(rows, key=repr))
            self._allowance.run(engine, plan, self._state.limits)
            direct: ChangedTuples = {}
            for each in found:
                tuples = set(to_python(engine.read(each.target)))
                if tuples:
                    direct.setdefault((each.relation, each.sign), set()).update(tuples)
        finally:
            engine.drop(declared)
        return direct if is_readable or direct else None

    def _below(self, change: tuple[str, State]) -> Iterator[str]:
        """Yield the relations that the rules of a relation read and that may have changed."""
        for name in self._update.dependencies.get(change[0], ()):
            if self._update.candidates.get(name):
                yield name


# --- the least cause -----------------------------------------------------------------------------


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
