"""Running one pipeline: frames of coded columns flow through the stages."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import assert_never

from corollary.core.logic import Expression, Slot, Variable, subterms
from corollary.core.pipeline import (
    AntiProbe,
    Compute,
    Filter,
    Pipeline,
    Probe,
    Reference,
    Stage,
    names_needed,
    names_read,
    slot_names,
)
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.user_functors.user_functor import UserCall
from corollary.data_class import dataclass
from corollary.engines.budget import Budget
from corollary.engines.local.evaluation.aggregation.extremes import ExtremeStage
from corollary.engines.local.evaluation.frames import UNIT_FRAME, Frame, VariableScope
from corollary.engines.local.evaluation.prefetch import LOOK_AHEAD_MAX_ROWS, Prefetch
from corollary.engines.local.evaluation.row_stages import RowPipeline
from corollary.engines.local.evaluation.stages import (
    ComputeStage,
    FilterStage,
    MemberStage,
    PreparedStage,
    ProbeStage,
)
from corollary.engines.local.storage.code_range import CodeRange, Codes
from corollary.engines.local.storage.layout import Row
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

_Pending = tuple[int, Iterator[Frame]]
"""The index of a stage, and the frames that it has still to process."""


@dataclass(slots=True)
class RunContext:
    """The run that pipelines belong to: its limits, and the recorder of its lookups.

    Attributes:
        few: up to this many tuples are handled one by one; -1 for none, not even no tuples.
        has_doubt: whether an expression of a deferred pipeline had no value.
        is_remote: whether tuples may be outside of this process.
    """

    budget: Budget
    recorder: Recorder
    few: int = -1
    has_doubt: bool = False
    is_remote: bool = False


class PipelineRunner:
    """Runs a pipeline over the tables of an engine; created once, used in every round.

    Attributes:
        tables, dictionary: what it runs on.
        lead: the source of the first stage, if that is a probe.
        first_source: the source of the first probe, if there is one.
        is_led_by_all: whether that is a relation of the engine, not only its change.
        copied_source: the relation and state that the pipeline copies, if that is all it does.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        engine_relations: Collection[str] = (),
    ) -> None:
        self.pipeline = pipeline
        self.tables = tables
        self.dictionary = dictionary
        self._engine_relations = engine_relations
        first = pipeline.stages[0] if pipeline.stages else None
        self.lead = first.source if isinstance(first, Probe) else None
        probe = next((each for each in pipeline.stages if isinstance(each, Probe)), None)
        self.first_source = pipeline.first_source
        self.is_led_by_all = (
            probe is not None and _recorded_relation(probe, engine_relations) is not None
        )
        self.copied_source = copied_reference(pipeline)
        self._scope = VariableScope(pipeline.stages, tables, dictionary)
        self._head = [self._scope.operand(slot) for slot in pipeline.head]
        self._stages = _prepare_stages(pipeline, self._scope, engine_relations)
        self._evaluating = [
            stage for stage, _ in self._stages if isinstance(stage, FilterStage | ComputeStage)
        ]
        self._needed: list[frozenset[str] | None] | None = None
        self._by_row: RowPipeline | None = None

    @property
    def has_fault(self) -> bool:
        """Whether rows of the last run were dropped because an expression had no value."""
        return any(stage.has_fault for stage in self._evaluating)

    @property
    def head_ranges(self) -> list[CodeRange | None]:
        """For each column of the head a range that has all its codes, None if unknown."""
        return [operand.range for operand in self._head]

    def frames(self, context: RunContext) -> Iterable[Frame]:
        """Return the frames that pass all stages, lazily if there are several.

        Once all are consumed, `has_fault` is whether rows were dropped.
        """
        for stage in self._evaluating:
            stage.has_fault = False
        return self._all_frames(self._apply_stages(0, UNIT_FRAME, context), context)

    def _all_frames(self, result: "Frame | _Pending", context: RunContext) -> Iterable[Frame]:
        if isinstance(result, Frame):
            return (result,) if result.count else ()
        return self._run_pending(result, context)

    def rows(self, context: RunContext) -> list[Row] | Iterable[Frame]:
        """Return the heads, one by one; or the frames, if they become many on the way.

        Once all are consumed, `has_fault` is whether rows were dropped.
        """
        for stage in self._evaluating:
            stage.has_fault = False
        by_row = self._by_row
        if by_row is None:
            by_row = self._by_row = RowPipeline(self.pipeline, self._stages, self._scope)
        rows, handled = [by_row.first], 0
        for index, (row_stage, recorded) in enumerate(by_row.stages):
            found = row_stage.apply(rows, context.few)
            if found is None:
                context.budget.count_rows(self.pipeline, handled)
                frame = by_row.frame(rows, index)
                return self._all_frames(self._apply_stages(index, frame, context), context)
            if recorded is not None:
                context.recorder.probe(recorded, len(rows))
            handled += len(rows)
            rows = found
            if not rows:
                break
        context.budget.count_rows(self.pipeline, handled + len(rows))
        return [*map(by_row.head, rows)]

    def head_columns(self, frame: Frame) -> list[Codes]:
        """Return the columns of the head."""
        return [operand.column(frame) for operand in self._head]

    def _apply_stages(self, index: int, frame: Frame, context: RunContext) -> Frame | _Pending:
        """Send a frame through the stages, up to the first that makes several frames of it."""
        pipeline, tick = self.pipeline, context.budget.count_rows
        stages = self._stages
        while index < len(stages):
            tick(pipeline, frame.count)
            stage, recorded = stages[index]
            if context.is_remote:
                self._fetch(index, frame)
            if recorded is not None:
                context.recorder.probe(recorded, frame.count)
            index += 1
            result = stage.apply(frame)
            if not isinstance(result, Frame):
                return index, result
            if not result.count:
                return result
            frame = result
        tick(pipeline, frame.count)
        return frame

    # --- looking ahead -------------------------------------------------------------------------

    @property
    def is_remote(self) -> bool:
        """Whether a stage reads tuples that are outside of this process."""
        stages = (stage for stage, _ in self._stages)
        return any(isinstance(each, ProbeStage | MemberStage) and each.is_remote for each in stages)

    def _fetch(self, index: int, frame: Frame) -> None:
        """Fetch what a stage needs for some rows and, with it, what will be needed next."""
        stage, _ = self._stages[index]
        if isinstance(stage, ProbeStage | MemberStage) and stage.is_remote:
            needed = stage.unfetched(frame)
            if needed:
                prefetch = Prefetch(needed)
                if not stage.is_selective(needed):
                    is_whole = isinstance(stage, MemberStage)
                    self.look_ahead(prefetch, index + 1, frame, is_whole=is_whole)
                prefetch.fetch()

    def look_ahead(
        self,
        prefetch: Prefetch,
        first: int = 0,
        frame: Frame = UNIT_FRAME,
        *,
        is_whole: bool = True,
    ) -> Frame | None:
        """Add what stages would fetch for some rows, as far as what is here tells.

        Nothing is recorded, and functors of users are not called: the stages run later. Returns the
        rows that pass all stages, None if that is not known yet.

        Args:
            prefetch: it is added to this.
            first: the stage to begin with.
            frame: the rows that come to it, and perhaps others.
            is_whole: whether the rows have all variables that are bound before.
        """
        if self._needed is None:
            self._needed = [_needed_ahead(stage) for stage in self.pipeline.stages]
        faults = [stage.has_fault for stage in self._evaluating]
        passed: Frame | None = None
        is_told = True
        for (stage, _), needed in zip(self._stages[first:], self._needed[first:], strict=True):
            if not 0 < frame.count <= LOOK_AHEAD_MAX_ROWS:
                break
            is_known = needed is not None and needed <= frame.columns.keys()
            if is_known and isinstance(stage, ProbeStage | MemberStage) and stage.is_remote:
                pending = stage.unfetched(frame)
                if pending:
                    prefetch.add(pending)
                    if stage.is_selective(pending):
                        break
                is_known = pending == []
            if isinstance(stage, ProbeStage):
                if stage.rows_read > LOOK_AHEAD_MAX_ROWS:
                    break
                is_known &= is_whole  # a join carries the variables of its rows along
            if not is_known:
                is_whole &= not isinstance(stage, ProbeStage | ComputeStage)
                is_told = False
                continue
            result = stage.apply(frame)
            if not isinstance(result, Frame):
                break
            frame = result
        else:
            passed = frame if is_told else None
        for stage, has_fault in zip(self._evaluating, faults, strict=True):
            stage.has_fault = has_fault
        return passed

    def _run_pending(self, first: _Pending, context: RunContext) -> Iterator[Frame]:
        # Depth first, with an explicit stack: at most one batch per stage is in memory.
        stack = [first]
        while stack:
            index, frames = stack[-1]
            frame = next(frames, None)
            if frame is None:
                stack.pop()
            elif frame.count:
                result = self._apply_stages(index, frame, context)
                if not isinstance(result, Frame):
                    stack.append(result)
                elif result.count:
                    yield result

    def copy(self, context: RunContext, *, as_rows: bool = False) -> Tuples:
        """Return the heads of a pipeline that only copies: the tuples of its source."""
        assert self.copied_source is not None
        table, state = self.tables[self.copied_source.relation], self.copied_source.state
        words = table.rows(state) if as_rows else table.tuples(state)
        if (recorded := self._stages[0][1]) is not None:
            context.recorder.probe(recorded, 1)
        context.budget.count_rows(self.pipeline, 1 + len(words))
        return words

    def record_probes(self, context: RunContext) -> int:
        """Record the lookups of a run as a whole (`record_probes`); return the tuples that lead."""
        return record_probes(self.pipeline, self.tables, self._engine_relations, context)

    def operand_column(self, slot: Slot, frame: Frame) -> Codes:
        """Return the codes of an argument place."""
        return self._scope.operand(slot).column(frame)


def _needed_ahead(stage: Stage) -> frozenset[str] | None:
    """Return the variables that a stage needs to look ahead; None if it cannot."""
    terms: tuple[Expression, ...] = ()
    match stage:
        case Filter(condition=condition):
            terms = (condition.left, condition.right)
        case Compute(expression=expression):
            terms = (expression,)
        case Probe() | AntiProbe():
            pass
        case _:
            assert_never(stage)
    parts = (part for term in terms for part in subterms(term))
    is_called = any(isinstance(part, UserCall) for part in parts)
    return None if is_called else frozenset(names_needed(stage))


def record_probes(
    pipeline: Pipeline, tables: Mapping[str, Table], held: Collection[str], context: RunContext
) -> int:
    """Record the lookups of a run as a whole, by the tuples that lead it; return how many.

    Where all rows are joined at once, nothing else is known of them.
    """
    source = pipeline.first_source
    rows = 1 if source is None else tables[source.relation].size(source.state)
    for at, stage in enumerate(pipeline.stages if rows else ()):
        recorded = _recorded_relation(stage, held)
        if recorded is not None:
            context.recorder.probe(recorded, rows if at else 1)
    return rows


def _prepare_stages(
    pipeline: Pipeline, scope: VariableScope, held: Collection[str]
) -> list[tuple[PreparedStage, str | None]]:
    """Return the prepared stages, each with the relation to record a lookup of, if any."""
    result: list[tuple[PreparedStage, str | None]] = []
    known: set[str] = set()
    live = live_variables(pipeline)
    for at, (stage, needed) in enumerate(zip(pipeline.stages, live, strict=True)):
        prepared: PreparedStage
        match stage:
            case Probe(slots=slots, bound=bound) if len(bound) == len(slots):
                prepared = MemberStage(stage, scope)
            case Probe(slots=slots, extreme=extreme):
                make = ProbeStage if extreme is None else ExtremeStage
                prepared = make(stage, scope, frozenset(known), needed, pipeline.is_bag)
                prepared.is_joined_further = any(
                    isinstance(each, Probe) and len(each.bound) < len(each.slots)
                    for each in pipeline.stages[at + 1 :]
                )
                known = slot_names(slots) | known
                known &= needed
            case AntiProbe():
                prepared = MemberStage(stage, scope)
            case Filter():
                prepared = FilterStage(stage, scope)
            case Compute(variable=variable):
                prepared = ComputeStage(stage, scope)
                known.add(variable.name)
            case _:
                assert_never(stage)
        result.append((prepared, _recorded_relation(stage, held)))
    return result


def _recorded_relation(stage: Stage, held: Collection[str]) -> str | None:
    """Return the relation of the engine that a stage reads in OLD or NEW, not only its change."""
    if isinstance(stage, Probe | AntiProbe) and stage.source.relation in held:
        return stage.source.relation if stage.source.state in (State.OLD, State.NEW) else None
    return None


def copied_reference(pipeline: Pipeline) -> Reference | None:
    """Return the relation and state that a pipeline copies unchanged, None if it does more."""
    if len(pipeline.stages) == 1 and isinstance(stage := pipeline.stages[0], Probe):
        names = [slot.name for slot in stage.slots if isinstance(slot, Variable)]
        is_whole = len(names) == len(set(names)) == len(stage.slots)
        if is_whole and not stage.bound and stage.slots == pipeline.head:
            return stage.source
    return None


def live_variables(pipeline: Pipeline) -> list[frozenset[str]]:
    """Return for each stage the live variables after it, which later stages or the head read."""
    needed = slot_names(pipeline.head)
    result: list[frozenset[str]] = []
    for stage in reversed(pipeline.stages):
        result.append(frozenset(needed))
        needed |= names_read(stage)
    return result[::-1]
