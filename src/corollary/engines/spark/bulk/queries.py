"""Runs queries of Spark SQL over the relations of an engine, and has tasks write their results."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.core.engine import BulkMode
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.bulk.functions import SessionFunctions
from corollary.engines.spark.bulk.reading import partition_frame
from corollary.engines.spark.bulk.spark_columns import column_names, tuples_to_spark
from corollary.engines.spark.bulk.step_queries import StepQuery
from corollary.engines.spark.bulk.writing import (
    WritePartitions,
    WrittenPartition,
    write_partitions,
)
from corollary.engines.spark.partitioned.remote_table import RemoteTable
from corollary.engines.spark.partitioned.table import PartitionPlace
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.session import describe_jobs
from corollary.engines.sql.compiled import InputTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLLECTED_MAX_TUPLES = 1 << 17
"""A result of no more tuples comes to the driver."""


class SparkQueries:
    """Runs queries.

    Args:
        resources: the session, and the directory of files.
        place: of partitioned tables; it has the dictionary, which may be replaced.
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
        """The directory of the files."""
        return str(self._resources.root)

    @cached_property
    def _functions(self) -> SessionFunctions:
        return SessionFunctions(self._resources.session)

    def run(
        self, query: StepQuery, tables: Mapping[str, Table], writer: WritePartitions, count: int
    ) -> list[WrittenPartition] | None:
        """Have the result of a query written in partitions; None if a row may lack a value."""
        session = self._resources.session
        self._functions.register(query.trees)
        for each in query.inputs:
            self._frame(each, tables).createOrReplaceTempView(each.name)
        try:
            with describe_jobs(session, f"corollary: {writer.relation.name}"):
                for text in query.fault_texts:
                    if session.sql(text).limit(1).collect():
                        return None
                written = write_partitions(session.sql(query.text), writer, count)
        finally:
            for each in query.inputs:
                session.catalog.dropTempView(each.name)
        return None if any(each.marks for each in written) else written

    def _frame(self, input_: InputTable, tables: Mapping[str, Table]) -> "DataFrame":
        """Return the columns of a relation that a query reads."""
        session, source = self._resources.session, input_.source
        columns = [at for _, at in input_.columns]
        table = tables[source.relation]
        if isinstance(table, RemoteTable) and table.is_remote(source.state):
            files, added, removed = table.parts(source.state)
            return partition_frame(session, files, columns, added, removed)
        rows = read_table(table, source.state, self.dictionary).select(columns)
        made = tuples_to_spark(rows, [table.types[at] for at in columns])
        if columns:
            names = column_names(table.types)
            made = made.rename_columns([names[at] for at in columns])
        return session.createDataFrame(made)


def read_table(table: Table, state: State, dictionary: Dictionary) -> pa.Table:
    """Return the tuples of a table that are on the driver."""
    names = [f"c{at}" for at in range(len(table.types))]
    return decode_table(table, state, names, dictionary)


def working_relation(name: str, types: tuple[Type, ...]) -> Relation:
    """Return the relation of tuples that a step makes."""
    columns = tuple(f"c{at}" for at in range(len(types)))
    return Relation(name, columns, types, False, is_declared=False)
