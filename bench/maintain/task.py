"""What a maintenance task is, as data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bench.data import Relations

DELETE, INSERT = "delete", "insert"


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction: rows taken out of a base relation, or put into it.

    Attributes:
        kind: `delete` or `insert`.
    """

    kind: str
    relation: str
    rows: pa.Table


Round = tuple[Step, ...]
"""Steps that together change nothing, so that every round starts on the same relations."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How much quicker one contender should be than another, in every kind of step.

    Attributes:
        times: quicker by this factor; below 1 it may be slower.
    """

    ours: str
    rival: str
    times: float


@dataclass(frozen=True, slots=True)
class Task:
    """Views to maintain, the changes, and who takes part.

    Attributes:
        name: what `--only` and `--profile` take.
        group: what `--only` takes to run all tasks of a kind.
        about: one line for the reader.
        relations: makes the data.
        program: rules that define the relation `answer`.
        sql: the same answer by DuckDB, which computes it anew.
        rounds: makes the changes from the data.
        algorithms: those that take part, the one to be profiled first.
        bars: what is expected of them.
        patience: a step is given up after so many times the seconds of the quickest; None for
            never.
    """

    name: str
    group: str
    about: str
    relations: Callable[[], Relations]
    program: str
    sql: str
    rounds: Callable[[Relations], Sequence[Round]]
    algorithms: tuple[str, ...]
    bars: tuple[Bar, ...] = ()
    patience: float | None = None
