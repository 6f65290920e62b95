"""Rounds in which few tuples take part, made one tuple at a time, and many at once.

A round costs some tenths of a millisecond however little it brings, since every step of it is a few
operations on arrays. Along a chain of a million links that is minutes. If a loop follows a trail
(`trails`), what follows each value is put into lists, and rounds become breadth-first search:

    level 0  what the last round has brought
    level i  what follows level i - 1 and was never there; its ranks are those of its origins, + 1

Tuples come in the same rounds, with the same ranks, as the steps of the loop would bring them.

Making the lists takes as long as some rounds, by the size of what the trail goes along. That many
rounds with few tuples are made the ordinary way first: so what is spent is never much more than
twice what the better of both ways takes. When a level grows wide, ordinary rounds go on.

Example: `reach(m) :- reach(n), par(n, m).` over the chain 1→2→3→4, where `reach` holds 1:

| level | state of the walk | rank |
|---|---|---|
| 0 | 1 | 0 |
| 1 | 2 | 1 |
| 2 | 3 | 2 |
| 3 | 4 | 3 |
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from corollary.core.pipeline import Pipeline
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.derive import Purse
from corollary.engines.local.layout import Codes, Mask
from corollary.engines.local.pipelines import PipelineRunner
from corollary.engines.local.runs import distinct
from corollary.engines.local.table import Table
from corollary.engines.local.trails import Trail

FEW = 64
"""A round with at most so many tuples counts as narrow."""

WIDE = 4 * FEW
"""A level with more tuples is left to ordinary rounds."""

ROUND = 256
"""An ordinary round takes as long as putting so many tuples into lists."""

START = 4 * ROUND
"""What a walk takes besides, in tuples."""

MOST_STATES = 1 << 27
"""So many states a walk may have to tell apart, a byte each."""

MOST_TUPLES = 1 << 16
"""After so many tuples they go into the tables, and limits are looked at."""


class Watch(Purse, Protocol):
    """What watches over rows, rounds and tuples."""

    def check_rounds(self, rounds: int) -> None:
        """Stop a loop that has gone on for too many rounds."""

    def check_totals(self) -> None:
        """Stop a run whose tables hold too much."""


class Run(Protocol):
    """The run that a walk takes part in."""

    @property
    def budget(self) -> Watch:
        """What watches over it."""

    @property
    def recorder(self) -> Recorder:
        """What is told of it."""


class _Unwatched:
    """A run whose rows do not count."""

    def __init__(self, recorder: Recorder) -> None:
        self.budget = self
        self.recorder = recorder

    def tick(self, pipeline: Pipeline, rows: int) -> None:
        """Let rows pass."""


@dataclass(frozen=True, slots=True)
class _Successors:
    """What follows each code of the column that changes; codes have places in `codes`."""

    codes: Codes
    starts: list[int]
    places: list[int]


@dataclass(frozen=True, slots=True)
class _Level:
    """States of a walk, with their ranks, which do not decrease."""

    states: list[int]
    ranks: list[int]


@dataclass(frozen=True, slots=True)
class _Path:
    """Levels of a walk: all that came, the last of them, their number, and what led to them."""

    made: _Level
    last: _Level
    rounds: int
    led: int


class Walker:
    """Walks the trail of a loop; made once for a plan.

    Args:
        trail: of the loop.
        tables: by name.
        dictionary: of the codes.
        held: the relations of the engine.
    """

    def __init__(
        self,
        trail: Trail,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        held: Collection[str],
    ) -> None:
        self._trail = trail
        self._tables = tables
        self._dictionary = dictionary
        self._told = [each.relation for each in trail.sources if each.relation in held]
        self._runners = [PipelineRunner(each, tables, dictionary) for each in trail.successors]
        self._narrow = 0
        self._successors: _Successors | None = None

    def forget(self) -> None:
        """Forget what was found in the last loop."""
        self._narrow = 0
        self._successors = None

    def walk(self, run: Run, number: int) -> int:
        """Make rounds, if they are narrow and it is time to; return how many.

        Args:
            run: what they belong to.
            number: of the round that was made last.
        """
        delta = self._tables[self._trail.delta]
        if not 0 < delta.size(State.ADDED) <= FEW:
            self._narrow = 0
            return 0
        self._narrow += 1
        if self._narrow * ROUND < self._cost():
            return 0
        self._narrow = 0
        if self._successors is None:
            self._successors = self._listed(run.recorder)
        ground = _Ground.of(self._trail, self._tables, self._successors)
        if ground is None:
            return 0
        level = self._first(ground, number)
        rounds = 0
        while level.states and len(level.states) <= WIDE:
            path = _walked(self._successors, ground.seen, level)
            self._tell(path, ground, run)
            rounds += path.rounds
            run.budget.check_rounds(number + rounds)
            level = path.last
        return rounds

    def _cost(self) -> int:
        """What a walk takes before its first level, in tuples that are put into lists or marked."""
        cost = START + self._tables[self._trail.known].size(State.NEW)
        if self._successors is not None:
            return cost
        sources = self._trail.sources
        return cost + sum(self._tables[each.relation].size(each.state) for each in sources)

    def _listed(self, recorder: Recorder) -> _Successors:
        """Return what follows each code."""
        run = _Unwatched(recorder)
        frames = [runner.head(frame) for runner in self._runners for frame in runner.frames(run)]
        nothing = np.empty(0, np.int64)
        old = np.concatenate([nothing, *(each[0] for each in frames)])
        new = np.concatenate([nothing, *(each[1] for each in frames)])
        order = np.argsort(old, kind="stable")
        old, new = old[order], new[order]
        codes = distinct(np.concatenate([old, new]))
        starts = np.append(np.searchsorted(old, codes), len(old))
        return _Successors(codes, starts.tolist(), np.searchsorted(codes, new).tolist())

    def _first(self, ground: "_Ground", number: int) -> _Level:
        """Return what the last round has brought, as far as anything follows it."""
        delta = self._tables[self._trail.delta]
        columns = delta.layout.columns(delta.words(State.ADDED))
        ranks = np.full(delta.size(State.ADDED), number, np.int64)
        if self._trail.is_ranked:
            ranks = self._dictionary.decode(columns.pop(), NUMBER)
        states, is_there = ground.states(columns)
        order = np.argsort(ranks[is_there], kind="stable")
        return _Level(states[is_there][order].tolist(), ranks[is_there][order].tolist())

    def _tell(self, path: _Path, ground: "_Ground", run: Run) -> None:
        """Put the tuples of a path into the tables, and tell of the rounds."""
        trail, made = self._trail, path.made
        count = len(made.states)
        columns = ground.columns(np.array(made.states, np.int64))
        ranks = self._dictionary.encode(np.array(made.ranks, np.int64), None, NUMBER)
        numbered = [*columns, ranks]
        last = count - len(path.last.states)
        for pipeline in trail.successors:
            run.budget.tick(pipeline, path.led + 2 * count)
        run.budget.spend(trail.successors[0], ranks)
        run.budget.release()
        delta = self._tables[trail.delta]
        brought = numbered if trail.is_ranked else columns
        for first, end in ((0, last), (last, count)):
            part = [column[first:end] for column in brought]
            delta.extend(distinct(delta.pack(part, end - first)))
        if trail.ranked is not None:
            table = self._tables[trail.ranked]
            words = distinct(table.pack(numbered, count))
            table.grow(words) if trail.is_ranked else table.extend(words)
        if trail.grown is not None:
            table = self._tables[trail.grown]
            table.grow(distinct(table.pack(columns, count)))
        for name in trail.scratch:
            self._tables[name].clear()
        run.budget.check_totals()
        run.recorder.step(trail.step, count, path.led)
        for name in self._told:
            run.recorder.probe(name, path.led)


@dataclass(frozen=True, slots=True)
class _Ground:
    """The tuples that a walk can come to, as numbers: what is copied, then what changes.

    Attributes:
        trail: that is walked.
        codes: those of the column that changes.
        copied: the codes of each other column, which the walk begins with.
        seen: for each state whether it is there; filled in while the walk goes on.
    """

    trail: Trail
    codes: Codes
    copied: Sequence[Codes]
    seen: bytearray

    @classmethod
    def of(
        cls, trail: Trail, tables: Mapping[str, Table], successors: _Successors
    ) -> "_Ground | None":
        """Return the ground of a walk, with what is known marked; None if it is too large."""
        delta, known = tables[trail.delta], tables[trail.known]
        columns = delta.layout.columns(delta.words(State.ADDED))
        if trail.is_ranked:
            columns.pop()
        copied = [distinct(each) for at, each in enumerate(columns) if at != trail.column]
        size = len(successors.codes) * int(np.prod([len(each) for each in copied]))
        if size > MOST_STATES:
            return None
        ground = cls(trail, successors.codes, copied, bytearray(size))
        states, is_there = ground.states(known.layout.columns(known.words(State.NEW)))
        np.frombuffer(ground.seen, np.bool_)[states[is_there]] = True
        return ground

    def states(self, columns: Sequence[Codes]) -> tuple[Codes, Mask]:
        """Return the states of tuples, and which of them have one."""
        changing = columns[self.trail.column]
        others = [each for at, each in enumerate(columns) if at != self.trail.column]
        states = np.zeros(len(changing), np.int64)
        is_there = np.ones(len(changing), np.bool_)
        for universe, column in zip((*self.copied, self.codes), (*others, changing), strict=True):
            if not len(universe):
                return states, np.zeros(len(changing), np.bool_)
            places = np.minimum(np.searchsorted(universe, column), len(universe) - 1)
            is_there &= universe[places] == column
            states = states * len(universe) + places
        return states, is_there

    def columns(self, states: Codes) -> list[Codes]:
        """Return the tuples of states."""
        states, places = np.divmod(states, max(len(self.codes), 1))
        changing = self.codes[places]
        columns: list[Codes] = []
        for universe in reversed(self.copied):
            states, places = np.divmod(states, len(universe))
            columns.insert(0, universe[places])
        columns.insert(self.trail.column, changing)
        return columns


def _walked(successors: _Successors, seen: bytearray, level: _Level) -> _Path:
    """Return the levels that follow one, up to one that is empty or wide, or to many tuples."""
    starts, places, size = successors.starts, successors.places, len(successors.codes)
    states, ranks = list(level.states), list(level.ranks)
    first, end, rounds = 0, len(states), 0
    most = end + MOST_TUPLES
    while first < end < most and end - first <= WIDE:
        for at in range(first, end):
            state = states[at]
            place = state % size
            others = state - place
            for following in places[starts[place] : starts[place + 1]]:
                reached = others + following
                if not seen[reached]:
                    seen[reached] = True
                    states.append(reached)
                    ranks.append(ranks[at] + 1)
        first, end = end, len(states)
        rounds += 1
    begun = len(level.states)
    made = _Level(states[begun:], ranks[begun:])
    return _Path(made, _Level(states[first:], ranks[first:]), rounds, first)
