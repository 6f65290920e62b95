"""Corollary's local engine and DuckDB, as contenders."""

import time
from collections.abc import Mapping

import duckdb
import pyarrow as pa

from bench.data import Relations
from corollary.core.engine import Limits
from corollary.core.plans import Plan
from corollary.core.recorder import CountingRecorder
from corollary.database.program.loaded_program import load_program
from corollary.engines.local.engine import LocalEngine
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms import seminaive
from corollary.source import SourceFile

THREADS = 2
"""The bars are meant for two cores, so DuckDB gets two even where there are more."""


class LocalEvaluation:
    """Evaluates a program from its facts; every run starts on a fresh engine.

    Timed is the run of the plan, with all orders and directories it makes; not timed, but noted:
    reading the program, loading the facts, planning.
    """

    name = "corollary"

    def __init__(self, relations: Relations, program: str, answer: str) -> None:
        self._relations = relations
        self._program = SourceFile("bench", program)
        self._answer = answer
        self._notes: dict[str, float] = {}
        self._engine = LocalEngine()
        self._plan = Plan({}, {})
        self._tally = CountingRecorder()

    def ready(self) -> None:
        """Read the program, load the facts into a new engine, and plan."""
        clock = time.perf_counter
        began = clock()
        program = load_program(parse(self._program)).normal
        parsed = clock()
        self._engine = LocalEngine()
        self._engine.declare(program.relations)
        for name, table in self._relations.items():
            self._engine.insert(name, table)
        filled = clock()
        self._plan = seminaive.plan_program(
            program, self._engine.statistics(), asked={self._answer}
        )
        planned = clock()
        self._tally = CountingRecorder()
        self._notes = {"parse": parsed - began, "load": filled - parsed, "plan": planned - filled}

    def run(self) -> None:
        """Evaluate."""
        self._engine.run(self._plan, self._tally, Limits())

    def answer(self) -> pa.Table:
        """Read the relation that is the answer."""
        return self._engine.read(self._answer)

    def notes(self) -> Mapping[str, float]:
        """Return the rounds, the tuples of all steps, and the seconds that were not timed."""
        rounds, derived = self._tally.rounds.total(), self._tally.derived.total()
        return {**self._notes, "rounds": rounds, "derived": derived}


class DuckdbQuery:
    """Runs one query on the same tables, in memory, and keeps its result as a table."""

    name = "duckdb"

    def __init__(self, relations: Relations, sql: str) -> None:
        self._connection = duckdb.connect(config={"threads": THREADS})
        for name, table in relations.items():
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
            self._connection.unregister("given")
        self._sql = f"CREATE TABLE answer AS {sql}"

    def ready(self) -> None:
        """Forget the last result."""
        self._connection.execute("DROP TABLE IF EXISTS answer")

    def run(self) -> None:
        """Query."""
        self._connection.execute(self._sql)

    def answer(self) -> pa.Table:
        """Read the result."""
        return self._connection.sql("FROM answer").to_arrow_table()

    def notes(self) -> Mapping[str, float]:
        """Nothing is worth saying."""
        return {}
