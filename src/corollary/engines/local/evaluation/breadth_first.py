"""Narrow rounds of a linear loop, run one tuple at a time: breadth-first search.

A round of a loop costs some tenths of a millisecond however few tuples it derives, since every step
is several NumPy calls. Along a chain of a million links that is minutes. In a linear loop
(`linear_loops`) the successors of every value can be put into lists, and rounds become
breadth-first search over integers:

    level 0  the tuples of the last round
    level i  the successors of level i - 1 that were not reached before; their ranks are those of
             the tuples they were reached from, + 1

Tuples are derived in the same rounds, with the same ranks, as by the steps of the loop.

Building the lists takes as long as a number of rounds that follows from the sizes of the sources.
That many narrow rounds are run as steps first, so that the total time is never much more than twice
that of the better alternative. When a level becomes wide, the steps of the loop take over.

Example: `reach(m) :- reach(n), par(n, m).` over the chain 1→2→3→4, where `reach` holds 1:

| level | state of the search | rank |
|---|---|---|
| 0 | 1 | 0 |
| 1 | 2 | 1 |
| 2 | 3 | 2 |
| 3 | 4 | 3 |
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from corollary.core.engine import Limits
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.engines.budget import Budget
from corollary.engines.local.evaluation.linear_loops import LinearLoop, write_rounds
from corollary.engines.local.evaluation.pipelines import PipelineRunner, RunContext
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.sorting import sort_with_rows
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

NARROW_ROUND_MAX_TUPLES = 64
"""The maximum number of tuples in a narrow round."""

LEVEL_MAX_TUPLES = 4 * NARROW_ROUND_MAX_TUPLES
"""The maximum number of tuples in a level; wider ones are left to the steps of the loop."""

ROUND_COST_TUPLES = 256
"""The number of tuples that can be put into lists in the time of one round of steps."""

SEARCH_COST_TUPLES = 4 * ROUND_COST_TUPLES
"""The fixed cost of a search, in the same unit."""

STATES_MAX = 1 << 27
"""The maximum number of states of a search, each of which takes a byte."""

FLUSH_TUPLES = 1 << 16
"""After this many tuples a search writes them to the tables and checks the limits."""


@dataclass(frozen=True, slots=True)
class _Successors:
    """An adjacency list: the successors of `codes[i]` are `codes[j]` for j in a slice of `indices`.

    Attributes:
        codes: the values of the column that changes, sorted.
        starts: of the slices; one more than codes.
    """

    codes: Codes
    starts: list[int]
    indices: list[int]


@dataclass(frozen=True, slots=True)
class _Level:
    """States of a search, and their ranks in ascending order."""

    states: list[int]
    ranks: list[int]


@dataclass(frozen=True, slots=True)
class _Path:
    """Several levels of a search.

    Attributes:
        reached: the states of all levels.
        last: those of the last one.
        rounds: the number of levels.
        expanded: the number of states whose successors were visited.
    """

    reached: _Level
    last: _Level
    rounds: int
    expanded: int


class BreadthFirstSearch:
    """Runs rounds of a linear loop as breadth-first search; created once for a plan.

    Args:
        trail: the loop.
        tables: by name.
        dictionary: of the codes.
        held: the relations of the engine.
    """

    def __init__(
        self,
        loop: LinearLoop,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        engine_relations: Collection[str],
    ) -> None:
        self._loop = loop
        self._tables = tables
        self._dictionary = dictionary
        self._recorded = [
            each.relation for each in loop.sources if each.relation in engine_relations
        ]
        self._runners = [PipelineRunner(each, tables, dictionary) for each in loop.successors]
        self._narrow_rounds = 0
        self._successors: _Successors | None = None

    def reset(self) -> None:
        """Discard what belongs to one execution of the loop."""
        self._narrow_rounds = 0
        self._successors = None

    def run_rounds(self, context: RunContext, number: int) -> int:
        """Run rounds, if there have been enough narrow ones to pay for it; return how many.

        Args:
            context: of the run.
            number: of the last round.
        """
        delta = self._tables[self._loop.targets.delta]
        if not 0 < delta.size(State.ADDED) <= NARROW_ROUND_MAX_TUPLES:
            self._narrow_rounds = 0
            return 0
        self._narrow_rounds += 1
        if self._narrow_rounds * ROUND_COST_TUPLES < self._cost():
            return 0
        self._narrow_rounds = 0
        if self._successors is None:
            self._successors = self._list_successors(context.recorder)
        space = _StateSpace.of(self._loop, self._tables, self._successors)
        if space is None:
            return 0
        level = self._first_level(space, number)
        rounds = 0
        while level.states and len(level.states) <= LEVEL_MAX_TUPLES:
            path = _search(self._successors, space.is_reached, level)
            self._write(path, space, context)
            rounds += path.rounds
            context.budget.check_rounds(number + rounds, number + rounds)
            level = path.last
        return rounds

    def _cost(self) -> int:
        """Return the cost of a search before its first level, in tuples to list or to mark."""
        cost = SEARCH_COST_TUPLES + self._tables[self._loop.targets.known].size(State.NEW)
        if self._successors is not None:
            return cost
        sources = self._loop.sources
        return cost + sum(self._tables[each.relation].size(each.state) for each in sources)

    def _list_successors(self, recorder: Recorder) -> _Successors:
        # Preparation counts against no limit: the steps of the loop would not have read this.
        context = RunContext(Budget(Limits(), tuple, self._dictionary), recorder)
        heads = [
            runner.head_columns(each) for runner in self._runners for each in runner.frames(context)
        ]
        nothing = np.empty(0, np.int64)
        old = np.concatenate([nothing, *(each[0] for each in heads)])
        new = np.concatenate([nothing, *(each[1] for each in heads)])
        old, order = sort_with_rows(old)
        new = new[order]
        codes = sort_distinct(np.concatenate([old, new]))
        starts = np.append(np.searchsorted(old, codes), len(old))
        return _Successors(codes, starts.tolist(), np.searchsorted(codes, new).tolist())

    def _first_level(self, space: "_StateSpace", number: int) -> _Level:
        """Return the tuples of the last round that may have successors."""
        delta = self._tables[self._loop.targets.delta]
        columns = delta.layout.unpack(delta.tuples(State.ADDED))
        ranks = np.full(delta.size(State.ADDED), number, np.int64)
        if self._loop.targets.is_ranked:
            ranks = self._dictionary.decode(columns.pop(), NUMBER)
        states, has_state = space.states(columns)
        ranks, order = sort_with_rows(ranks[has_state])
        return _Level(states[has_state][order].tolist(), ranks.tolist())

    def _write(self, path: _Path, space: "_StateSpace", context: RunContext) -> None:
        """Write the tuples of a path to the tables, and record its rounds."""
        loop, reached = self._loop, path.reached
        count = len(reached.states)
        columns = space.columns(np.array(reached.states, np.int64))
        ranks = self._dictionary.encode(np.array(reached.ranks, np.int64), None, NUMBER)
        last = count - len(path.last.states)
        for pipeline in loop.successors:
            context.budget.count_rows(pipeline, path.expanded + 2 * count)
        context.budget.count_tuples(loop.successors[0], len(ranks), ranks.nbytes)
        context.budget.release_batches()
        write_rounds(loop.targets, self._tables, columns, ranks, last)
        context.budget.check_totals()
        context.recorder.step(loop.targets.step, count, path.expanded)
        for name in self._recorded:
            context.recorder.probe(name, path.expanded)


@dataclass(frozen=True, slots=True)
class _StateSpace:
    """The tuples that a search can reach, numbered in mixed radix: copied columns, then the other.

    Attributes:
        loop: that is run.
        codes: of the column that changes.
        copied: the codes that each other column has in the first level; they never change.
        is_reached: for each state whether its tuple is known; updated by the search.
    """

    loop: LinearLoop
    codes: Codes
    copied: Sequence[Codes]
    is_reached: bytearray

    @classmethod
    def of(
        cls, loop: LinearLoop, tables: Mapping[str, Table], successors: _Successors
    ) -> "_StateSpace | None":
        """Return the states of a search, the known ones marked; None if there are too many."""
        delta, known = tables[loop.targets.delta], tables[loop.targets.known]
        columns = delta.layout.unpack(delta.tuples(State.ADDED))
        if loop.targets.is_ranked:
            columns.pop()
        copied = [sort_distinct(each) for at, each in enumerate(columns) if at != loop.column]
        size = len(successors.codes) * int(np.prod([len(each) for each in copied]))
        if size > STATES_MAX:
            return None
        space = cls(loop, successors.codes, copied, bytearray(size))
        states, has_state = space.states(known.layout.unpack(known.tuples(State.NEW)))
        np.frombuffer(space.is_reached, np.bool_)[states[has_state]] = True
        return space

    def states(self, columns: Sequence[Codes]) -> tuple[Codes, Mask]:
        """Return the states of tuples, and the mask of those that have one."""
        changing = columns[self.loop.column]
        others = [each for at, each in enumerate(columns) if at != self.loop.column]
        states = np.zeros(len(changing), np.int64)
        has_state = np.ones(len(changing), np.bool_)
        for universe, column in zip((*self.copied, self.codes), (*others, changing), strict=True):
            if not len(universe):
                return states, np.zeros(len(changing), np.bool_)
            digits = np.minimum(np.searchsorted(universe, column), len(universe) - 1)
            has_state &= universe[digits] == column
            states = states * len(universe) + digits
        return states, has_state

    def columns(self, states: Codes) -> list[Codes]:
        """Return the tuples of states."""
        states, digits = np.divmod(states, max(len(self.codes), 1))
        changing = self.codes[digits]
        columns: list[Codes] = []
        for universe in reversed(self.copied):
            states, digits = np.divmod(states, len(universe))
            columns.insert(0, universe[digits])
        columns.insert(self.loop.column, changing)
        return columns


def _search(successors: _Successors, is_reached: bytearray, level: _Level) -> _Path:
    """Return the levels after one, up to an empty or wide one, or to many tuples."""
    # Plain lists and a bytearray: for single elements these are much faster than arrays.
    starts, indices, size = successors.starts, successors.indices, len(successors.codes)
    states, ranks = list(level.states), list(level.ranks)
    first, end, rounds = 0, len(states), 0
    most = end + FLUSH_TUPLES
    while first < end < most and end - first <= LEVEL_MAX_TUPLES:
        for at in range(first, end):
            state = states[at]
            index = state % size
            others = state - index
            for successor in indices[starts[index] : starts[index + 1]]:
                reached = others + successor
                if not is_reached[reached]:
                    is_reached[reached] = True
                    states.append(reached)
                    ranks.append(ranks[at] + 1)
        first, end = end, len(states)
        rounds += 1
    begin = len(level.states)
    reached_level = _Level(states[begin:], ranks[begin:])
    return _Path(reached_level, _Level(states[first:], ranks[first:]), rounds, first)
