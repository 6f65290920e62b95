"""What all bulk queries need: the tables that they read, their texts, and the test for faults."""

from collections.abc import Callable, Mapping
from contextlib import closing

import pyarrow as pa

from corollary.core.engine import BULK_MIN_FRAME_ROWS, BULK_MIN_TUPLES, BulkMode
from corollary.core.logic import Constant, type_of
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.states import CHANGES
from corollary.engines.local.bulk.columns import arrow_table, read_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.bulk.estimates import RowEstimates
from corollary.engines.local.bulk.lookups import WIDE_RELATION, WideRows
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.sqlgen.compiled import CompiledQuery, InputTable

ESTIMATE_MIN_TUPLES = 1 << 10
"""A pipeline led by fewer tuples is never estimated: small work must not pay for it."""


BULK_MAX_READ_RATIO = 16
"""DuckDB may read this many tuples for each row that flows through a pipeline: it takes a few
nanoseconds to read one, some hundred to probe for one."""


class QueryText:
    """A compiled query with its texts, which are made once."""

    __slots__ = ("compiled", "fault_texts", "text")

    def __init__(self, compiled: CompiledQuery) -> None:
        from corollary.sqlgen.duckdb_dialect import DUCKDB

        self.compiled = compiled
        self.text = DUCKDB.text(compiled.query)
        self.fault_texts = [DUCKDB.text(each) for each in compiled.fault_queries]


class BulkQueries:
    """The tables of one plan, as queries read them.

    Attributes:
        is_forced: whether everything is bulk that has an exact form.
        min_tuples: a pipeline whose first probe gives fewer tuples is never bulk.
        estimates: of the rows that flow through pipelines.
    """

    def __init__(self, tables: Mapping[str, Table], dictionary: Dictionary, mode: BulkMode) -> None:
        self.tables = tables
        self.dictionary = dictionary
        self.is_forced = mode is BulkMode.ALWAYS
        self.min_tuples = 1 if self.is_forced else ESTIMATE_MIN_TUPLES
        self.estimates = RowEstimates(tables)

    def has_many_rows(
        self, pipeline: Pipeline, lead: Reference, enough: int = BULK_MIN_FRAME_ROWS
    ) -> bool:
        """Whether many tuples lead a pipeline, or about enough rows flow through it.

        A query reads all that is joined: few rows find what they join by probes.
        """
        size = self.tables[lead.relation].size(lead.state)
        joined = {stage.source for stage in pipeline.stages if isinstance(stage, Probe)} - {lead}
        read = sum(self.tables[each.relation].size(each.state) for each in joined)
        if size < self.min_tuples and read < enough:
            return False  # not worth an estimate
        flow = max(self.estimates.flow(pipeline).most, size)
        if size < BULK_MIN_TUPLES and flow < enough:
            return False
        return read <= BULK_MAX_READ_RATIO * flow

    def reads_partitions(self, pipeline: Pipeline) -> bool:
        """Whether a pipeline reads committed tuples that are outside of this process."""
        return any(
            self.tables[stage.source.relation].is_partitioned
            for stage in pipeline.stages
            if isinstance(stage, Probe | AntiProbe) and stage.source.state not in CHANGES
        )

    def encode_constant(self, constant: Constant) -> int:
        """Return the code of a constant."""
        return self.dictionary.encode_value(constant.value, type_of(constant))

    def read_inputs(self, query: QueryText, wide: WideRows | None = None) -> dict[str, pa.Table]:
        """Return the tables that a query reads; rows that have been joined are one of them."""
        return {each.name: self._read(each, wide) for each in query.compiled.inputs}

    def _read(self, input_: InputTable, wide: WideRows | None) -> pa.Table:
        source, columns = input_.source, input_.columns
        if wide is not None and source.relation == WIDE_RELATION:
            codes = dict(enumerate(wide.columns))
            return arrow_table(codes, wide.types, wide.count, columns, self.dictionary)
        table = self.tables[source.relation]
        return read_columns(table, source.state, columns, self.dictionary)


def has_fault(query: QueryText, tables: Mapping[str, pa.Table], check: Callable[[], None]) -> bool:
    """Whether a value that would be looked up is missing in some row."""
    for text in query.fault_texts:
        with closing(run_query(text, tables, check)) as batches:
            if any(batch.num_rows for batch in batches):
                return True
    return False
