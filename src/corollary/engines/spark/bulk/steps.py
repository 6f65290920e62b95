"""Steps of a plan that Spark SQL computes: they read much of what is in partitions.

Results are written by tasks, and stay in partitions; few tuples come to the driver. Where rows may
lack a value, the driver computes a few of them, whose judge decides; if it allows them, the driver
computes the step itself.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import pyarrow as pa

from corollary.core import plans
from corollary.core.engine import BULK_MIN_FRAME_ROWS, BULK_MIN_TUPLES
from corollary.core.logic import Variable
from corollary.core.pipeline import Pipeline, Probe, Reference, Stage, bound_columns, slot_names
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.bulk import fusion
from corollary.engines.local.bulk.distinct_rows import has_distinct_rows
from corollary.engines.local.bulk.estimates import RowEstimates
from corollary.engines.local.evaluation.derivation import Derivation
from corollary.engines.local.evaluation.pipelines import RunContext, record_probes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import encode_words
from corollary.engines.spark.bulk.queries import SparkQueries, read_table
from corollary.engines.spark.bulk.semi_joins import (
    SEMI_JOIN_RATIO,
    SemiJoin,
    find_semi_joins,
)
from corollary.engines.spark.bulk.spark_columns import from_spark
from corollary.engines.spark.bulk.step_queries import (
    StepQuery,
    derive_query,
    group_query,
    totals_query,
    window_query,
)
from corollary.engines.spark.bulk.writing import (
    KnownTuples,
    WritePartitions,
    WrittenPartition,
)
from corollary.engines.spark.exchange import split_bytes
from corollary.engines.spark.jobs import PartitionTask
from corollary.engines.spark.operations import AddNumber, PartitionAddress, from_bytes
from corollary.engines.spark.relation.contents import (
    TupleSet,
    contents_in,
    contents_of,
    working_relation,
)
from corollary.engines.spark.relation.files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    append_changes,
)
from corollary.engines.spark.relation.handle import RemoteTuples
from corollary.engines.spark.relation.partitioning import Partitioning
from corollary.sqlgen.compiled import NotCompiled

MARKED = "•marked"
"""The relation of what leads to rows that may lack a value."""

MARKED_MAX = 1 << 10
"""So many of them come to the driver, where one is an error mostly."""

READ_DIVISOR = 4
"""A relation that lacks an order is read as a whole if a step needs so large a part of it."""


class SparkSteps:
    """Runs steps of one plan by Spark SQL, where they read much of what is in partitions.

    Args:
        queries: runs them.
        plan: the plan.
        tables: the relations that it names.
        held: those of the engine, whose lookups are recorded.
    """

    def __init__(
        self,
        queries: SparkQueries,
        plan: plans.Plan,
        tables: Mapping[str, Table],
        held: Collection[str],
    ) -> None:
        self._queries = queries
        self._plan = plan
        self._types = plan.types
        self._tables = tables
        self._held = held
        self._estimates = RowEstimates(tables)
        self._deferred: dict[str, tuple[plans.Derive, Pipeline]] = {}
        self._results: dict[int, TupleSet] = {}
        """What was computed with another aggregation of the same rows."""
        # Steps that have met a row without a value: the driver runs them, from then on.
        self._faulty: set[int] = set()

    @cached_property
    def _fused(self) -> fusion.FusedSteps:
        return fusion.find_fused_steps(self._plan)

    @cached_property
    def _successors(self) -> dict[str, str]:
        """For relations whose tuples another one takes over, that one."""
        found: dict[str, str] = {}
        for step in plans.steps_of(self._plan):
            match step:
                case plans.Extend(target=target, source=source):
                    found[source] = target
                case plans.StoreRelation(relation=relation, source=source):
                    found[source] = relation
                case _:
                    pass
        return found

    def reset(self) -> None:
        """End a run: forget what was deferred."""
        self._deferred.clear()
        self._results.clear()

    # --- derivations ---------------------------------------------------------------------------

    def derive(self, step: plans.Derive, context: RunContext) -> tuple[TupleSet, int] | None:
        """Return the tuples of a step and the leads' size, None if the driver has to compute it.

        The tuples of a step that are only aggregated are not made: the aggregation has one query.
        """
        self._deferred.pop(step.target, None)
        if not self.is_due(step):
            return None
        pipelines = [each for each in step.pipelines if self._lead_size(each)]
        led = sum(map(self._lead_size, pipelines))
        if self._is_groupable(step) or self._has_window(step):
            (pipeline,) = step.pipelines
            if not pipeline.is_bag and has_distinct_rows(pipeline, self._tables):
                pipeline = replace(pipeline, is_bag=True)
            self._deferred[step.target] = step, pipeline
            return self._tables[step.target].layout.empty, led
        if step.reduce is not None and len(self._types[step.target]) == 1:
            return None  # the only column is the one that is reduced
        distinct = {
            at: self._estimates.flow(each).distinct_after for at, each in enumerate(step.pipelines)
        }
        query = derive_query(step, self._types, distinct)
        if isinstance(query, NotCompiled):
            return None
        for each in pipelines:
            rows = record_probes(each, self._tables, self._held, context)
            context.budget.count_rows(each, rows)
        results = [_Result(step.target, step.reduce, step.without)]
        found = self._run(query, results, context, step.pipelines)
        if found is None:
            self._judge_marked(step, context)
            self._faulty.add(id(step))
            return None
        return found[0], led

    def is_due(self, step: plans.Derive) -> bool:
        """Whether a step reads partitions, and much of them, and has not met missing values."""
        if id(step) in self._faulty or not self._types[step.target]:
            return False
        return any(map(self._is_due, step.pipelines))

    def _lead_size(self, pipeline: Pipeline) -> int:
        """Return how many tuples lead a pipeline; one without columns says whether it runs."""
        size = 1
        for each in pipeline.stages:
            if isinstance(each, Probe):
                size = self._tables[each.source.relation].size(each.source.state)
                if each.slots or not size:
                    break
        return size

    def _is_due(self, pipeline: Pipeline) -> bool:
        """Whether a pipeline reads partitions, and much of them."""
        if not any(self._is_remote(each) for each in fusion.sources_of(pipeline)):
            return False
        size = self._lead_size(pipeline)
        if self._queries.is_forced or not 0 < size < BULK_MIN_TUPLES:
            return size > 0
        rows = self._estimates.flow(pipeline).most
        return rows >= min(BULK_MIN_FRAME_ROWS, self._least_unarranged(pipeline) // READ_DIVISOR)

    def _least_unarranged(self, pipeline: Pipeline) -> int:
        """Return the size of the smallest large relation with no set for a probe by few columns.

        To look its tuples up, all of them would have to be arranged first.
        """
        found = [BULK_MIN_FRAME_ROWS * READ_DIVISOR]
        for stage in pipeline.stages:
            if isinstance(stage, Probe) and stage.bound and self._is_large(stage.source):
                contents = contents_in(self._tables[stage.source.relation], stage.source.state)
                assert contents is not None
                files = contents.files_of(stage.source.state)
                if not any(each.lead in stage.bound for each in files.sets):
                    found.append(files.size)
        return min(found)

    def _is_remote(self, reference: Reference) -> bool:
        return self._tables[reference.relation].is_remote(reference.state)

    # --- aggregations --------------------------------------------------------------------------

    def _is_groupable(self, step: plans.Derive) -> bool:
        """Whether all aggregations that a derivation is fused with have a query of their own."""
        if self._fused.derivations.get(step.target) is not step:
            return False
        (pipeline,) = step.pipelines
        return not any(
            isinstance(group_query([each], pipeline, self._types), NotCompiled)
            or id(each) in self._faulty
            or not self._types[each.target]
            for each in self._fused.readers_of(step.target)
        )

    def pop_deferred(self, relation: str) -> plans.Derive | None:
        """Return the derivation that was deferred for a relation; the driver has to run it now."""
        if (deferred := self._deferred.pop(relation, None)) is None:
            return None
        step, _ = deferred
        self._faulty.add(id(step))
        return step

    def group(self, step: fusion.GroupStep, context: RunContext) -> TupleSet | None:
        """Return the tuples of an aggregation, None if the driver has to compute them.

        Those of others that aggregate the same rows are computed with it.
        """
        if (known := self._results.pop(id(step), None)) is not None:
            return known
        rows = self._rows_of(step)
        if id(step) in self._faulty or (rows is None and not self._is_group_due(step)):
            return None
        steps = self._batch(step, rows)
        found = self._run_readers(steps, group_query(steps, rows, self._types), context)
        if found is None:
            return None
        self._results |= dict(zip(map(id, steps), found, strict=True))
        return self._results.pop(id(step))

    def _rows_of(self, step: fusion.GroupStep | plans.Window) -> Pipeline | None:
        """Return the pipeline that was deferred and gives the rows of a step's body."""
        deferred = self._deferred.get(step.body.relation)
        return None if deferred is None else deferred[1]

    def _batch(self, step: fusion.GroupStep, rows: Pipeline | None) -> list[fusion.GroupStep]:
        """Return the aggregations that are computed with one, from it on."""
        found = [step]
        for each in self._fused.batch_from(step)[1:] if not _without(step) else ():
            # What it leaves out may change before its turn.
            is_free = not _without(each) and self._types[each.target]
            if is_free and id(each) not in self._faulty:
                more = [*found, each]
                if not isinstance(group_query(more, rows, self._types), NotCompiled):
                    found = more
        return found

    def read_totals(self, step: plans.ReadTotals, context: RunContext) -> TupleSet | None:
        """Return the groups and values that totals say, None if the driver has to read them."""
        if not self._is_large(step.totals):
            return None
        found = self._run(totals_query(step, self._types), [_Result(step.target)], context)
        return None if found is None else found[0]

    def _is_group_due(self, step: fusion.GroupStep) -> bool:
        if (isinstance(step, plans.Total) and step.is_weighted) or not self._types[step.target]:
            return False
        return self._is_large(step.body)

    def _is_large(self, reference: Reference) -> bool:
        """Whether a relation is in partitions, and too large to be read here."""
        size = self._tables[reference.relation].size(reference.state)
        least = 1 if self._queries.is_forced else BULK_MIN_TUPLES
        return self._is_remote(reference) and size >= least

    # --- windows -------------------------------------------------------------------------------

    def _has_window(self, step: plans.Derive) -> bool:
        """Whether the window functions that a derivation is fused with have a query."""
        derive, window = self._fused.windows.get(step.target, (None, None))
        if derive is not step or window is None or id(window) in self._faulty:
            return False
        return not isinstance(window_query(window, step.pipelines[0], self._types), NotCompiled)

    def window(self, step: plans.Window, context: RunContext) -> TupleSet | None:
        """Return rows with their window functions, None if the driver has to compute them."""
        rows = self._rows_of(step)
        if id(step) in self._faulty or (rows is None and not self._is_large(step.body)):
            return None
        found = self._run_readers([step], window_query(step, rows, self._types), context)
        return None if found is None else found[0]

    def _run_readers(
        self,
        steps: Sequence[fusion.GroupStep | plans.Window],
        query: StepQuery | NotCompiled,
        context: RunContext,
    ) -> list[TupleSet] | None:
        """Return the tuples of steps with one body; None if the driver has to compute them."""
        if isinstance(query, NotCompiled):
            return None
        rows = self._rows_of(steps[0])
        results = [_Result(each.target, None, _without(each)) for each in steps]
        found = self._run(query, results, context, () if rows is None else (rows,))
        if found is None:
            if rows is not None:
                self._judge_marked(self._deferred[steps[0].body.relation][0], context)
            self._faulty |= set(map(id, steps))
        return found

    # --- missing values ------------------------------------------------------------------------

    def _judge_marked(self, step: plans.Derive, context: RunContext) -> None:
        """Let the judge decide about a few of the rows of a step that may lack a value.

        If none of them is an error, the driver has to compute the step.

        Raises:
            EvaluationError: one is an error.
        """
        for pipeline in step.pipelines:
            lead = _marked_lead(pipeline, self._types)
            if pipeline.is_lenient or lead is None:
                continue
            variables = tuple(each for each, _ in lead)
            types = {**self._types, MARKED: tuple(type_ for _, type_ in lead)}
            heads = replace(pipeline, head=variables, is_bag=False)
            query = derive_query(plans.Derive(MARKED, (heads,)), types, {})
            if isinstance(query, NotCompiled):
                continue
            seconds = context.budget.seconds_left
            rows = self._queries.marked_rows(query, self._tables, MARKED_MAX, seconds)
            table = Table(types[MARKED])
            columns = map(from_spark, rows.columns, table.types)
            table.assign(self._packed(table, pa.table(list(columns), rows.column_names)))
            narrowed = replace(step, pipelines=(_led_by_marked(pipeline, variables),))
            tables = {**self._tables, MARKED: table}
            Derivation(narrowed, tables, self._queries.dictionary, self._held).run(context)

    # --- results -------------------------------------------------------------------------------

    def _run(
        self,
        query: StepQuery,
        results: Sequence["_Result"],
        context: RunContext,
        pipelines: Sequence[Pipeline] = (),
    ) -> list[TupleSet] | None:
        """Return the tuples of each step of a query; None if a row may lack a value.

        Args:
            query: the query.
            results: what each step makes of its rows.
            context: that of the run.
            pipelines: those that give its rows, if it has some.
        """
        budget = context.budget
        budget.check_seconds()
        context.recorder.bulk()
        try:
            made = [self._writer(each) for each in results]
            joins = list(map(self._semi_joins, pipelines))
            written = self._queries.run(query, self._tables, made, budget.seconds_left, joins)
        except Exception:
            budget.check_seconds()  # it may have been cancelled for that
            raise
        budget.check_seconds()
        if written is None:
            return None
        return [self._tuples(writer, each) for writer, each in zip(made, written, strict=True)]

    def _semi_joins(self, pipeline: Pipeline) -> dict[Reference, SemiJoin]:
        """Return how a pipeline reads relations that are much larger than the one that leads."""
        values = SEMI_JOIN_RATIO * self._lead_size(pipeline)
        found = {}
        for source, joins in find_semi_joins(pipeline).items():
            is_good = partial(self._is_selective, source, values)
            if (join := next(filter(is_good, joins), None)) is not None:
                found[source] = join
        return found

    def _is_selective(self, source: Reference, values: int, join: SemiJoin) -> bool:
        """Whether the column of a semi-join has enough values, and partitions, or gets them."""
        contents = contents_in(self._tables[source.relation], source.state)
        if contents is None:
            return False
        if contents.files_of(source.state).least_distinct(join.column) < values:
            return False
        if source.relation in self._held and contents.staged is None:
            contents.table.arrangement(contents.table.order_for((join.column,)))
        sets = contents.files_of(source.state).sets
        return any(each.lead == join.column and each.heavy is None for each in sets)

    def _writer(self, result: "_Result") -> WritePartitions:
        types, partitioning = self._types[result.target], self._partitioning(result)
        known = tuple(self._known(each, types, partitioning) for each in result.without)
        return WritePartitions(
            self._queries.root,
            working_relation(result.target, types),
            partitioning,
            result.reduce,
            known,
            self._queries.collected_max // partitioning.count,
        )

    def _tuples(self, writer: WritePartitions, written: list[WrittenPartition]) -> TupleSet:
        """Return what was written: as words, if it is little."""
        relation = writer.relation
        if all(each.rows is not None or not each.stored.files for each in written):
            return self._collected(self._tables[relation.name], written)
        partitions = [StoredPartition()] * writer.partitioning.count
        for each in written:
            partitions[each.number] = each.stored
        return self._remote_tuples(relation, writer.partitioning, partitions)

    def _remote_tuples(
        self, relation: Relation, partitioning: Partitioning, partitions: Iterable[StoredPartition]
    ) -> RemoteTuples:
        orders = (tuple(range(len(relation.types))),)
        part = PartitionSet(orders, tuple(partitions), partitioning.heavy)
        return RemoteTuples(PartitionedFiles(self._queries.root, relation, (part,)))

    def _collected(self, target: Table, written: list[WrittenPartition]) -> Words:
        """Return few tuples as words of a table."""
        tables = [from_bytes(each.rows) for each in written if each.rows is not None]
        if not tables:
            return target.layout.empty
        return self._packed(target, pa.concat_tables(tables))

    def _packed(self, target: Table, rows: pa.Table) -> Words:
        return sort_distinct(encode_words(rows, target, self._queries.dictionary))

    def _known(
        self, reference: Reference, types: tuple[Type, ...], partitioning: Partitioning
    ) -> KnownTuples:
        """Return the tuples of a relation that a result leaves out."""
        table = self._tables[reference.relation]
        relation = working_relation(reference.relation, types)
        if (contents := contents_in(table, reference.state)) is not None:
            files, added, removed = contents.parts(reference.state)
            changes = (split_bytes(each, relation, partitioning) for each in (added, removed))
            return KnownTuples(files, *changes)
        rows = read_table(table, reference.state, self._queries.dictionary)
        return KnownTuples(None, split_bytes(rows, relation, partitioning), {})

    def _partitioning(self, result: "_Result") -> Partitioning:
        """Return how a result is partitioned: as what it is compared with, or will be part of."""
        related = [each.relation for each in result.without]
        name: str | None = result.target
        while name is not None and name not in related:
            related.append(name)
            name = self._successors.get(name)
        found = [placed for each in related if (placed := self._partitioning_of(each))]
        if not found:
            every = [placed for each in self._tables if (placed := self._partitioning_of(each))]
            return Partitioning(0, max(each.count for each in every))
        # Rows that become one differ in their last column, and have to meet.
        last = len(self._types[result.target]) - 1
        if result.reduce is not None and last in found[0].columns:
            return Partitioning(0, found[0].count)
        return found[0]

    def _partitioning_of(self, name: str) -> Partitioning | None:
        contents = contents_in(self._tables[name], State.NEW)
        return None if contents is None else contents.files_of(State.NEW).sets[0].partitioning

    # --- rounds --------------------------------------------------------------------------------

    def extend_with_round(self, target: str, source: str, number: int) -> bool:
        """Extend a table by the tuples of another, with a number as last column, if they are many.

        Returns whether it has been done.
        """
        if not self._is_remote(Reference(source)):
            return False
        contents, given = contents_of(self._tables[target]), contents_of(self._tables[source])
        assert contents is not None
        assert given is not None
        files = given.new_files()
        part, relation = files.sets[0], working_relation(target, self._types[target])
        partitioning = self._partitioning(_Result(target))
        add = AddNumber(number, relation, partitioning)
        tasks: list[PartitionTask] = [
            (PartitionAddress.of(files, part, at), add)
            for at, stored in enumerate(part.partitions)
            if stored.files
        ]
        partitions = [StoredPartition()] * partitioning.count
        for made in contents.place.jobs.run(tasks, f"number {source}"):
            for at, stored in made.items():
                partitions[at] = append_changes(partitions[at], stored)
        contents.extend(self._remote_tuples(relation, partitioning, partitions))
        return True


@dataclass(frozen=True, slots=True)
class _Result:
    """What a step makes of the rows of a query: its target, how they are reduced, what is known."""

    target: str
    reduce: plans.Reduce | None = None
    without: tuple[Reference, ...] = ()


def _marked_lead(
    pipeline: Pipeline, types: Mapping[str, tuple[Type, ...]]
) -> tuple[tuple[Variable, Type], ...] | None:
    """Return the variables of the relation that leads a pipeline; None if none does."""
    lead = pipeline.stages[0] if pipeline.stages else None
    if not isinstance(lead, Probe) or lead not in pipeline.judge:
        return None
    slots = zip(lead.slots, types[lead.source.relation], strict=True)
    found = {each: type_ for each, type_ in slots if isinstance(each, Variable)}
    return tuple(found.items()) or None


def _led_by_marked(pipeline: Pipeline, variables: tuple[Variable, ...]) -> Pipeline:
    """Return a pipeline, and its judge, that is led by rows of `MARKED` instead of a relation."""
    lead, *rest = pipeline.stages
    marked = Probe(Reference(MARKED), variables, ())
    judge: list[Stage] = [marked]
    bound = {each.name for each in variables}
    for stage in pipeline.judge:
        if isinstance(stage, Probe):
            if stage == lead:
                continue
            stage = replace(stage, bound=bound_columns(stage.slots, bound))
            bound |= slot_names(stage.slots)
        judge.append(stage)
    return replace(pipeline, stages=(marked, *rest), judge=tuple(judge))


def _without(step: fusion.GroupStep | plans.Window) -> tuple[Reference, ...]:
    return () if isinstance(step, plans.Total) else step.without
