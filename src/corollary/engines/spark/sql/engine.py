"""Relations in Spark, and the plans that run on them (placement `sql`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import from_python
from corollary.core.engine import Limits, LocalHandle, SinglePlacement, ValueRange
from corollary.core.plans import Add, CancelOut, Plan, Remove, StoreRelation, steps_of
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import SYMBOL
from corollary.engines.interpreter import Interpreter
from corollary.engines.spark.session import private_session, release_session
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.columns import from_held, names_of, to_held
from corollary.engines.spark.sql.functions import Functions
from corollary.engines.spark.sql.immutable_sets import SMALL, Pieces, Tuples
from corollary.engines.spark.sql.prepared import Prepared, fetched
from corollary.engines.spark.sql.projections import distinct
from corollary.engines.spark.sql.table import Layers, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIFT = 4
"""Distinct values are counted again when a relation has grown or shrunk by one in so many."""


@dataclass(frozen=True, slots=True)
class SparkTableHandle(LocalHandle):
    """The tuples a relation had in a state; pieces never change, so they stay right."""

    layers: Layers
    names: tuple[str, ...]
    pieces: Pieces

    def __len__(self) -> int:
        return len(self.layers)

    def table(self) -> pa.Table:
        """Return the tuples as an Arrow table."""
        return from_held(fetched(self.layers, self.pieces), self.layers.types, self.names)


class SparkEngine(SinglePlacement):
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
        self.pieces = Pieces(private_session(spark), small, scratch)
        self._functions = Functions(self.pieces)
        self._relations: dict[str, Relation] = {}
        self._tables: dict[str, Table] = {}
        self._counted: dict[str, tuple[int, tuple[int, ...]]] = {}

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
            self._counted.pop(name, None)

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""
        assert new not in self._relations, f"`{new}` is taken"
        self._relations[new] = replace(self._relations.pop(old), name=new)
        self._tables[new] = self._tables.pop(old)
        self._counted.pop(old, None)

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""
        self._relations[relation.name] = relation

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
        held = distinct(to_held(rows, declared.types))
        return self.pieces.of_table(held, declared.types)

    def apply_change(self, relation: str, added: pa.Table, removed: pa.Table) -> None:
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
        return self.handle(relation, state).table()

    def handle(self, relation: str, state: State = State.NEW) -> SparkTableHandle:
        """Return the tuples of a relation in a state as they are now, to be read when asked."""
        names = self._relations[relation].columns
        return SparkTableHandle(self._tables[relation].layers(state), tuple(names), self.pieces)

    def duplicates(self, relation: str, columns: Sequence[int]) -> pa.Table:  # noqa: ARG002
        """Return the tuples of NEW, all of them: whoever asks compares them."""
        return self.read(relation)

    def within(
        self,
        relation: str,
        boxes: Sequence[Mapping[int, ValueRange]],  # noqa: ARG002
    ) -> pa.Table:
        """Return the tuples of NEW, all of them: whoever asks compares them."""
        return self.read(relation)

    def arrange(self, relation: str, orders: Iterable[Sequence[int]]) -> None:
        """Do nothing: Spark sorts as it needs."""

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        return self._tables[relation].size(state)

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Yield nothing: there is no index to keep."""
        return iter(())

    def restore(
        self,
        files: Mapping[str, pa.Buffer],  # noqa: ARG002
        paths: Mapping[str, Path] | None = None,  # noqa: ARG002
    ) -> set[str]:
        """Return no relation: there is no index to read."""
        return set()

    def statistics(self) -> Statistics:
        """Return the sizes of relations and, for those with tuples, distinct values by column."""
        sizes = {name: self.size(name) for name in self._relations}
        large: dict[str, Layers] = {}
        distinct_values: dict[str, tuple[int, ...]] = {}
        for name in (name for name, size in sizes.items() if size):
            layers = self._tables[name].layers(State.NEW)
            if layers.is_local or not layers.types:
                distinct_values[name] = self._distinct(layers)
            else:
                large[name] = layers
        return Statistics(sizes, distinct_values | self._approximate(large))

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a relation has."""
        layers = self._tables[relation].layers(State.NEW)
        if layers.is_local or not layers.types:
            return self._distinct(layers)
        return self._approximate({relation: layers})[relation]

    def _distinct(self, layers: Layers) -> tuple[int, ...]:
        """Count the distinct values of each column of tuples on the driver."""
        columns = layers.tuples(self.pieces).table().columns if layers.types else ()
        return tuple(pc.count_distinct(column, "all").as_py() for column in columns)

    def _approximate(self, large: Mapping[str, Layers]) -> dict[str, tuple[int, ...]]:
        """Count, about, the distinct values of each column of large relations, in one query.

        A relation is not counted again before a good part of it has changed.
        """
        stale = []
        for name, layers in large.items():
            then, _ = self._counted.get(name, (0, ()))
            if abs(len(layers) - then) * DRIFT > len(layers):
                stale.append(name)
        if stale:
            queries = [_counts(name, large[name]) for name in stale]
            inputs = sum(len(large[name]) for name in stale)
            found = self.pieces.fetch(sql.union(queries), "corollary: statistics", inputs)
            for name, counts in zip(*(column.to_pylist() for column in found.columns), strict=True):
                self._counted[name] = (len(large[name]), tuple(max(1, each) for each in counts))
        return {name: self._counted[name][1] for name in large}

    @property
    def default_placement(self) -> str:
        """Where strata run that are placed nowhere else, in one word."""
        return "sql"

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return how many rows it handled.

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
                if isinstance(step, StoreRelation | Remove | Add | CancelOut):
                    self._tables[step.relation].rollback()
            raise
        return prepared.budget.handled_rows

    def close(self) -> None:
        """Drop all views and files."""
        self.pieces.close()
        release_session(self.pieces.session)


def _counts(relation: str, layers: Layers) -> sql.Node:
    """Return a query for the name of a relation and the distinct values of its columns, about."""
    counts = [
        sql.call("APPROX_COUNT_DISTINCT", sql.column(name, "r")) for name in names_of(layers.types)
    ]
    nodes = [
        sql.named(sql.constant(relation, SYMBOL), "relation"),
        sql.named(sql.call("ARRAY", *counts), "counts"),
    ]
    return sql.select(nodes, sql.of(layers.query(), "r"))
