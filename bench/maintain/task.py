"""What a maintenance task is, as data."""

from collections.abc import Callable, Mapping, Sequence
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


CHOOSING = "maintain-auto"
"""The group of tasks that an algorithm is chosen for."""

BEST = "best"
"""As a rival: whoever of the others was quickest."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How much quicker one contender should be than another.

    Attributes:
        times: quicker by this factor; below 1 it may be slower.
        kind: the kind of step it is meant for; None for every one.
        switched: the factor where `ours` gave up and recomputed; None for the same.
    """

    ours: str
    rival: str
    times: float
    kind: str | None = None
    switched: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Views to maintain, the changes, and who takes part.

    Attributes:
        name: what `--only` and `--profile` take.
        group: what `--only` takes to run all tasks of a kind.
        about: one line for the reader.
        relations: makes the data; where there are several sizes, each has a name.
        program: rules that define the relation `answer`.
        sql: the same answer by DuckDB, which computes it anew.
        rounds: makes the changes from the data of the first size.
        algorithms: those that take part, the one to be profiled first.
        bars: what is expected of them.
        allotted: a contender that has used so many seconds rests after the round it is in.
        patience: a step is given up after so many times the seconds of the quickest; None for
            never.
    """

    name: str
    group: str
    about: str
    relations: Mapping[str, Callable[[], Relations]]
    program: str
    sql: str
    rounds: Callable[[Relations], Sequence[Round]]
    algorithms: tuple[str, ...]
    bars: tuple[Bar, ...] = ()
    allotted: float = 10.0
    patience: float | None = None


def named(contender: str, size: str) -> str:
    """Return the name of a contender on data of a size.

    >>> named("ranked", ""), named("ranked", "10,000")
    ('ranked', 'ranked 10,000')
    """
    return f"{contender} {size}".rstrip()
