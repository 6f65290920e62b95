"""Runs queries of Spark SQL over the relations of an engine, and has tasks write their results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.engine import BulkMode
from corollary.core.pipeline import Reference
from corollary.core.states import State
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.bulk.semi_joins import KEY, SemiJoin, probe_frame
from corollary.engines.spark.bulk.spark_columns import (
    column_names,
    partition_frame,
    tuples_to_spark,
)
from corollary.engines.spark.bulk.step_queries import SHARED, StepQuery
from corollary.engines.spark.bulk.udf_code import udf_code
from corollary.engines.spark.bulk.writing import (
    WritePartitions,
    WrittenPartition,
    write_partitions,
)
from corollary.engines.spark.frames import all_rows, arrow_frame, has_rows
from corollary.engines.spark.relation.contents import PartitionPlace, contents_in
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.session import run_jobs
from corollary.sqlgen.compiled import MARK, InputTable, Representation
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.udf import Udf, udfs_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROADCAST_MAX_BYTES = 1 << 23
"""A relation of the driver that is no larger goes to every task whole."""

COLLECTED_MAX_TUPLES = 1 << 17
"""A result of no more tuples comes to the driver."""


class SparkQueries:
    """Runs queries.

    Args:
        resources: the session.
        place: of partitioned tables; it has the dictionary, which may be replaced, and the files.
        mode: which steps are bulk.

    Attributes:
        collected_max: a result of no more tuples comes to the driver.
    """

    def __init__(
        self,
        resources: SparkResources,
        place: PartitionPlace,
        mode: BulkMode,
    ) -> None:
        self._resources = resources
        self._place = place
        self.is_forced = mode is BulkMode.ALWAYS
        self.collected_max = 0 if self.is_forced else COLLECTED_MAX_TUPLES

    @property
    def dictionary(self) -> Dictionary:
        """The codes of the driver."""
        return self._place.dictionary

    @property
    def root(self) -> str:
        """The directory of the files: that of partitioned tables, since results become such."""
        return self._place.root

    @cached_property
    def _functions(self) -> "SessionFunctions":
        return SessionFunctions(self._resources.session)

    def run(
        self,
        query: StepQuery,
        tables: Mapping[str, Table],
        results: Sequence[WritePartitions],
        seconds: float | None = None,
        semi_joins: Sequence[Mapping[Reference, SemiJoin]] = (),
    ) -> list[list[WrittenPartition]] | None:
        """Have the results of a query written in partitions.

        Args:
            query: of one step, or several.
            tables: what it reads.
            results: for each step what writes its tuples.
            seconds: after them its jobs are cancelled, and it fails.
            semi_joins: for each pipeline how some of the tables are read.

        Returns:
            What was written for each step; None if a row may lack a value.
        """
        title = ", ".join(writer.relation.name for writer in results)
        with self._views(query, tables, semi_joins):
            work = partial(self._compute, query, results)
            return run_jobs(self._resources.session, title, work, seconds)

    def marked_rows(
        self, query: StepQuery, tables: Mapping[str, Table], most: int, seconds: float | None
    ) -> pa.Table:
        """Return some of the rows of a step's query that may lack a value."""
        session = self._resources.session
        (text,) = query.texts

        def read() -> pa.Table:
            return all_rows(session.sql(text).where(MARK).drop(MARK).distinct().limit(most))

        with self._views(query, tables):
            return run_jobs(session, "read rows that lack a value", read, seconds)

    @contextmanager
    def _views(
        self,
        query: StepQuery,
        tables: Mapping[str, Table],
        semi_joins: Sequence[Mapping[Reference, SemiJoin]] = (),
    ) -> Iterator[None]:
        """Let the session have the tables that a query reads."""
        session = self._resources.session
        self._functions.register(query.trees)
        with ExitStack() as stack:
            for at, inputs in enumerate(query.inputs):
                joins = semi_joins[at] if semi_joins else {}
                for name, frame in self._frames(inputs, tables, joins).items():
                    frame.createOrReplaceTempView(name)
                    stack.callback(session.catalog.dropTempView, name)
            yield

    def _compute(
        self, query: StepQuery, results: Sequence[WritePartitions]
    ) -> list[list[WrittenPartition]] | None:
        session = self._resources.session
        for text in query.fault_texts:
            if has_rows(session.sql(text)):
                return None
        with ExitStack() as stack:
            if query.shared is not None:
                shared = session.sql(query.shared).persist()
                stack.callback(shared.unpersist)
                shared.createOrReplaceTempView(SHARED)
                stack.callback(session.catalog.dropTempView, SHARED)
            found = [
                write_partitions(session.sql(text), writer)
                for text, writer in zip(query.texts, results, strict=True)
            ]
        return None if any(each.marks for written in found for each in written) else found

    def _frames(
        self,
        inputs: Sequence[InputTable],
        tables: Mapping[str, Table],
        semi_joins: Mapping[Reference, SemiJoin],
    ) -> dict[str, "DataFrame"]:
        """Return the frames that a pipeline reads, by name."""
        whole = {
            each.source: self._frame(each, tables)
            for each in inputs
            if each.source not in semi_joins
        }
        return {
            each.name: whole[each.source]
            if each.source in whole
            else self._matching_frame(each, tables, semi_joins[each.source], whole)
            for each in inputs
        }

    def _matching_frame(
        self,
        input_: InputTable,
        tables: Mapping[str, Table],
        join: SemiJoin,
        whole: Mapping[Reference, "DataFrame"],
    ) -> "DataFrame":
        """Return the columns of a relation that a query reads, of the tuples that it needs."""
        contents = contents_in(tables[input_.source.relation], input_.source.state)
        assert contents is not None
        files, added, removed = contents.parts(input_.source.state)
        part = next(each for each in files.sets if each.lead == join.column)
        lead = whole[join.lead]
        keys = lead.select(lead[f"{Representation.VALUE}{join.key}"].alias(KEY))
        columns = [at for _, at in input_.columns]
        return probe_frame(files, part, columns, keys, (added, removed))

    def _frame(self, input_: InputTable, tables: Mapping[str, Table]) -> "DataFrame":
        """Return the columns of a relation that a query reads."""
        session, source = self._resources.session, input_.source
        columns = [at for _, at in input_.columns]
        table = tables[source.relation]
        if (contents := contents_in(table, source.state)) is not None:
            files, added, removed = contents.parts(source.state)
            return partition_frame(session, files, columns, added, removed)
        rows = read_table(table, source.state, self.dictionary).select(columns)
        made = tuples_to_spark(rows, [table.types[at] for at in columns])
        if columns:
            names = column_names(table.types)
            made = made.rename_columns([names[at] for at in columns])
        frame = arrow_frame(session, made)
        return frame.hint("broadcast") if made.nbytes <= BROADCAST_MAX_BYTES else frame


def read_table(table: Table, state: State, dictionary: Dictionary) -> pa.Table:
    """Return the tuples of a table that are on the driver."""
    names = [f"c{at}" for at in range(len(table.types))]
    return decode_table(table, state, names, dictionary)


# --- functions of our own ------------------------------------------------------------------------


class SessionFunctions:
    """The functions of our own that a session has; each is registered once."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._known: set[str] = set()

    def register(self, queries: Iterable[Node]) -> None:
        """Register the functions that queries call."""
        for name, function in udfs_in(queries).items():
            if name not in self._known:
                self._session.udf.register(name, _user_function(function))
                self._known.add(name)


def _user_function(function: Udf) -> Any:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    run, result = udf_code(function)

    # Spark wants a function whose parameters it can list.
    def apply(*columns: pa.Array) -> pa.Array:
        return run(*columns)

    return arrow_udf(apply, result)
