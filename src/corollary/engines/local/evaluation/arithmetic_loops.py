"""Narrow rounds of a loop that only computes, run one tuple at a time.

    n(x + 1) :- n(x), x < 2000000.        fib(i + 1, b, a + b) :- fib(i, a, b), i < 80.

A round of steps costs some tenths of a millisecond however few tuples it derives. Where every
pipeline of a loop reads the tuples of the last round and nothing else, and compares and computes
numbers, it becomes a few lines of Python, made once, that take about a microsecond for a tuple:

    for at in range(first, end):
        v0, = rows[at]
        if v0 < 2000000:
            v1 = v0 + 1
            if v1 > GREATEST or v1 < LEAST: return False
            ...

Many rounds are run like that before the tables are asked which of their tuples are known already.
The first round that has such a tuple, and all after it, are taken back and left to the steps of the
loop; so is a round in which a number does not fit into 64 bits, which the steps report. Tuples come
in the same rounds, with the same ranks, as by the steps.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from corollary.core import logic
from corollary.core.pipeline import Compute, Filter, Pipeline
from corollary.core.plans import Loop
from corollary.core.states import State
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.linear_loops import (
    LoopTargets,
    find_targets,
    row_steps,
    write_rounds,
)
from corollary.engines.local.evaluation.pipelines import RunContext
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

NARROW_ROUND_MAX_TUPLES = 16
"""The maximum number of tuples in a narrow round."""
LEVEL_MAX_TUPLES = 4 * NARROW_ROUND_MAX_TUPLES
"""The maximum number of tuples in a round that is run here."""
FIRST_ROUNDS = 8
"""The narrow rounds that are run as steps before the lines of Python are made."""
BLOCK_TUPLES = 1 << 16
"""After this many tuples they are looked up, and written to the tables."""
FIRST_BLOCK_TUPLES = 1 << 6
EXPRESSIONS_MAX_DEPTH = 20

_OPERATORS = {"+", "-", "*"}
_LEAST, _GREATEST = -(2**63), 2**63 - 1

Row = tuple[int, ...]
Expand = Callable[[list[Row], list[int], int, int, set[Row]], bool]
"""Appends what follows the rows from one index to another, and their ranks, unless it was seen;
returns whether all numbers fit."""


@dataclass(frozen=True, slots=True)
class ArithmeticLoop:
    """A loop that only computes.

    Attributes:
        targets: the relations that it writes.
        expand: makes a round.
    """

    targets: LoopTargets
    expand: Expand


def find_arithmetic_loop(
    loop: Loop, procedure_locals: Collection[str], types: Mapping[str, tuple[Type, ...]]
) -> ArithmeticLoop | None:
    """Return a loop as one that only computes, or None if it is of another kind.

    Args:
        loop: of a plan.
        procedure_locals: the locals of procedures, whose tables are replaced at each invocation.
        types: those of the columns of relations.
    """
    targets = find_targets(loop)
    if targets is None or targets.written & set(procedure_locals):
        return None
    columns = types[targets.delta]
    if len(columns) <= targets.is_ranked or any(each != NUMBER for each in columns):
        return None
    lines: list[str] = []
    for pipeline in targets.step.pipelines:
        found = _Lines(pipeline, targets).made()
        if found is None:
            return None
        lines += found
    return ArithmeticLoop(targets, _compiled(lines)) if lines else None


class ArithmeticRounds:
    """Runs rounds of a loop that only computes; created once for a plan."""

    def __init__(
        self, loop: ArithmeticLoop, tables: Mapping[str, Table], dictionary: Dictionary
    ) -> None:
        self._loop = loop
        self._tables = tables
        self._dictionary = dictionary
        self.reset()

    def reset(self) -> None:
        """Discard what belongs to one execution of the loop."""
        self._narrow_rounds = 0
        self._wanted_rounds = FIRST_ROUNDS

    def run_rounds(self, context: RunContext, number: int) -> int:
        """Run rounds, if there have been enough narrow ones to pay for it; return how many.

        Args:
            context: of the run.
            number: of the last round.
        """
        targets = self._loop.targets
        delta = self._tables[targets.delta]
        if not 0 < delta.size(State.ADDED) <= NARROW_ROUND_MAX_TUPLES:
            self._narrow_rounds = 0
            return 0
        self._narrow_rounds += 1
        if self._narrow_rounds < self._wanted_rounds:
            return 0
        self._narrow_rounds = 0
        rounds, block = 0, FIRST_BLOCK_TUPLES
        rows, ranks = self._last_round(number)
        while rows and len(rows) <= LEVEL_MAX_TUPLES:
            made = self._make_rounds(rows, ranks, block)
            is_whole = self._cut_known(made)
            if made.rounds:
                self._write(made, context)
            rounds += made.rounds
            context.budget.check_rounds(number + rounds)
            rows, ranks = made.last
            if not is_whole:
                # The less it helps, the longer the steps of the loop run before the next time.
                few = made.rounds < FIRST_ROUNDS
                self._wanted_rounds = 2 * self._wanted_rounds if few else FIRST_ROUNDS
                break
            block = min(4 * block, BLOCK_TUPLES)
        return rounds

    def _last_round(self, number: int) -> tuple[list[Row], list[int]]:
        """Return the tuples of the last round and their ranks, in ascending order of these."""
        targets = self._loop.targets
        delta = self._tables[targets.delta]
        codes = delta.layout.unpack(delta.tuples(State.ADDED))
        columns = [self._dictionary.decode(each, NUMBER).tolist() for each in codes]
        ranks = columns.pop() if targets.is_ranked else [number] * delta.size(State.ADDED)
        every = sorted(zip(ranks, zip(*columns, strict=True), strict=True))
        return [row for _, row in every], [rank for rank, _ in every]

    def _make_rounds(self, rows: list[Row], ranks: list[int], most: int) -> "_Rounds":
        """Return the rounds after some tuples, up to an empty or wide one, or to many tuples."""
        expand, begin = self._loop.expand, len(rows)
        rows, ranks, seen = list(rows), list(ranks), set(rows)
        starts = [0]
        first, end = 0, begin
        is_fitting = True
        while first < end < begin + most and end - first <= LEVEL_MAX_TUPLES:
            is_fitting = expand(rows, ranks, first, end, seen)
            if not is_fitting:
                del rows[end:], ranks[end:]
                break
            starts.append(end)
            first, end = end, len(rows)
        return _Rounds(rows, ranks, starts, is_fitting)

    def _cut_known(self, made: "_Rounds") -> bool:
        """Take back the rounds from the first one on with a known tuple; return if all is left."""
        begin = made.starts[1] if made.rounds else len(made.rows)
        count = len(made.rows) - begin
        if not count:
            return made.is_fitting
        known = self._tables[self._loop.targets.known]
        is_known = known.contains_codes(self._columns(made.rows[begin:]), count, State.NEW)
        if not is_known.any():
            return made.is_fitting
        made.cut(begin + int(is_known.argmax()))
        return False

    def _columns(self, rows: list[Row]) -> list[Codes]:
        targets = self._loop.targets
        width = len(self._tables[targets.delta].types) - targets.is_ranked
        values = np.array(rows, np.int64).reshape(len(rows), width)
        return [self._dictionary.encode(each, None, NUMBER) for each in values.T.copy()]

    def _write(self, made: "_Rounds", context: RunContext) -> None:
        begin, last = made.starts[1], made.starts[-1]
        columns = self._columns(made.rows[begin:])
        ranks = np.array(made.ranks[begin:], np.int64)
        numbers = self._dictionary.encode(ranks, None, NUMBER)
        for pipeline in self._loop.targets.step.pipelines:
            context.budget.count_rows(pipeline, last + 2 * len(ranks))
        context.budget.count_tuples(
            self._loop.targets.step.pipelines[0], len(numbers), numbers.nbytes
        )
        context.budget.release_batches()
        write_rounds(self._loop.targets, self._tables, columns, numbers, last - begin)
        context.budget.check_totals()
        context.recorder.step(self._loop.targets.step, len(ranks), last)


@dataclass(slots=True)
class _Rounds:
    """Tuples that were derived from others, round by round.

    Attributes:
        rows: the tuples of the beginning, then those of all rounds.
        ranks: theirs.
        starts: where the tuples begin from which each round, and the next one, is made.
        is_fitting: whether the next round has been, or may be, made.
    """

    rows: list[Row]
    ranks: list[int]
    starts: list[int]
    is_fitting: bool

    @property
    def rounds(self) -> int:
        """How many rounds were made."""
        return len(self.starts) - 1

    @property
    def last(self) -> tuple[list[Row], list[int]]:
        """The tuples of the last round."""
        return self.rows[self.starts[-1] :], self.ranks[self.starts[-1] :]

    def cut(self, at: int) -> None:
        """Take back the round that has made a tuple, and those after it."""
        number = bisect_right(self.starts, at) - 1
        end = self.starts[number]
        del self.rows[end:], self.ranks[end:], self.starts[number:]


class _Lines:
    """Makes the lines of Python for a pipeline; they are inside a loop over rows."""

    def __init__(self, pipeline: Pipeline, targets: LoopTargets) -> None:
        self._pipeline = pipeline
        self._targets = targets
        self._names: dict[str, str] = {}

    def made(self) -> list[str] | None:
        """Return the lines, or None if the pipeline does anything else."""
        found = row_steps(self._pipeline, self._targets)
        if found is None:
            return None
        stages, slots, head = found
        names = [slot.name for slot in slots if isinstance(slot, logic.Variable)]
        self._names = {name: f"v{at}" for at, name in enumerate(names)}
        lines, depth = [f"{''.join(f'v{at}, ' for at in range(len(names)))}= rows[at]"], 0
        try:
            for stage in stages:
                for line in self._stage(stage):
                    lines.append("    " * depth + line)
                    depth += line.endswith(":")
            row = "".join(f"{self._term(each)}, " for each in head)
        except _OtherKindError:
            return None
        ends = [
            f"row = ({row})",
            "if row not in seen: seen.add(row); rows.append(row); ranks.append(ranks[at] + 1)",
        ]
        return [*lines, *("    " * depth + line for line in ends)]

    def _stage(self, stage: object) -> Iterator[str]:
        match stage:
            case Filter(condition=logic.Condition(operator=operator, left=left, right=right)) if (
                operator in logic.COMPARATORS
            ):
                yield from self._checked(left)
                yield from self._checked(right)
                sign = "==" if operator == "=" else operator
                yield f"if {self._term(left)} {sign} {self._term(right)}:"
            case Compute(variable=variable, expression=expression):
                if variable.name in self._names:
                    raise _OtherKindError
                yield from self._checked(expression)
                value = self._term(expression)
                name = self._names[variable.name] = f"v{len(self._names)}"
                yield f"{name} = {value}"
            case _:
                raise _OtherKindError

    def _checked(self, term: logic.Expression, depth: int = 0) -> Iterator[str]:
        """Yield lines that end the round if a number in a term does not fit."""
        if isinstance(term, logic.Functor):
            if depth > EXPRESSIONS_MAX_DEPTH:
                raise _OtherKindError
            for each in term.arguments:
                yield from self._checked(each, depth + 1)  # type: ignore[arg-type]
            yield f"if not {_LEAST} <= {self._term(term)} <= {_GREATEST}: return False"

    def _term(self, term: object) -> str:
        match term:
            case logic.Variable(name=name) if name in self._names:
                return self._names[name]
            case logic.Constant(value=int() as value, type=type_) if (
                type_ == NUMBER and not isinstance(value, bool)
            ):
                return f"({value})"
            case logic.Functor(name=name, arguments=(left, right), type=type_) if (
                name in _OPERATORS and type_ == NUMBER
            ):
                return f"({self._term(left)} {name} {self._term(right)})"
            case logic.Functor(name="neg", arguments=(value,), type=type_) if type_ == NUMBER:
                return f"(-{self._term(value)})"
            case _:
                raise _OtherKindError


class _OtherKindError(Exception):
    """The loop does something else than to compare and compute numbers."""


def _compiled(lines: list[str]) -> Expand:
    body = "".join(f"        {line}\n" for line in lines)
    text = (
        "def expand(rows, ranks, first, end, seen):\n"
        "    for at in range(first, end):\n"
        f"{body}"
        "    return True\n"
    )
    made: dict[str, Expand] = {}
    # The text has numbers, operators and names of its own only; nothing of the program's text.
    exec(compile(text, "<arithmetic loop>", "exec"), {"range": range}, made)  # noqa: S102
    return made["expand"]
