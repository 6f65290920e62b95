"""Running one pipeline: frames of coded columns flow through the stages, batch by batch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

import numpy as np
import numpy.typing as npt

from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Stage
from corollary.core.recorder import Recorder
from corollary.core.rules import names_in
from corollary.core.states import State
from corollary.core.terms import Constant, Functor, Slot, Variable, Wildcard, variables_of
from corollary.engines.local import expressions
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.generate import Numbers
from corollary.engines.local.layout import Codes, Layout, Words
from corollary.engines.local.table import Layer, Order, Table

BATCH = 1 << 21
"""A join's output is cut into batches of at most this many rows."""


@dataclass(frozen=True, slots=True)
class Frame:
    """So many rows, and the codes of the variables that are still needed."""

    columns: Mapping[str, Codes]
    count: int

    def select(self, rows: npt.NDArray[np.bool_]) -> "Frame":
        """Return the rows where the mask is set."""
        if rows.all():
            return self
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Frame(columns, int(np.count_nonzero(rows)))


UNIT = Frame({}, 1)


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
    """Runs a pipeline over the tables of an engine; made once, used in every round."""

    def __init__(
        self,
        pipeline: Pipeline,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        held: frozenset[str] = frozenset(),
    ) -> None:
        self.pipeline = pipeline
        self._tables = tables
        self._dictionary = dictionary
        self._needed = _needed_after(pipeline)
        self._told = [_told(stage, held) for stage in pipeline.stages]
        self.has_fault = False

    def run(self, context: Context) -> Iterator[tuple[list[Codes], int]]:
        """Yield batches of head columns; afterwards `has_fault` tells whether rows were dropped."""
        self.has_fault = False
        stages = self.pipeline.stages
        if stages and isinstance(stages[0], Probe):
            source = stages[0].source
            if not self._tables[source.relation].size(source.state):
                return
        tick = context.budget.tick
        work: list[tuple[int, Iterator[Frame]]] = [(0, iter([UNIT]))]
        while work:
            index, frames = work[-1]
            frame = next(frames, None)
            if frame is None:
                work.pop()
                continue
            tick(self.pipeline, frame.count)
            if index == len(stages):
                yield [self.column(slot, frame) for slot in self.pipeline.head], frame.count
            else:
                if (relation := self._told[index]) is not None:
                    context.recorder.probe(relation, frame.count)
                work.append((index + 1, self._stage(stages[index], frame, self._needed[index])))

    def column(self, slot: Slot, frame: Frame) -> Codes:
        """Return the codes that an argument place stands for."""
        match slot:
            case Variable(name=name):
                return frame.columns[name]
            case Constant(value=value):
                code = self._dictionary.code(value, expressions.type_of(slot))
                return np.full(frame.count, code, np.int64)
            case Wildcard():
                raise AssertionError("`_` has no value")
            case _:
                assert_never(slot)

    def _stage(self, stage: Stage, frame: Frame, needed: frozenset[str]) -> Iterator[Frame]:
        match stage:
            case Probe():
                return self.probe(stage, frame, needed)
            case Absent():
                return _if_any(self.absent(stage, frame))
            case Filter(condition=condition):
                verdict = expressions.holds(condition, frame.columns, frame.count, self._dictionary)
                self.has_fault |= any(mask.any() for mask, _ in verdict.faults)
                return _if_any(frame.select(verdict.true))
            case Compute():
                return self._compute(stage, frame)
            case _:
                assert_never(stage)

    # --- relational stages ---------------------------------------------------------------------

    def absent(self, stage: Absent, frame: Frame) -> Frame:
        """Return the rows whose tuple is not there."""
        table = self._tables[stage.source.relation]
        columns = [self.column(slot, frame) for slot in stage.slots]
        words = table.pack(columns, frame.count)
        return frame.select(~table.contains(words, stage.source.state))

    def probe(self, stage: Probe, frame: Frame, needed: frozenset[str]) -> Iterator[Frame]:
        """Yield the rows joined with the tuples that match, in batches."""
        table = self._tables[stage.source.relation]
        order = table.order_for(stage.bound)
        keys = [self.column(stage.slots[column], frame) for column in order[: len(stage.bound)]]
        layers = table.layers(stage.source.state, order)
        free = _free_columns(stage, order, needed)
        layout = table.layout.permuted(order)
        is_whole = len(stage.bound) == len(order)
        may_stop = is_whole or not (self.pipeline.is_bag or any(map(_gone, layers)))
        if not free and may_stop:
            found = _exists(layers, layout, keys, frame.count)
            kept = {name: column for name, column in frame.columns.items() if name in needed}
            yield from _if_any(Frame(kept, frame.count).select(found))
            return
        for layer in layers:
            start, end = layer.run.ranges(layout, keys, frame.count)
            for rows, words in _matches(layer, start, end):
                columns = {
                    name: column[rows] for name, column in frame.columns.items() if name in needed
                }
                same: npt.NDArray[np.bool_] | None = None
                for name, position in free:
                    codes = layout.column(words, position)
                    if name in columns:
                        equal = columns[name] == codes
                        same = equal if same is None else same & equal
                    else:
                        columns[name] = codes
                joined = Frame(columns, len(words))
                yield from _if_any(joined if same is None else joined.select(same))

    # --- expressions ---------------------------------------------------------------------------

    def _compute(self, stage: Compute, frame: Frame) -> Iterator[Frame]:
        expression = stage.expression
        if isinstance(expression, Functor) and expression.name == "range":
            numbers = Numbers(expression, frame.columns, frame.count, self._dictionary)
            self.has_fault |= len(numbers.faulty) > 0
            for rows, codes in numbers.batches():
                columns = {name: column[rows] for name, column in frame.columns.items()}
                columns[stage.variable.name] = codes
                yield Frame(columns, len(codes))
            return
        batch = expressions.evaluate(expression, frame.columns, frame.count, self._dictionary)
        codes = expressions.encode(batch, self._dictionary)
        made = Frame({**frame.columns, stage.variable.name: codes}, frame.count)
        drop = batch.faulty
        self.has_fault |= drop is not None and bool(drop.any())
        if not stage.lets_null:
            drop = expressions.either(drop, batch.nulls)
        if drop is not None:
            made = made.select(~drop)
        yield from _if_any(made)


def _told(stage: Stage, held: frozenset[str]) -> str | None:
    """Return the relation of the engine that a stage looks up as a whole."""
    if isinstance(stage, Probe | Absent) and stage.source.relation in held:
        return stage.source.relation if stage.source.state in (State.OLD, State.NEW) else None
    return None


def _if_any(frame: Frame) -> Iterator[Frame]:
    return iter([frame] if frame.count else [])


def _gone(layer: Layer) -> bool:
    return any(len(absent) for absent in layer.absent)


def _exists(
    layers: list[Layer], layout: Layout, keys: list[Codes], count: int
) -> npt.NDArray[np.bool_]:
    """Return which rows match at least one tuple."""
    found = np.zeros(count, np.bool_)
    for layer in layers:
        start, end = layer.run.ranges(layout, keys, count)
        here = end > start
        if _gone(layer):
            keep = layer.keep(layout.pack(keys, count))
            here = here if keep is None else here & keep
        found |= here
    return found


def _free_columns(stage: Probe, order: Order, needed: frozenset[str]) -> list[tuple[str, int]]:
    """Return the variables to read from a match, with their position in the order."""
    names = [
        (slot.name, position)
        for position, column in enumerate(order[len(stage.bound) :], len(stage.bound))
        if isinstance(slot := stage.slots[column], Variable)
    ]
    listed = [name for name, _ in names]
    return [(name, at) for name, at in names if name in needed or listed.count(name) > 1]


def _matches(
    layer: Layer, start: Codes, end: Codes
) -> Iterator[tuple[npt.NDArray[np.int64], Words]]:
    """Yield, in batches, which row each match belongs to, and the matches."""
    sizes = end - start
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    for low in range(0, total, BATCH):
        high = min(low + BATCH, total)
        if len(sizes) == 1:
            rows = np.zeros(high - low, np.int64)
            words = layer.run.words[int(start[0]) + low : int(start[0]) + high]
        else:
            if total <= BATCH:
                rows = np.repeat(np.arange(len(sizes)), sizes)
            else:
                first = int(np.searchsorted(ends, low, side="right"))
                last = int(np.searchsorted(ends, high, side="left")) + 1
                cut = np.minimum(ends[first:last], high)
                cut = np.diff(np.maximum(np.concatenate([[low], cut]), low))
                rows = np.repeat(np.arange(first, last), cut)
            words = layer.run.words[np.arange(low, high) + (start - (ends - sizes))[rows]]
        keep = layer.keep(words)
        if keep is not None:
            rows, words = rows[keep], words[keep]
        if len(words):
            yield rows, words


def _needed_after(pipeline: Pipeline) -> list[frozenset[str]]:
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
