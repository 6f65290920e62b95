"""Bulk aggregations: groups of a relation, or of a join that is never made, by one query.

A `Derive` that is fused with the aggregations of its tuples (`fusion`) is deferred: its target
stays empty, and the first of the aggregations runs one query for all of them. If a row lacks a
value, the tuples are derived after all, and the local engine decides what is an error.
"""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import bool_values, fixed_values
from corollary.core.engine import BULK_MIN_TUPLES
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.plans import Aggregate, Derive, Plan, Total
from corollary.core.states import CHANGES, State
from corollary.core.types import NUMBER
from corollary.data_class import dataclass
from corollary.engines.local.bulk import fusion
from corollary.engines.local.bulk.columns import encode_array, encode_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.bulk.distinct_rows import has_distinct_rows
from corollary.engines.local.bulk.lookups import WIDE_RELATION, WideRows, join_by_lookup
from corollary.engines.local.bulk.queries import BulkQueries, QueryText, has_fault
from corollary.engines.local.evaluation.pipelines import RunContext, record_probes
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask, Words
from corollary.engines.local.storage.runs import sort_distinct
from corollary.sqlgen.compiled import MARK, ROWS, NotCompiled

_Key = tuple[tuple[int, ...], Pipeline | None]
"""The steps of a batch, and the rows of the body if they are not there."""


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A derivation that was deferred: its pipeline, and what has been joined by lookup."""

    pipeline: Pipeline
    wide: WideRows | None

    @property
    def rows(self) -> Pipeline:
        """What gives the rows."""
        return self.pipeline if self.wide is None else self.wide.pipeline


class _GroupQuery:
    """A query for groups: its text, and where in its result the summaries are."""

    __slots__ = ("places", "text")

    def __init__(self, text: QueryText, places: Sequence[tuple[int, int]]) -> None:
        self.text = text
        self.places = places


class BulkGroups:
    """Runs the aggregations of one plan on DuckDB where that is faster and exact.

    Args:
        queries: the tables.
        plan: the plan.
        held: the relations of the engine, whose lookups are recorded.
    """

    def __init__(self, queries: BulkQueries, plan: Plan, held: Collection[str]) -> None:
        self._queries = queries
        self._plan = plan
        self._types = plan.types
        self._held = held
        self._deferred: dict[str, _Deferred] = {}
        self._results: dict[int, Words] = {}
        self._compiled: dict[_Key, _GroupQuery | NotCompiled] = {}
        # Steps that have met a row without a value: they run here, from then on.
        self._faulty: set[int] = set()

    @cached_property
    def _fused(self) -> fusion.FusedSteps:
        """Which steps of the plan are computed together; small work does not ask for it."""
        return fusion.find_fused_steps(self._plan)

    def reset(self) -> None:
        """Forget what a run has deferred."""
        self._deferred.clear()
        self._results.clear()

    def keep(self, step: Derive) -> None:
        """Note that a derivation is run, and not deferred."""
        self._deferred.pop(step.target, None)

    # --- what is deferred ----------------------------------------------------------------------

    def defer(self, step: Derive) -> int | None:
        """Put a derivation off until its tuples are aggregated, if its aggregations are bulk.

        Returns the number of tuples that lead it; None if it has to be run now.
        """
        self._deferred.pop(step.target, None)
        if len(step.pipelines) != 1 or id(step) in self._faulty:
            return None
        (pipeline,) = step.pipelines
        if self._queries.reads_partitions(pipeline):
            return None
        lead = pipeline.first_source
        size = 0 if lead is None else self._queries.tables[lead.relation].size(lead.state)
        if lead is None or not size or not self._may_be_due(pipeline, lead, size):
            return None
        if self._fused.derivations.get(step.target) is not step:
            return None
        # Rows that are aggregated as they come need not be stored, which makes up for less.
        is_due = self._queries.is_forced or self._queries.has_many_rows(
            pipeline, lead, BULK_MIN_TUPLES
        )
        if not is_due:
            return None
        tables = self._queries.tables
        if not pipeline.is_bag and has_distinct_rows(pipeline, tables):
            pipeline = replace(pipeline, is_bag=True)
        wide = join_by_lookup(
            pipeline,
            tables,
            self._queries.encode_constant,
            1 if self._queries.is_forced else BULK_MIN_TUPLES,
        )
        self._deferred[step.target] = _Deferred(pipeline, wide)
        batches = {
            id(batch): batch
            for batch in self._fused.batches.values()
            if batch[0].body.relation == step.target
        }
        if any(isinstance(self._query(batch), NotCompiled) for batch in batches.values()):
            del self._deferred[step.target]
            return None
        return size

    def _may_be_due(self, pipeline: Pipeline, lead: Reference, size: int) -> bool:
        """Whether many rows may flow through a pipeline; a small change must not pay for it."""
        if self._queries.is_forced or size >= self._queries.min_tuples:
            return True
        tables = self._queries.tables
        return (
            lead.relation in self._held
            and lead.state is State.NEW
            and any(
                tables[each.relation].size(each.state) >= BULK_MIN_TUPLES
                for each in fusion.sources_of(pipeline)
            )
        )

    def pop_deferred(self, relation: str) -> Derive | None:
        """Return the derivation that was deferred for a relation; it has to be run now."""
        if self._deferred.pop(relation, None) is None:
            return None
        step = self._fused.derivations[relation]
        self._faulty.add(id(step))
        return step

    # --- queries -------------------------------------------------------------------------------

    def tuples(self, step: fusion.GroupStep, context: RunContext) -> Words | None:
        """Return the tuples of an aggregation, packed and sorted for its target; None if not bulk.

        Tuples of the step's `without` are among them.
        """
        if (known := self._results.pop(id(step), None)) is not None:
            return known
        if step.body.relation not in self._deferred and not self._is_due(step):
            return None
        batch = self._batch(step)
        query = self._query(batch) if batch else NotCompiled("its body is small")
        if isinstance(query, NotCompiled):
            return None
        found = self._run(step, query, context)
        if found is None:
            self._faulty |= {id(each) for each in batch}
            return None
        if found is _NO_GROUPS:
            for each in batch:
                self._results[id(each)] = self._queries.tables[each.target].layout.empty
            return self._results.pop(id(step))
        keys = encode_columns(found, query.text.compiled.outputs, self._queries.dictionary)
        for each, (first, count) in zip(batch, query.places, strict=True):
            columns = [found.column(f"m{at}") for at in range(first, first + count)]
            self._results[id(each)] = self._pack(each, keys, columns)
        return self._results.pop(id(step))

    def _is_due(self, step: fusion.GroupStep) -> bool:
        """Whether an aggregation of a relation is bulk."""
        if id(step) in self._faulty or (isinstance(step, Total) and step.is_weighted):
            return False
        body = self._queries.tables[step.body.relation]
        if body.is_partitioned and step.body.state not in CHANGES:
            return False
        size = body.size(step.body.state)
        return size >= (1 if self._queries.is_forced else BULK_MIN_TUPLES)

    def _batch(self, step: fusion.GroupStep) -> tuple[fusion.GroupStep, ...]:
        """Return the steps that are computed with one, from it on; none if it has no exact form."""
        batch = self._fused.batch_from(step)
        if step.body.relation in self._deferred:
            return batch
        due = tuple(each for each in batch if id(each) not in self._faulty)
        if isinstance(self._query(due), NotCompiled):
            due = tuple(each for each in due if not isinstance(self._query((each,)), NotCompiled))
        return due if due and due[0] is step else ()

    def _query(self, batch: Sequence[fusion.GroupStep]) -> _GroupQuery | NotCompiled:
        first = batch[0]
        deferred = self._deferred.get(first.body.relation)
        rows, types = None if deferred is None else deferred.rows, self._types
        if deferred is not None and deferred.wide is not None:
            types = {**types, WIDE_RELATION: deferred.wide.types}
        key = (tuple(map(id, batch)), rows)
        known = self._compiled.get(key)
        if known is None:
            from corollary.sqlgen.duckdb_dialect import DUCKDB
            from corollary.sqlgen.groups import GroupedRows, compile_groups

            found = compile_groups(
                GroupedRows(
                    fusion.scan(first, self._types) if rows is None else rows,
                    self._types[first.body.relation],
                    first.aggregation.groups,
                ),
                [fusion.summaries_of(each, types) for each in batch],
                types,
                DUCKDB,
                self._queries.encode_constant,
            )
            known = (
                found
                if isinstance(found, NotCompiled)
                else _GroupQuery(QueryText(found.compiled), found.summaries)
            )
            self._compiled[key] = known
        return known

    def _run(
        self, step: fusion.GroupStep, query: _GroupQuery, context: RunContext
    ) -> pa.RecordBatch | None:
        """Return the result of a query; None if a row lacks a value, or is not exact."""
        budget, deferred = context.budget, self._deferred.get(step.body.relation)

        def check() -> None:
            if deferred is None:
                budget.check_seconds()
            else:
                budget.count_rows(deferred.pipeline, 0)

        context.recorder.bulk()
        if deferred is not None:
            led = record_probes(deferred.pipeline, self._queries.tables, self._held, context)
            budget.count_rows(deferred.pipeline, led)
        text = query.text
        tables = self._queries.read_inputs(text, None if deferred is None else deferred.wide)
        if has_fault(text, tables, check):
            return None
        with closing(run_query(text.text, tables, check)) as batches:
            found = list(batches)
        if not found:
            return _NO_GROUPS
        (whole,) = (
            found if len(found) == 1 else pa.Table.from_batches(found).combine_chunks().to_batches()
        )
        if text.compiled.has_mark and bool_values(whole.column(MARK)).any():
            return None
        counts = fixed_values(whole.column(ROWS), np.int64)
        budget.count_step_rows(int(counts.sum()))
        return whole

    # --- results -------------------------------------------------------------------------------

    def _pack(
        self, step: fusion.GroupStep, keys: Sequence[Codes], columns: Sequence[pa.Array]
    ) -> Words:
        """Return the tuples of a step: the keys, and what was computed of the groups."""
        dictionary, target = self._queries.dictionary, self._queries.tables[step.target]
        is_kept: Mask | None = None
        if isinstance(step, Aggregate):
            types = target.types[len(keys) :]
            codes = [
                encode_array(column, type_, dictionary)
                for column, type_ in zip(columns, types, strict=True)
            ]
            if not step.aggregation.has_every_group:
                is_kept = codes[0] != 0
        else:
            totals = [fixed_values(each, np.int64) for each in columns]
            is_kept = np.any(np.stack(totals) != 0, axis=0)
            codes = [dictionary.encode(each, None, NUMBER) for each in totals]
        found = [*keys, *codes]
        if is_kept is not None and not is_kept.all():
            found = [column[is_kept] for column in found]
        return sort_distinct(target.pack(found, len(found[-1])))


_NO_GROUPS = pa.RecordBatch.from_arrays([], names=[])
