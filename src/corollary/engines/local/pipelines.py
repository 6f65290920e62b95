"""Running one pipeline: frames of coded columns flow through the stages."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol, assert_never

from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.recorder import Recorder
from corollary.core.rules import names_in
from corollary.core.states import State
from corollary.core.terms import Slot, Variable, variables_of
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.frames import UNIT, Frame
from corollary.engines.local.layout import Codes, Words
from corollary.engines.local.operands import Scope
from corollary.engines.local.stages import (
    ComputeStage,
    FilterStage,
    MemberStage,
    ProbeStage,
    ReadyStage,
)
from corollary.engines.local.table import Table

_Open = tuple[int, Iterator[Frame]]
"""Frames that are still to come, and the stage that they come to."""


class Meter(Protocol):
    """Sees the rows that pass the stages, and may stop a run."""

    def tick(self, pipeline: Pipeline, rows: int) -> None:
        """So many rows pass a stage."""


class Context(Protocol):
    """The run that a pipeline takes part in."""

    @property
    def budget(self) -> Meter:
        """What watches over the rows."""

    @property
    def recorder(self) -> Recorder:
        """What is told of lookups."""


class PipelineRunner:
    """Runs a pipeline over the tables of an engine; made once, used in every round.

    Attributes:
        lead: what the first stage reads, if that is a probe.
        copied: the relation and state of which the heads are just the tuples, if so.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        held: Collection[str] = (),
    ) -> None:
        self.pipeline = pipeline
        first = pipeline.stages[0] if pipeline.stages else None
        self.lead = first.source if isinstance(first, Probe) else None
        self.copied = copied(pipeline)
        self._scope = Scope(pipeline.stages, tables, dictionary)
        self._head = [self._scope.operand(slot) for slot in pipeline.head]
        self._stages = _ready(pipeline, self._scope, held)
        self._doubtful = [
            stage for stage, _ in self._stages if isinstance(stage, FilterStage | ComputeStage)
        ]

    @property
    def has_fault(self) -> bool:
        """Whether rows of the last run were dropped because an expression had no value."""
        return any(stage.has_fault for stage in self._doubtful)

    @property
    def widths(self) -> list[int | None]:
        """For each column of the head a width that all codes fit, None where none is known."""
        return [operand.width for operand in self._head]

    def frames(self, context: Context) -> Iterable[Frame]:
        """Return the frames that pass all stages, made one after the other if there are many.

        Afterwards `has_fault` tells whether rows were dropped.
        """
        for doubtful in self._doubtful:
            doubtful.has_fault = False
        made = self._pass(0, UNIT, context)
        if isinstance(made, Frame):
            return (made,) if made.count else ()
        return self._spread(made, context)

    def head(self, frame: Frame) -> list[Codes]:
        """Return the columns of the head."""
        return [operand.column(frame) for operand in self._head]

    def _pass(self, index: int, frame: Frame, context: Context) -> Frame | _Open:
        """Take a frame through the stages, up to the first that makes several of it."""
        pipeline, tick = self.pipeline, context.budget.tick
        stages = self._stages
        while index < len(stages):
            tick(pipeline, frame.count)
            stage, told = stages[index]
            if told is not None:
                context.recorder.probe(told, frame.count)
            index += 1
            made = stage.apply(frame)
            if not isinstance(made, Frame):
                return index, made
            if not made.count:
                return made
            frame = made
        tick(pipeline, frame.count)
        return frame

    def _spread(self, first: _Open, context: Context) -> Iterator[Frame]:
        work = [first]
        while work:
            index, frames = work[-1]
            frame = next(frames, None)
            if frame is None:
                work.pop()
            elif frame.count:
                made = self._pass(index, frame, context)
                if not isinstance(made, Frame):
                    work.append(made)
                elif made.count:
                    yield made

    def copy(self, context: Context) -> Words:
        """Return the heads of a pipeline that only copies, as the words of what it copies."""
        assert self.copied is not None
        words = self._scope.tables[self.copied.relation].words(self.copied.state)
        if (told := self._stages[0][1]) is not None:
            context.recorder.probe(told, 1)
        context.budget.tick(self.pipeline, 1 + len(words))
        return words

    def column(self, slot: Slot, frame: Frame) -> Codes:
        """Return the codes that an argument place stands for."""
        return self._scope.operand(slot).column(frame)


def _ready(
    pipeline: Pipeline, scope: Scope, held: Collection[str]
) -> list[tuple[ReadyStage, str | None]]:
    """Return the stages ready to run, each with the relation that the recorder is told of."""
    result: list[tuple[ReadyStage, str | None]] = []
    known: set[str] = set()
    for stage, needed in zip(pipeline.stages, needed_after(pipeline), strict=True):
        made: ReadyStage
        match stage:
            case Probe(slots=slots, bound=bound) if len(bound) == len(slots):
                made = MemberStage(stage, scope)
            case Probe(slots=slots):
                made = ProbeStage(stage, scope, frozenset(known), needed, pipeline.is_bag)
                known = {slot.name for slot in slots if isinstance(slot, Variable)} | known
                known &= needed
            case Absent():
                made = MemberStage(stage, scope)
            case Filter():
                made = FilterStage(stage, scope)
            case Compute(variable=variable):
                made = ComputeStage(stage, scope)
                known.add(variable.name)
            case _:
                assert_never(stage)
        result.append((made, _told(stage, held)))
    return result


def _told(stage: Stage, held: Collection[str]) -> str | None:
    """Return the relation of the engine that a stage looks up as a whole."""
    if isinstance(stage, Probe | Absent) and stage.source.relation in held:
        return stage.source.relation if stage.source.state in (State.OLD, State.NEW) else None
    return None


def copied(pipeline: Pipeline) -> Reference | None:
    """Return what a pipeline copies tuple by tuple, if it does nothing else."""
    if len(pipeline.stages) == 1 and isinstance(stage := pipeline.stages[0], Probe):
        names = [slot.name for slot in stage.slots if isinstance(slot, Variable)]
        is_whole = len(names) == len(set(names)) == len(stage.slots)
        if is_whole and not stage.bound and stage.slots == pipeline.head:
            return stage.source
    return None


def needed_after(pipeline: Pipeline) -> list[frozenset[str]]:
    """Return for each stage the variables that later stages or the head read."""
    needed = {slot.name for slot in pipeline.head if isinstance(slot, Variable)}
    result: list[frozenset[str]] = []
    for stage in reversed(pipeline.stages):
        result.append(frozenset(needed))
        match stage:
            case Probe(slots=slots) | Absent(slots=slots):
                needed |= {slot.name for slot in slots if isinstance(slot, Variable)}
            case Filter(condition=condition):
                needed |= names_in(condition)
            case Compute(expression=expression):
                needed |= {variable.name for variable in variables_of(expression)}
            case _:
                assert_never(stage)
    return result[::-1]
