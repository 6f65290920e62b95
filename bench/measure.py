"""The measuring core: contenders take turns at the same task, and their answers are compared."""

import gc
import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa


class Contender(Protocol):
    """One way to do a task: made once, run many times."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    def ready(self) -> None:
        """Bring everything to the state before a run; not timed."""

    def run(self) -> None:
        """Do the task; this alone is timed."""

    def answer(self) -> pa.Table:
        """Return the answer of the last run; not timed."""

    def notes(self) -> Mapping[str, float]:
        """Return what else is worth reporting about the last run, such as its rounds."""


@dataclass(slots=True)
class Timing:
    """The runs of one contender: seconds of each, tuples of the answer, its notes.

    Attributes:
        seconds: on the clock.
        processor: seconds of all threads, and of processes that were started and waited for.
    """

    name: str
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    tuples: int = 0
    notes: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The seconds that half of the runs stayed under."""
        return statistics.median(self.seconds)

    @property
    def median_processor(self) -> float:
        """The seconds of the processor that half of the runs stayed under."""
        return statistics.median(self.processor)

    def run(self, contender: Contender) -> None:
        """Time one run, garbage of earlier ones collected before."""
        contender.ready()
        gc.collect()
        began, began_processor = time.perf_counter(), _processor_seconds()
        contender.run()
        self.processor.append(_processor_seconds() - began_processor)
        self.seconds.append(time.perf_counter() - began)


@dataclass(slots=True)
class Measurement:
    """What a workload gave: our timing first, then the others', and where answers differ."""

    timings: list[Timing]
    differences: list[str] = field(default_factory=list)


def measure(
    contenders: Sequence[Contender], repeat: int, referees: Sequence[Contender] = ()
) -> Measurement:
    """Let the contenders run in turns, `repeat` times, and compare every answer with the first's.

    Args:
        contenders: ours first; all of them are timed.
        repeat: how often each one runs.
        referees: run once, for their answers alone.
    """
    timings = [Timing(each.name) for each in contenders]
    differences: list[str] = []
    expected: pa.Table | None = None
    for number in range(repeat):
        for contender, timing in zip(contenders, timings, strict=True):
            timing.run(contender)
            found = contender.answer()
            timing.notes.update(contender.notes())
            if number == 0:
                timing.tuples = found.num_rows
                expected = in_order(found) if expected is None else expected
                differences += difference(contenders[0].name, expected, timing.name, found)
            elif found.num_rows != timing.tuples:
                differences.append(
                    f"{timing.name} found {timing.tuples:,} tuples in its first run, "
                    f"{found.num_rows:,} in run {number + 1}"
                )
    for referee in referees:
        Timing(referee.name).run(referee)
        assert expected is not None
        differences += difference(contenders[0].name, expected, referee.name, referee.answer())
    return Measurement(timings, differences)


def _processor_seconds() -> float:
    """Return user and system time of this process and its children so far."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def in_order(table: pa.Table) -> pa.Table:
    """Return the rows sorted by all columns, which are named by their position."""
    names = [f"column{index}" for index in range(table.num_columns)]
    renamed = table.rename_columns(names)
    return renamed.sort_by([(name, "ascending") for name in names]).combine_chunks()


def difference(one: str, expected: pa.Table, other: str, found: pa.Table) -> list[str]:
    """Say how an answer differs from the expected one, which is in order; nothing if it does not.

    >>> table = pa.table({"x": [1, 2]})
    >>> difference("a", in_order(table), "b", pa.table({"y": [2, 1]}))
    []
    >>> difference("a", in_order(table), "b", pa.table({"y": [2, 3]}))
    ['a and b differ at row 0 of 2: {column0: 1} and {column0: 2}']
    """
    if expected.num_rows != found.num_rows:
        return [f"{one} found {expected.num_rows:,} tuples, {other} {found.num_rows:,}"]
    if expected.num_columns != found.num_columns:
        return [f"{one} found {expected.num_columns} columns, {other} {found.num_columns}"]
    found = in_order(found).cast(expected.schema)
    if expected.equals(found):
        return []
    row = _first_difference(expected, found)
    rows = f"{_row(expected, row)} and {_row(found, row)}"
    return [f"{one} and {other} differ at row {row} of {len(found):,}: {rows}"]


def _first_difference(one: pa.Table, other: pa.Table) -> int:
    """Return the first row that differs, by halving: equal prefixes are equal tables."""
    low, high = 0, one.num_rows - 1
    while low < high:
        middle = (low + high) // 2
        if one.slice(low, middle - low + 1).equals(other.slice(low, middle - low + 1)):
            low = middle + 1
        else:
            high = middle
    return low


def _row(table: pa.Table, row: int) -> str:
    values = table.slice(row, 1).to_pylist()[0]
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"
