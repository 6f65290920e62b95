"""Bulk steps of a plan: pipelines and aggregations that DuckDB computes.

A step is bulk if it is led by many tuples, or if many rows flow through it, and if DuckDB computes
exactly what the local engine does (`engines/sql`). Where a row may lack a value, the pipeline runs
again on the local engine, whose judge decides.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import bool_values
from corollary.core.engine import BULK_MIN_FRAME_ROWS, BULK_MIN_TUPLES, BulkMode
from corollary.core.logic import Constant
from corollary.core.pipeline import Pipeline
from corollary.core.plans import Aggregate
from corollary.core.types import Type
from corollary.engines.local.bulk.columns import encode_columns, read_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.bulk.estimates import RowEstimates, computes_values
from corollary.engines.local.evaluation.derivation import HeadBatch, run_heads
from corollary.engines.local.evaluation.expressions import type_of
from corollary.engines.local.evaluation.pipelines import PipelineRunner, RunContext
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.sql.compiled import MARK, CompiledQuery, NotCompiled

ESTIMATE_MIN_TUPLES = 1 << 10
"""A pipeline led by fewer tuples is never estimated: small work must not pay for it."""

_Batch = tuple[list[Codes], int, bool]
"""A part of a result: columns of codes, the number of rows, whether one of them is marked."""

_Key = tuple[int, bool, frozenset[int]]
"""A pipeline or step, whether its last column is summed, after which stages rows are distinct."""


class _Query:
    """A compiled query with its texts, which are made once."""

    __slots__ = ("compiled", "fault_texts", "text")

    def __init__(self, compiled: CompiledQuery) -> None:
        from corollary.engines.sql.duckdb_dialect import DUCKDB

        self.compiled = compiled
        self.text = DUCKDB.text(compiled.query)
        self.fault_texts = [DUCKDB.text(each) for each in compiled.fault_queries]


class BulkSteps:
    """Runs steps of one plan on DuckDB where that is faster and exact.

    Attributes:
        min_tuples: a pipeline whose first probe gives fewer tuples is never bulk.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        types: Mapping[str, tuple[Type, ...]],
        dictionary: Dictionary,
        mode: BulkMode,
    ) -> None:
        self._tables = tables
        self._types = types
        self._dictionary = dictionary
        self._is_forced = mode is BulkMode.ALWAYS
        self.min_tuples = 1 if self._is_forced else ESTIMATE_MIN_TUPLES
        self._estimates = RowEstimates(tables)
        self._compiled: dict[_Key, _Query | NotCompiled] = {}
        # Pipelines and steps that have met a row without a value: they run here, from then on.
        self._faulty: set[int] = set()

    # --- pipelines -----------------------------------------------------------------------------

    def heads(
        self, runner: PipelineRunner, target: str, context: RunContext, *, sums_last: bool
    ) -> Generator[HeadBatch] | None:
        """Return the heads of a pipeline in batches, or None if it is not bulk.

        Args:
            runner: the pipeline on the local engine.
            target: the relation that the heads are for.
            context: the run.
            sums_last: whether the last column will be summed for tuples that agree in the others;
                then it may be summed here already.
        """
        pipeline = runner.pipeline
        if id(pipeline) in self._faulty or not self._is_due(runner):
            return None
        query = self._compile(pipeline, self._types[target], sums_last=sums_last)
        if isinstance(query, NotCompiled):
            return None
        return self._run(runner, query, context, is_bag=sums_last or pipeline.is_bag)

    def _is_due(self, runner: PipelineRunner) -> bool:
        """Whether enough rows flow through a pipeline, and are computed with."""
        pipeline, source = runner.pipeline, runner.first_source
        assert source is not None
        if self._is_forced:
            return True
        if not computes_values(pipeline):
            return False
        size = self._tables[source.relation].size(source.state)
        return size >= BULK_MIN_TUPLES or self._estimates.flow(pipeline).most >= BULK_MIN_FRAME_ROWS

    def _compile(
        self, pipeline: Pipeline, head: tuple[Type, ...], *, sums_last: bool
    ) -> _Query | NotCompiled:
        distinct = self._estimates.flow(pipeline).distinct_after
        key = (id(pipeline), sums_last, distinct)
        known = self._compiled.get(key)
        if known is None:
            from corollary.engines.sql.duckdb_dialect import DUCKDB
            from corollary.engines.sql.pipelines import compile_pipeline

            found = compile_pipeline(
                pipeline,
                self._types,
                head,
                DUCKDB,
                self._encode_constant,
                sums_last=sums_last,
                distinct_after=distinct,
            )
            known = self._compiled[key] = _prepare(found)
        return known

    def _encode_constant(self, constant: Constant) -> int:
        return self._dictionary.encode_value(constant.value, type_of(constant))

    def _run(
        self,
        runner: PipelineRunner,
        query: _Query,
        context: RunContext,
        *,
        is_bag: bool,
    ) -> Generator[HeadBatch]:
        pipeline, budget = runner.pipeline, context.budget

        def check() -> None:
            budget.count_rows(pipeline, 0)

        context.recorder.bulk()
        budget.count_rows(pipeline, runner.record_probes(context))
        tables = self._read_inputs(query)
        is_faulty = self._has_fault(query, tables, check)
        kept: list[HeadBatch] = []
        if not is_faulty:
            with closing(self._batches(query, tables, check)) as batches:
                for columns, count, is_marked in batches:
                    is_faulty |= is_marked
                    if is_faulty:
                        break
                    budget.count_rows(pipeline, count)
                    if is_bag:
                        kept.append((columns, count))
                    else:
                        yield columns, count
        if is_faulty:
            # Heads that came before are right, and in a set they may come again.
            self._faulty.add(id(pipeline))
            yield from run_heads(runner, context)
        else:
            yield from kept

    # --- aggregations --------------------------------------------------------------------------

    def aggregate(self, step: Aggregate, context: RunContext) -> Words | None:
        """Return the tuples of an aggregation, packed and sorted for its target; None if not bulk.

        Tuples of the step's `without` are among them.
        """
        size = self._tables[step.body.relation].size(step.body.state)
        if id(step) in self._faulty or size < (1 if self._is_forced else BULK_MIN_TUPLES):
            return None
        query = self._compile_aggregation(step)
        if isinstance(query, NotCompiled):
            return None
        context.recorder.bulk()
        tables = self._read_inputs(query)
        found: list[HeadBatch] = []
        check = context.budget.check_seconds
        with closing(self._batches(query, tables, check)) as batches:
            for columns, count, is_marked in batches:
                if is_marked:
                    self._faulty.add(id(step))
                    return None
                found.append((columns, count))
        target = self._tables[step.target]
        if not found:
            return target.layout.empty
        joined = [np.concatenate(each) for each in zip(*(each for each, _ in found), strict=True)]
        if step.aggregation.operator not in ("sum", "count"):
            has_value = joined[-1] != 0
            joined = [column[has_value] for column in joined]
        return sort_distinct(target.pack(joined, len(joined[-1])))

    def _compile_aggregation(self, step: Aggregate) -> _Query | NotCompiled:
        key = (id(step), False, frozenset[int]())
        known = self._compiled.get(key)
        if known is None:
            from corollary.engines.sql.aggregates import compile_aggregation
            from corollary.engines.sql.duckdb_dialect import DUCKDB

            result = self._types[step.target][-1]
            found = compile_aggregation(step.aggregation, step.body, self._types, result, DUCKDB)
            known = self._compiled[key] = _prepare(found)
        return known

    # --- queries -------------------------------------------------------------------------------

    def _read_inputs(self, query: _Query) -> dict[str, pa.Table]:
        return {
            each.name: read_columns(
                self._tables[each.source.relation],
                each.source.state,
                each.columns,
                self._dictionary,
            )
            for each in query.compiled.inputs
        }

    @staticmethod
    def _has_fault(
        query: _Query, tables: Mapping[str, pa.Table], check: Callable[[], None]
    ) -> bool:
        """Whether a value that would be looked up is missing in some row."""
        for text in query.fault_texts:
            with closing(run_query(text, tables, check)) as batches:
                if any(batch.num_rows for batch in batches):
                    return True
        return False

    def _batches(
        self, query: _Query, tables: Mapping[str, pa.Table], check: Callable[[], None]
    ) -> Generator[_Batch]:
        """Yield the batches of a result."""
        compiled = query.compiled
        with closing(run_query(query.text, tables, check)) as batches:
            for batch in batches:
                if compiled.has_mark and bool_values(batch.column(MARK)).any():
                    yield [], 0, True
                    return
                columns = encode_columns(batch, compiled.outputs, self._dictionary)
                yield columns, batch.num_rows, False


def _prepare(found: CompiledQuery | NotCompiled) -> _Query | NotCompiled:
    return found if isinstance(found, NotCompiled) else _Query(found)
