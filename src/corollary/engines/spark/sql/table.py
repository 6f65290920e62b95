"""Tables: the four states of a relation, as sets of pieces.

OLD is `base` less `gone`, a small change is kept beside it: NEW = OLD - REMOVED + ADDED. So opening
a change and committing it cost as much as the change. When what is gone is a good part of the base,
or the base is in many pieces, it is written anew.
"""

from dataclasses import dataclass

from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.immutable_sets import Pieces, Tuples
from corollary.engines.spark.sql.sets import common, folded, merged, minus

MANY = 8
"""A base has no more pieces."""

STALE = 4
"""A base is written anew when one in so many of its tuples is gone."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A state: the tuples of `base` that are not in `gone`, and those of `more`."""

    base: Tuples
    gone: Tuples
    more: Tuples

    def __len__(self) -> int:
        return len(self.base) - len(self.gone) + len(self.more)

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the columns."""
        return self.base.types

    @property
    def nulls(self) -> tuple[bool, ...]:
        """For each column in Spark, whether there may be a null in it."""
        pairs = zip(self.base.nulls, self.more.nulls, strict=True)
        return tuple(one or other for one, other in pairs)

    @property
    def is_local(self) -> bool:
        """Whether all of it is on the driver."""
        return self.base.is_local and self.gone.is_local and self.more.is_local

    def tuples(self, pieces: Pieces) -> Tuples:
        """Return the state in pieces; what is in files and partly gone is written anew."""
        return minus(pieces, self.base, self.gone) + self.more

    def query(self) -> sql.Node:
        """Return the state as a query."""
        types = self.base.types
        queries = []
        if len(self.base):
            query: sql.Node = self.base.query()
            if len(self.gone):
                kept = sql.select(sql.columns_of(types, "l"), sql.of(query, "l"))
                gone = sql.of(self.gone.query(), "r")
                on = sql.all_same(types, "l", "r", self.gone.nulls)
                query = sql.joined(kept, gone, on, "ANTI")
            queries.append(query)
        if len(self.more) or not queries:
            queries.append(self.more.query())
        return sql.union(queries)


class Table:
    """The tuples of one relation."""

    __slots__ = (
        "_added",
        "_base",
        "_gone",
        "_nothing",
        "_parts",
        "_removed",
        "_whole",
        "pieces",
        "types",
    )

    def __init__(self, types: tuple[Type, ...], pieces: Pieces) -> None:
        self.types = types
        self.pieces = pieces
        self._nothing = Tuples(types)
        self._base = self._gone = self._added = self._removed = self._nothing
        self._parts: tuple[Tuples, ...] = ()
        self._whole: dict[State, Layers] = {}

    # --- reading -------------------------------------------------------------------------------

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""
        old = len(self._base) - len(self._gone)
        match state:
            case State.OLD:
                return old
            case State.NEW:
                return old + len(self._added) - len(self._removed)
            case State.ADDED:
                return len(self._added)
            case State.REMOVED:
                return len(self._removed)

    def layers(self, state: State) -> Layers:
        """Return what a state is made of; if all is on the driver, one piece."""
        parts = (self._base, self._gone, self._added, self._removed)
        if self._parts != parts:
            self._parts, self._whole = parts, {}
        known = self._whole.get(state)
        if known is None:
            known = self._whole[state] = self._simple(self._layers(state))
        return known

    def _simple(self, layers: Layers) -> Layers:
        """Return layers on the driver as one, so that queries stay short."""
        if not layers.is_local or len(layers.base) + len(layers.more) > self.pieces.small:
            return layers
        left = folded(self.pieces, layers.tuples(self.pieces))
        return Layers(self._nothing, self._nothing, left)

    def _layers(self, state: State) -> Layers:
        nothing = self._nothing
        match state:
            case State.OLD:
                return Layers(self._base, self._gone, nothing)
            case State.NEW:
                return Layers(self._base, self._gone + self._removed, self._added)
            case State.ADDED:
                return Layers(nothing, nothing, self._added)
            case State.REMOVED:
                return Layers(nothing, nothing, self._removed)

    def tuples(self, state: State) -> Tuples:
        """Return the tuples of a state in pieces."""
        return self.layers(state).tuples(self.pieces)

    def among(self, words: Tuples, state: State) -> Tuples:
        """Return those of some tuples that are there; few are looked up without moving many."""
        layers = self._layers(state)
        there = minus(self.pieces, common(self.pieces, words, layers.base), layers.gone)
        return there + common(self.pieces, minus(self.pieces, words, there), layers.more)

    @property
    def has_change(self) -> bool:
        """Whether there is an open change."""
        return len(self._added) > 0 or len(self._removed) > 0

    @property
    def nbytes(self) -> int:
        """The bytes it takes."""
        return sum(each.nbytes for each in (self._base, self._gone, self._added, self._removed))

    # --- steps ---------------------------------------------------------------------------------

    def assign(self, words: Tuples) -> None:
        """Hold just these, as ADDED."""
        self.clear()
        self._added = words

    def clear(self) -> None:
        """Hold nothing."""
        self._base = self._gone = self._added = self._removed = self._nothing

    def extend(self, words: Tuples) -> None:
        """Commit, then add tuples that are not there: they are ADDED until the next time."""
        self.commit()
        self._added = words

    def replace(self, words: Tuples) -> None:
        """Make NEW equal to the tuples given, by the change that leads there from OLD."""
        old = self.tuples(State.OLD)
        self._added = minus(self.pieces, words, old)
        self._removed = minus(self.pieces, old, words)

    def remove(self, words: Tuples) -> None:
        """Take tuples of OLD out of NEW; those that came back once go again."""
        self._added = minus(self.pieces, self._added, words)
        self._removed += minus(self.pieces, words, self._removed)
        self._fold()

    def add(self, words: Tuples) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        self._added += words
        self._fold()

    def cancel_out(self) -> None:
        """Strike what was removed and came back from both sides of the change."""
        if len(self._added) and len(self._removed):
            added, removed = self._added, self._removed
            self._added = minus(self.pieces, added, removed)
            self._removed = minus(self.pieces, removed, added)

    def _fold(self) -> None:
        self._added = folded(self.pieces, self._added)
        self._removed = folded(self.pieces, self._removed)
        if len(self._added.pieces) > MANY:
            self._added = merged(self.pieces, self._added, "merging what was added")

    # --- changes -------------------------------------------------------------------------------

    def insert(self, words: Tuples) -> None:
        """Add tuples to NEW, those already there excepted."""
        fresh = minus(self.pieces, words, self.among(words, State.NEW))
        back = common(self.pieces, fresh, self._removed)
        self._removed = minus(self.pieces, self._removed, back)
        self._added += minus(self.pieces, fresh, back)
        self._fold()

    def delete(self, words: Tuples) -> None:
        """Take tuples out of NEW, those not there excepted."""
        there = self.among(words, State.NEW)
        fresh = common(self.pieces, there, self._added)
        self._added = minus(self.pieces, self._added, fresh)
        self._removed += minus(self.pieces, there, fresh)
        self._fold()

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        if not self.has_change:
            return
        added, removed = self._added, self._removed
        base = self._base + minus(self.pieces, added, self._gone)
        gone = minus(self.pieces, self._gone, added) + removed
        self._added = self._removed = self._nothing
        self._base, self._gone = folded(self.pieces, base), folded(self.pieces, gone)
        if self._base.is_local or len(self._gone) * STALE > len(self._base):
            self._base = minus(self.pieces, self._base, self._gone)
            self._gone = self._nothing
        if len(self._base.pieces) > MANY:
            self._merge()

    def _merge(self) -> None:
        """Put all pieces but the largest one together."""
        largest = max(self._base.pieces, key=lambda each: each.size)
        rest = Tuples(self.types, [each for each in self._base.pieces if each is not largest])
        others = merged(self.pieces, rest, "merging pieces")
        self._base = Tuples(self.types, [largest, *others.pieces])

    def rollback(self) -> None:
        """Forget the open change."""
        self._added = self._removed = self._nothing

    def copy(self, other: "Table") -> None:
        """Hold what another table of the same types has in NEW, as OLD."""
        self.clear()
        self._base = other.tuples(State.NEW)
