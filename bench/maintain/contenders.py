"""Those who keep an answer up to date: a database with one algorithm, DuckDB computing anew."""

import gc
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import pyarrow as pa

import corollary
from bench.contenders import THREADS
from bench.data import Relations
from bench.maintain.task import DELETE, Step, named
from corollary.core.engine import Limits
from corollary.database.database import state_of
from corollary.database.transaction import Transaction
from corollary.errors import LimitError

ANSWER = "answer"
FEW = 100
"""So many rows are handed in as tuples, more of them as an Arrow table."""


Clock = Callable[[], float]
CLOCKS: Mapping[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
"""On a busy machine the processor's time of our single thread says more than the clock on the wall;
DuckDB's is that of all its threads.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One step of one contender.

    Attributes:
        seconds: from the beginning of the transaction to the end of its commit.
        is_cut: whether it was given up then.
    """

    seconds: float
    is_cut: bool = False


class Contender(Protocol):
    """One way to keep an answer up to date."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def is_steady(self) -> bool:
        """Whether its time hardly depends on the change."""

    @property
    def told(self) -> Mapping[str, "Told"]:
        """What its transactions told, by kind of step."""

    def take(self, step: Step, limit: float | None) -> Sample:
        """Go through a step; whether or not it is given up at the limit, the answer is right."""

    def answer(self) -> pa.Table:
        """Return the answer as it is now."""

    def size(self) -> int:
        """Return the number of tuples in the answer."""


@dataclass(slots=True)
class Told:
    """What the transactions of one kind told about the relations they maintained."""

    algorithms: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    switches: int = 0


class Maintained:
    """A database whose views are maintained by one algorithm; loading it is not timed."""

    def __init__(
        self,
        algorithm: str,
        relations: Relations,
        program: str,
        size: str = "",
        clock: Clock = time.perf_counter,
    ) -> None:
        self.name = named(algorithm, size)
        self.is_steady = algorithm == "recompute"
        self._clock = clock
        self.told: dict[str, Told] = {}
        self._database = corollary.open(None, engine="local", algorithm=algorithm)
        self._database.load(text=program)
        with self._database.transaction(algorithm="recompute") as transaction:
            for name, table in relations.items():
                transaction.insert(name, table)

    def take(self, step: Step, limit: float | None) -> Sample:
        """Commit a transaction; one that takes too long is done again by recomputation, untimed."""
        rows = rows_of(step)
        state_of(self._database).limits = Limits(seconds=limit)
        gc.collect()
        began = self._clock()
        try:
            transaction = self.commit(step, rows)
        except LimitError:
            state_of(self._database).limits = Limits()
            self.commit(step, rows, "recompute")
            assert limit is not None
            return Sample(limit, is_cut=True)
        seconds = self._clock() - began
        self._tell(step, transaction)
        return Sample(seconds)

    def commit(self, step: Step, rows: Any, algorithm: str | None = None) -> Transaction:
        """Make the change of a step."""
        with self._database.transaction(algorithm=algorithm) as transaction:
            if step.kind == DELETE:
                transaction.delete(step.relation, rows)
            else:
                transaction.insert(step.relation, rows)
        return transaction

    def _tell(self, step: Step, transaction: Transaction) -> None:
        told = self.told.setdefault(step.kind, Told())
        stats = transaction.stats.values()
        told.algorithms.update({each.algorithm for each in stats})
        told.reasons.update({each.reason for each in stats})
        told.switches += any("outgrew" in each.reason for each in stats)

    def answer(self) -> pa.Table:
        """Read the stored answer."""
        return self._database.relation(ANSWER).arrow()

    def size(self) -> int:
        """Return the number of tuples in the answer."""
        return state_of(self._database).engine.size(ANSWER)


def rows_of(step: Step) -> Any:
    """Return the rows of a step as a user would hand them in."""
    if step.rows.num_rows > FEW:
        return step.rows
    return [tuple(row.values()) for row in step.rows.to_pylist()]


class DuckdbAnew:
    """DuckDB, its tables in memory: it changes them, which is not timed, and queries anew."""

    is_steady = True

    def __init__(
        self, relations: Relations, sql: str, size: str = "", clock: Clock = time.perf_counter
    ) -> None:
        self.name = named("duckdb", size)
        self._clock = clock
        self.told: dict[str, Told] = {}
        self._connection = duckdb.connect(config={"threads": THREADS})
        for name, table in relations.items():
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
            self._connection.unregister("given")
        self._sql = f"CREATE TABLE {ANSWER} AS {sql}"

    def take(self, step: Step, limit: float | None) -> Sample:  # noqa: ARG002 - it is never cut
        """Change the table, then time the query."""
        self._connection.register("given", step.rows)
        if step.kind == DELETE:
            same = " AND ".join(f"t.{each} = given.{each}" for each in step.rows.column_names)
            self._connection.execute(f"DELETE FROM {step.relation} t USING given WHERE {same}")
        else:
            self._connection.execute(f"INSERT INTO {step.relation} FROM given")
        self._connection.unregister("given")
        self._connection.execute(f"DROP TABLE IF EXISTS {ANSWER}")
        gc.collect()
        began = self._clock()
        self._connection.execute(self._sql)
        return Sample(self._clock() - began)

    def answer(self) -> pa.Table:
        """Read the result of the last query."""
        return self._connection.sql(f"FROM {ANSWER}").to_arrow_table()

    def size(self) -> int:
        """Return the number of tuples in it."""
        ((size,),) = self._connection.execute(f"SELECT count(*) FROM {ANSWER}").fetchall()
        return int(size)
