"""Relations in Spark, and the plans that run on them (placement `sql`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import from_python
from corollary.core.engine import Limits
from corollary.core.plan import Grow, Placement, Plan, Remove, Settle, Store, steps_of
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.engines.local.interpreter import Interpreter
from corollary.engines.spark import sql
from corollary.engines.spark.columns import from_held, names_of, to_held
from corollary.engines.spark.functions import Functions
from corollary.engines.spark.pieces import SMALL, Pieces, Tuples
from corollary.engines.spark.prepared import Prepared, fetched
from corollary.engines.spark.session import private
from corollary.engines.spark.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Kept:
    """The tuples a relation had in a state; pieces never change, so they stay right."""

    tuples: Tuples
    names: tuple[str, ...]
    pieces: Pieces

    def __len__(self) -> int:
        return len(self.tuples)

    def table(self) -> pa.Table:
        """Return the tuples as an Arrow table."""
        return from_held(fetched(self.tuples, self.pieces), self.tuples.types, self.names)


class SparkEngine:
    """Relations as pieces in a Spark session; plans run step by step, each step as one query.

    Args:
        spark: the session to work beside; a local one is started if there is none.
        small: up to so many tuples of a result are kept on the driver.
        scratch: a directory that the driver and all executors see, for larger ones.
    """

    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        small: int = SMALL,
        scratch: Path | None = None,
    ) -> None:
        self.pieces = Pieces(private(spark), small, scratch)
        self._functions = Functions(self.pieces)
        self._relations: dict[str, Relation] = {}
        self._tables: dict[str, Table] = {}

    # --- relations -----------------------------------------------------------------------------

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Make relations known; those already known stay as they are."""
        for name, relation in relations.items():
            if name not in self._relations:
                self._relations[name] = relation
                self._tables[name] = Table(relation.types, self.pieces)

    def drop(self, relations: Iterable[str]) -> None:
        """Forget relations."""
        for name in relations:
            del self._relations[name], self._tables[name]

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""
        assert new not in self._relations, f"`{new}` is taken"
        self._relations[new] = replace(self._relations.pop(old), name=new)
        self._tables[new] = self._tables.pop(old)

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        self._tables[target].copy(self._tables[source])

    # --- changes -------------------------------------------------------------------------------

    def insert(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Add tuples to the NEW state of a relation; those already there are no change."""
        self._tables[relation].insert(self._tuples(relation, rows))

    def delete(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Take tuples out of the NEW state of a relation; those not there are no change."""
        self._tables[relation].delete(self._tuples(relation, rows))

    def _tuples(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> Tuples:
        declared = self._relations[relation]
        if isinstance(rows, Sequence):
            rows = from_python(rows, declared)
        held = to_held(rows, declared.types)
        if held.num_rows < 2:
            return self.pieces.of_table(held, declared.types)
        names = names_of(declared.types)
        lone = held.group_by(names, use_threads=False).aggregate([]).select(names)
        return self.pieces.of_table(lone, declared.types)

    def change(self, relation: str, added: pa.Table, removed: pa.Table) -> None:
        """Let a relation change by just these tuples, for good: they come, and those were there."""
        self.delete(relation, removed)
        self.insert(relation, added)

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        for name in self._tables if relations is None else relations:
            self._tables[name].commit()

    def clear(self, relations: Iterable[str]) -> None:
        """Let relations hold nothing, in any state."""
        for name in relations:
            self._tables[name].clear()

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        for table in self._tables.values():
            table.rollback()

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        return self.keep(relation, state).table()

    def keep(self, relation: str, state: State = State.NEW) -> Kept:
        """Return the tuples of a relation in a state as they are now, to be read when asked."""
        names = self._relations[relation].columns
        return Kept(self._tables[relation].words(state), tuple(names), self.pieces)

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        return self._tables[relation].size(state)

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Yield nothing: there is no index to keep."""
        return iter(())

    def restore(self, files: Mapping[str, pa.Buffer]) -> set[str]:  # noqa: ARG002
        """Return no relation: there is no index to read."""
        return set()

    def statistics(self) -> Statistics:
        """Return the sizes of relations and, for those with tuples, distinct values by column."""
        sizes = {name: self.size(name) for name in self._relations}
        filled = [name for name, size in sizes.items() if size]
        return Statistics(sizes, {name: self._distinct(name) for name in filled})

    def _distinct(self, relation: str) -> tuple[int, ...]:
        """Count the distinct values of each column, about, where the relation is large."""
        layers = self._tables[relation].layers(State.NEW)
        types = layers.base.types
        if not types:
            return ()
        if all(each.is_local for each in (layers.base, layers.gone, layers.more)):
            table = self._tables[relation].words(State.NEW).table()
            return tuple(pc.count_distinct(column, "all").as_py() for column in table.columns)
        counts = [
            sql.named(sql.call("APPROX_COUNT_DISTINCT", sql.column(name, "r")), name)
            for name in names_of(types)
        ]
        found = self.pieces.fetch(
            sql.select(counts, sql.of(layers.query(), "r")), f"corollary: statistics of {relation}"
        )
        return tuple(max(1, column[0].as_py()) for column in found.columns)

    @property
    def home(self) -> str:
        """Where strata run that are placed nowhere else, in one word."""
        return "sql"

    @property
    def shares(self) -> int:
        """How many tasks share the work of a stratum: none is shared out."""
        return 1

    def placement(self, relations: Sequence[str], below: Sequence[str]) -> Placement:  # noqa: ARG002
        """Return where a stratum should run: here, whatever the name."""
        return Placement.DRIVER

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> None:
        """Run the main procedure of a plan.

        If it fails, the relations that the plan writes have no open change; those that `insert` and
        `delete` have changed keep theirs.
        """
        prepared = Prepared(
            plan,
            self._tables,
            self._relations,
            self._functions,
            self.pieces,
            recorder=recorder,
            limits=limits,
        )
        try:
            Interpreter(prepared).run()
        except BaseException:
            for step in steps_of(plan):
                if isinstance(step, Store | Remove | Grow | Settle):
                    self._tables[step.relation].rollback()
            raise

    def close(self) -> None:
        """Drop all views and files."""
        self.pieces.close()
