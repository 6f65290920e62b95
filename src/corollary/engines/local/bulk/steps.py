"""Bulk steps of a plan: pipelines that DuckDB computes.

A step is bulk if it is led by many tuples, or if many rows flow through it, and if DuckDB computes
exactly what the local engine does (`sqlgen`). Where a row may lack a value, the pipeline runs
again on the local engine, whose judge decides.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing

import pyarrow as pa

from corollary.core.arrow_buffers import bool_values
from corollary.core.pipeline import Pipeline
from corollary.core.types import Type
from corollary.engines.local.bulk.columns import encode_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.bulk.estimates import computes_values
from corollary.engines.local.bulk.queries import BulkQueries, QueryText, has_fault
from corollary.engines.local.evaluation.derivation import HeadBatch, run_heads
from corollary.engines.local.evaluation.pipelines import PipelineRunner, RunContext
from corollary.engines.local.storage.code_range import Codes
from corollary.sqlgen.compiled import MARK, CompiledQuery, NotCompiled

_Batch = tuple[list[Codes], int, bool]
"""A part of a result: columns of codes, the number of rows, whether one of them is marked."""

_Key = tuple[int, bool, frozenset[int]]
"""A pipeline, whether its last column is summed, after which stages rows are distinct."""


class BulkSteps:
    """Runs pipelines of one plan on DuckDB where that is faster and exact.

    Attributes:
        min_tuples: a pipeline whose first probe gives fewer tuples is never bulk.
    """

    def __init__(self, queries: BulkQueries, types: Mapping[str, tuple[Type, ...]]) -> None:
        self._types = types
        self._dictionary = queries.dictionary
        self.min_tuples = queries.min_tuples
        self._queries = queries
        self._estimates = queries.estimates
        self._compiled: dict[_Key, QueryText | NotCompiled] = {}
        # Pipelines that have met a row without a value: they run here, from then on.
        self._faulty: set[int] = set()

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
        if self._queries.reads_partitions(pipeline):
            return False
        if self._queries.is_forced:
            return True
        return computes_values(pipeline) and self._queries.has_many_rows(pipeline, source)

    def _compile(
        self, pipeline: Pipeline, head: tuple[Type, ...], *, sums_last: bool
    ) -> QueryText | NotCompiled:
        distinct = self._estimates.flow(pipeline).distinct_after
        key = (id(pipeline), sums_last, distinct)
        known = self._compiled.get(key)
        if known is None:
            from corollary.sqlgen.duckdb_dialect import DUCKDB
            from corollary.sqlgen.pipelines import compile_pipeline

            found = compile_pipeline(
                pipeline,
                self._types,
                head,
                DUCKDB,
                self._queries.encode_constant,
                sums_last=sums_last,
                distinct_after=distinct,
            )
            known = self._compiled[key] = _prepare(found)
        return known

    def _run(
        self, runner: PipelineRunner, query: QueryText, context: RunContext, *, is_bag: bool
    ) -> Generator[HeadBatch]:
        pipeline, budget = runner.pipeline, context.budget

        def check() -> None:
            budget.count_rows(pipeline, 0)

        context.recorder.bulk()
        budget.count_rows(pipeline, runner.record_probes(context))
        tables = self._queries.read_inputs(query)
        is_faulty = has_fault(query, tables, check)
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

    def _batches(
        self, query: QueryText, tables: Mapping[str, pa.Table], check: Callable[[], None]
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


def _prepare(found: CompiledQuery | NotCompiled) -> QueryText | NotCompiled:
    return found if isinstance(found, NotCompiled) else QueryText(found)
