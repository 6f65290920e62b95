"""Prepared plans: the working tables and prepared steps of a plan, created once for many runs.

Kernels are imported with the first step that needs them, so that a goal starts quickly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Protocol, assert_never

import pyarrow as pa

from corollary.analysis.joint_probes import UpcomingPipeline, upcoming_pipelines, waiting_steps
from corollary.core import plans
from corollary.core.engine import BulkMode, Limits
from corollary.core.pipeline import Reference
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.types import NUMBER, Type
from corollary.engines.budget import Budget
from corollary.engines.local.bulk.groups import BulkGroups
from corollary.engines.local.bulk.queries import BulkQueries
from corollary.engines.local.bulk.steps import BulkSteps
from corollary.engines.local.evaluation import row_stages
from corollary.engines.local.evaluation.arithmetic_loops import (
    ArithmeticRounds,
    find_arithmetic_loop,
)
from corollary.engines.local.evaluation.breadth_first import BreadthFirstSearch
from corollary.engines.local.evaluation.derivation import Derivation
from corollary.engines.local.evaluation.linear_loops import find_linear_loop
from corollary.engines.local.evaluation.pipelines import (
    PipelineRunner,
    RunContext,
    copied_reference,
)
from corollary.engines.local.evaluation.prefetch import UPCOMING_MAX_PIPELINES, Prefetch
from corollary.engines.local.storage.code_range import GROWTH_BITS, range_of_code
from corollary.engines.local.storage.layout import LayoutFamily, Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import PendingProbe
from corollary.engines.local.storage.sorting import sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_table
from corollary.engines.local.values.codes import Dictionary

SPARE_TABLES_MAX = 64
"""The maximum number of sets of local tables that are kept for a procedure's next invocations."""


class RemoteSteps(Protocol):
    """Runs steps outside this process; it returns None where this process has to."""

    def is_due(self, step: plans.Derive) -> bool:
        """Whether a step should be run there: then nothing is fetched for it."""

    def derive(self, step: plans.Derive, context: RunContext) -> tuple[Any, int] | None:
        """Return the tuples of a step, and the leads' size; it may defer what is aggregated."""

    def group(self, step: plans.Aggregate | plans.Total, context: RunContext) -> Any:
        """Return the tuples of an aggregation."""

    def window(self, step: plans.Window, context: RunContext) -> Any:
        """Return rows with their window functions."""

    def read_totals(self, step: plans.ReadTotals, context: RunContext) -> Any:
        """Return the groups and values that totals say."""

    def pop_deferred(self, relation: str) -> plans.Derive | None:
        """Return the derivation that was deferred for a relation; it has to be run now."""

    def extend_with_round(self, target: str, source: str, number: int) -> bool:
        """Extend a table by the tuples of another, with a number as last column."""

    def reset(self) -> None:
        """End a run."""


class PlanHooks(NamedTuple):
    """What an engine does for a plan.

    Attributes:
        place: runs a procedure outside this process; returns whether it was run.
        new_table: makes the table of a working relation.
        remote_steps: returns what runs single steps outside this process.
    """

    place: "Callable[[PreparedPlan, plans.PlacedCall], bool]"
    new_table: Callable[[str, tuple[Type, ...], LayoutFamily | None, plans.Plan], Table]
    remote_steps: Callable[[plans.Plan, Mapping[str, Table]], RemoteSteps | None]


class PreparedPlan:
    """A plan, the tables it runs on, and its prepared steps.

    Attributes:
        tables: the relations that the plan names, the engine's and the working ones. The name of a
            local stands for the table of the innermost invocation, so prepared steps look up
            tables here at every run and never keep them.
        relations: those of the engine.
        written: those of the engine that the plan writes.
        budget, recorder: of the current run.
    """

    def __init__(
        self,
        plan: plans.Plan,
        engine_tables: Mapping[str, Table],
        relations: Mapping[str, Relation],
        dictionary: Dictionary,
        hooks: PlanHooks,
        *,
        bulk: BulkMode = BulkMode.AUTO,
    ) -> None:
        self.plan = plan
        self._hooks = hooks
        self.dictionary = dictionary
        self.relations = relations
        self._held = engine_tables
        self.written = engine_tables.keys() & set(plans.relations_written(plan))
        self._working = [name for name in plan.types if name not in engine_tables]
        self.tables = {
            name: engine_tables[name]
            if name in engine_tables
            else hooks.new_table(name, types, None, plan)
            for name, types in plan.types.items()
        }
        for step in plans.steps_of(plan):
            for one, other in _exchanges(step, plan):
                self.tables[one].share_layout(self.tables[other])
        for name in plan.orders:
            self._arrange(name, self.tables[name])
        self._movable = [name for name, each in self.tables.items() if each.remote is not None]
        self._is_bulk_forced = bulk is BulkMode.ALWAYS
        self._elsewhere: RemoteSteps | None = None
        self._bulk: BulkSteps | None = None
        self._groups: BulkGroups | None = None
        if bulk is not BulkMode.NEVER:
            self._elsewhere = hooks.remote_steps(plan, self.tables)
            queries = BulkQueries(self.tables, dictionary, bulk)
            self._bulk = BulkSteps(queries, plan.types)
            self._groups = BulkGroups(queries, plan, self._held.keys())
        self._derivations: dict[int, Derivation] = {}
        self._upcoming: dict[int, tuple[UpcomingPipeline, ...]] | None = None
        self._searches: dict[int, BreadthFirstSearch | ArithmeticRounds | None] = {}
        self._spare: dict[str, list[tuple[Table, ...]]] = {}

    def begin_run(self, recorder: Recorder, limits: Limits) -> None:
        """Begin a run."""
        self.recorder = recorder
        self.budget = Budget(limits, self._all_tables, self.dictionary)
        is_remote = any(self.tables[name].is_partitioned for name in self._movable)
        few = -1 if self._movable or self._is_bulk_forced else row_stages.FEW_TUPLES
        self._context = RunContext(self.budget, recorder, few, is_remote=is_remote)

    def _all_tables(self) -> Iterator[Table]:
        yield from self._held.values()
        yield from (self.tables[name] for name in self._working)

    def end_run(self) -> None:
        """End a run: release what it has derived."""
        for name in self._working:
            self.tables[name].clear()
        for search in self._searches.values():
            if search is not None:
                search.reset()
        if self._groups is not None:
            self._groups.reset()
        if self._elsewhere is not None:
            self._elsewhere.reset()

    def _arrange(self, name: str, table: Table) -> None:
        for order in self.plan.orders.get(name, ()):
            table.want(order)

    # --- requests ------------------------------------------------------------------------------

    @property
    def waiting_steps(self) -> tuple[frozenset[int], ...] | None:
        """For each step of the main procedure those that wait for it; None if all is here."""
        return self._waiting if self._context.is_remote else None

    @cached_property
    def _waiting(self) -> tuple[frozenset[int], ...]:
        return waiting_steps(self.plan)

    def ask(self, step: plans.Step) -> Sequence[PendingProbe]:
        """Return what a step has to fetch next, as far as what is here tells."""
        if not self._context.is_remote or not isinstance(step, plans.Derive | plans.Accumulate):
            return ()
        prefetch = Prefetch()
        if isinstance(step, plans.Derive):
            if self._elsewhere is not None and self._elsewhere.is_due(step):
                return ()
            self._derivation(step).look_ahead(prefetch)
        else:
            from corollary.engines.local.evaluation.aggregation.accumulate import unfetched_records

            tables = self.tables[step.relation], self.tables[step.change]
            prefetch.add(unfetched_records(step, *tables, self.dictionary))
        if prefetch.probes:
            for runner in islice(self._upcoming_runners(step), UPCOMING_MAX_PIPELINES):
                runner.look_ahead(prefetch)
        return prefetch.probes

    # --- steps ---------------------------------------------------------------------------------

    def derive(self, step: plans.Derive, number: int) -> tuple[Tuples, int]:  # noqa: ARG002
        """Return the tuples of a step, as its target takes them, and the leads' size.

        A step whose tuples are only aggregated may be deferred until they are.
        """
        if self._elsewhere is not None:
            found = self._elsewhere.derive(step, self._context)
            if found is not None:
                return found
        derivation = self._derivation(step)
        if self._groups is not None:
            if derivation.is_led_by_few(self._context):
                self._groups.keep(step)
            elif (led := self._groups.defer(step)) is not None:
                return self.tables[step.target].layout.empty, led
        return derivation.run(self._context)

    def _derivation(self, step: plans.Derive) -> Derivation:
        derivation = self._derivations.get(id(step))
        if derivation is None:
            derivation = Derivation(
                step, self.tables, self.dictionary, self._held.keys(), self._bulk
            )
            self._derivations[id(step)] = derivation
        return derivation

    def _upcoming_runners(self, step: plans.Step) -> Iterator[PipelineRunner]:
        """Yield the pipelines of later steps that are led by what is there already."""
        if self._upcoming is None:
            self._upcoming = upcoming_pipelines(self.plan)
        for later, at in self._upcoming.get(id(step), ()):
            yield self._derivation(later).runners[at]

    def compute(self, step: plans.Computation) -> Tuples:
        """Return the tuples of a step, as its target takes them."""
        match step:
            case plans.Aggregate():
                return self._aggregate(step)
            case plans.Total():
                return self._total(step)
            case plans.ReadTotals():
                return self._read_totals(step)
            case plans.Window():
                return self._window(step)
            case plans.Choose():
                from corollary.engines.local.evaluation.choices import choose_tuples

                return choose_tuples(step, self.tables[step.source], self.dictionary)
            case plans.Improve():
                from corollary.engines.local.evaluation.improvement import improve

                tables = self.tables[step.source], self.tables[step.rivals]
                return improve(step, *tables, self.dictionary)
            case _:
                assert_never(step)

    def _aggregate(self, step: plans.Aggregate) -> Tuples:
        from corollary.engines.local.evaluation.aggregation.aggregates import (
            aggregate,
            extreme_rows,
        )

        body, extreme = self.tables[step.body.relation], step.aggregation.extreme
        is_few = 0 < body.size(step.body.state) <= self._context.few and not step.without
        if is_few and extreme is not None and extreme.value is not None:
            type_ = body.types[extreme.value]
            if self.dictionary.has_integers(type_):
                rows = body.rows(step.body.state)
                return extreme_rows(step.aggregation, rows, type_, self.dictionary)
        found: Words | None = self._computed_elsewhere(step)
        if found is not None:
            return found
        words = self._grouped(step)
        if words is None:
            target = self.tables[step.target]
            words = aggregate(step.aggregation, body, step.body.state, target, self.dictionary)
        return self._without_known(words, step.without)

    def _without_known(self, words: Words, without: Sequence[Reference]) -> Words:
        for each in without:
            words = words[~self.tables[each.relation].contains(words, each.state)]
        return words

    def _window(self, step: plans.Window) -> Words:
        from corollary.engines.local.evaluation.windows import compute_windows

        found: Words | None = self._computed_elsewhere(step)
        if found is not None:
            return found
        body, target = self.tables[step.body.relation], self.tables[step.target]
        words = compute_windows(step.windowing, body, step.body.state, target, self.dictionary)
        return self._without_known(words, step.without)

    def compare_windows(self, step: plans.CompareWindows) -> bool:
        """Find the rows that come, go or have other values; return whether that was possible."""
        from corollary.engines.local.evaluation.window_changes import compare_windows

        tables = self.tables[step.added], self.tables[step.removed]
        return compare_windows(step, self.tables[step.body], *tables, self.dictionary)

    def _total(self, step: plans.Total) -> Tuples:
        from corollary.engines.local.evaluation.aggregation.totals import compute_totals, total_rows

        body = self.tables[step.body.relation]
        # A body that was deferred is empty here.
        if 0 < body.size(step.body.state) <= self._context.few:
            return total_rows(step, body.rows(step.body.state), body.types, self.dictionary)
        found: Words | None = self._computed_elsewhere(step)
        if found is not None:
            return found
        words = self._grouped(step)
        if words is None:
            body, target = self.tables[step.body.relation], self.tables[step.target]
            words = compute_totals(step, body, target, self.dictionary)
        return words

    def _computed_elsewhere(self, step: plans.Aggregate | plans.Total | plans.Window) -> Any:
        """Return the tuples of a step that runs outside; for another, see that its body is here."""
        elsewhere = self._elsewhere
        if elsewhere is None:
            return None
        if isinstance(step, plans.Window):
            found = elsewhere.window(step, self._context)
        else:
            found = elsewhere.group(step, self._context)
        if found is None:
            self._materialize_deferred(elsewhere, step.body.relation)
        return found

    def _materialize_deferred(self, steps: RemoteSteps | BulkGroups, relation: str) -> None:
        """Derive the tuples of a relation now, if that was deferred."""
        derive = steps.pop_deferred(relation)
        if derive is not None:
            tuples, _ = self._derivation(derive).run(self._context)
            self.tables[derive.target].assign(tuples)

    def _grouped(self, step: plans.Aggregate | plans.Total) -> Words | None:
        """Return the tuples of a bulk step; for another one, see to it that its body is there."""
        if self._groups is None:
            return None
        words = self._groups.tuples(step, self._context)
        if words is None:
            self._materialize_deferred(self._groups, step.body.relation)
        return words

    def _read_totals(self, step: plans.ReadTotals) -> Tuples:
        from corollary.engines.local.evaluation.aggregation.totals import (
            read_total_rows,
            read_totals,
        )

        totals, target = self.tables[step.totals.relation], self.tables[step.target]
        if totals.size(step.totals.state) <= self._context.few:
            rows = totals.rows(step.totals.state)
            return read_total_rows(step, rows, target, self.dictionary)
        if self._elsewhere is not None:
            found: Words | None = self._elsewhere.read_totals(step, self._context)
            if found is not None:
                return found
        return read_totals(step, totals, target, self.dictionary)

    def accumulate(self, step: plans.Accumulate) -> bool:
        """Add a change to a relation, key by key; return whether the change was here."""
        from corollary.engines.local.evaluation.aggregation.accumulate import (
            accumulate,
            accumulate_rows,
        )

        table, change = self.tables[step.relation], self.tables[step.change]
        if change.is_remote(State.NEW):
            return False
        if change.size(State.NEW) <= self._context.few:
            rows = accumulate_rows(step, table, change.rows(State.NEW), self.dictionary)
            for name, found_rows in zip((step.came, step.gone), rows, strict=True):
                if name:
                    self.tables[name].assign(found_rows)
            return True
        found = accumulate(step, table, change, self.dictionary)
        for name, keys in zip((step.came, step.gone), found, strict=True):
            if name:
                target = self.tables[name]
                target.assign(sort_words(target.pack(*keys)))
        return True

    def swap_doubt(self, has_doubt: bool = False) -> bool:
        """Return whether a deferred pipeline lacked a value; from now on that is as given."""
        before, self._context.has_doubt = self._context.has_doubt, has_doubt
        return before

    def extend_with_round(self, target: str, source: str, number: int) -> None:
        """Extend a table by the tuples of another, with a number as last column."""
        elsewhere = self._elsewhere
        if elsewhere is not None and elsewhere.extend_with_round(target, source, number):
            return
        table, plain = self.tables[target], self.tables[source]
        code = self.dictionary.encode_value(number, NUMBER)
        table.widen((*plain.layout.columns, range_of_code(code)), GROWTH_BITS)
        plain.widen(table.layout.columns[:-1])  # with equal ranges, appending is one shift
        numbered = table.layout.append_column(plain.layout, plain.tuples(State.NEW), code)
        table.extend(numbered[~table.contains(numbered, State.NEW)])

    def read(self, reference: Reference) -> pa.Table:
        """Return the tuples of a relation in a state."""
        table = self.tables[reference.relation]
        relation = self.relations.get(reference.relation)
        unnamed = [f"c{at}" for at in range(len(table.types))]
        names = unnamed if relation is None else relation.columns
        return decode_table(table, reference.state, names, self.dictionary)

    def run_placed_call(self, step: plans.PlacedCall) -> bool:
        """Run a procedure outside this process if possible; return whether it was run."""
        return self._hooks.place(self, step)

    def run_narrow_rounds(self, loop: plans.Loop, number: int) -> tuple[int, bool]:
        """Run rounds of a loop tuple by tuple, if that is faster.

        Returns:
            How many, and whether they are a search along a relation, which always ends.
        """
        key = id(loop)
        if key not in self._searches:
            self._searches[key] = self._narrow_loop(loop)
        search = self._searches[key]
        if search is None:
            return 0, False
        if not number:
            search.reset()
        return search.run_rounds(self._context, number), isinstance(search, BreadthFirstSearch)

    def _narrow_loop(self, loop: plans.Loop) -> BreadthFirstSearch | ArithmeticRounds | None:
        if any(each.is_partitioned for each in self.tables.values()):
            return None  # a search asks tuple by tuple, which is a job each
        procedure_locals = {name for names in self.plan.locals.values() for name in names}
        linear = find_linear_loop(loop, procedure_locals)
        if linear is not None:
            return BreadthFirstSearch(linear, self.tables, self.dictionary, self._held.keys())
        arithmetic = find_arithmetic_loop(loop, procedure_locals, self.plan.types)
        if arithmetic is not None:
            return ArithmeticRounds(arithmetic, self.tables, self.dictionary)
        return None

    # --- locals --------------------------------------------------------------------------------

    def enter(self, procedure: str) -> tuple[Table, ...]:
        """Give the locals of a procedure empty tables; return the tables of its caller."""
        names = self.plan.locals.get(procedure)
        if not names:
            return ()
        saved = tuple([self.tables[name] for name in names])
        spare = self._spare.setdefault(procedure, [])
        empty = spare.pop() if spare else tuple([self._new_local(name) for name in names])
        self.tables.update(zip(names, empty, strict=True))
        self.budget.count_shadowed(saved, 1)
        return saved

    def _new_local(self, name: str) -> Table:
        types, family = self.plan.types[name], self.tables[name].family
        table = self._hooks.new_table(name, types, family, self.plan)
        self._arrange(name, table)
        return table

    def leave(self, procedure: str, saved: tuple[Table, ...]) -> None:
        """Give the locals of a procedure the tables of its caller again."""
        if not saved:
            return
        names = self.plan.locals[procedure]
        spare = self._spare[procedure]
        if len(spare) < SPARE_TABLES_MAX:
            used = tuple([self.tables[name] for name in names])
            for table in used:
                table.clear()
            spare.append(used)
        self.tables.update(zip(names, saved, strict=True))
        self.budget.count_shadowed(saved, -1)


def _exchanges(step: plans.Step, plan: plans.Plan) -> list[tuple[str, str]]:
    """Return the pairs of relations whose tuples a step moves or compares: they share a layout."""
    match step:
        case plans.Derive(target=target, pipelines=pipelines, without=without):
            sources = [
                source for each in pipelines if (source := copied_reference(each)) is not None
            ]
            return [(target, each.relation) for each in (*without, *sources)]
        case (
            plans.Aggregate(target=target, without=without)
            | plans.Window(target=target, without=without)
        ):
            return [(target, each.relation) for each in without]
        case (
            plans.Extend(target=target, source=source)
            | plans.Improve(target=target, source=source)
            | plans.Choose(target=target, source=source)
            | plans.StoreRelation(relation=target, source=source)
            | plans.Remove(relation=target, source=source)
            | plans.Add(relation=target, source=source)
        ):
            return [(target, source)]
        case plans.CompareWindows(added=added, removed=removed):
            return [(added, removed)]
        case plans.Call(procedure=procedure, argument=argument):
            return [] if argument is None else [(argument, plan.locals[procedure][0])]
        case (
            plans.Total()
            | plans.ReadTotals()
            | plans.Accumulate()
            | plans.ExtendWithRound()
            | plans.Clear()
            | plans.CancelOut()
            | plans.CheckAcyclic()
            | plans.Judge()
            | plans.Overrun()
            | plans.FindDescent()
            | plans.Loop()
            | plans.When()
            | plans.Within()
            | plans.PlacedCall()
            | plans.RecordTrace()
        ):
            return []
        case _:
            assert_never(step)
