"""One `Derive` step: the heads of its pipelines as one sorted array."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import numpy as np

from corollary.core.pipeline import Pipeline, Reference
from corollary.core.plan import Derive, Reduce
from corollary.engines.local.aggregates import exact_sums
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.judge import Trials, judge
from corollary.engines.local.layout import Codes, Layout, Words
from corollary.engines.local.pipelines import Meter, PipelineRunner
from corollary.engines.local.runs import distinct
from corollary.engines.local.table import Table


class Purse(Meter, Protocol):
    """Counts the tuples that a step makes."""

    def spend(self, pipeline: Pipeline, words: Words) -> None:
        """A pipeline has made new tuples."""

    def release(self) -> None:
        """They have become one result."""


class Run(Trials, Protocol):
    """The run that a step takes part in."""

    @property
    def budget(self) -> Purse:
        """What watches over rows and tuples."""


class Derivation:
    """A step, ready to run on the tables of a plan."""

    def __init__(
        self,
        step: Derive,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        held: Collection[str],
    ) -> None:
        self._step = step
        self._tables = tables
        self._dictionary = dictionary
        self._runners = [
            PipelineRunner(pipeline, tables, dictionary, held) for pipeline in step.pipelines
        ]
        self._is_set = step.reduce is not Reduce.SUM

    def run(self, run: Run) -> tuple[Words, int]:
        """Return the tuples of the step, packed and sorted for its target, and what led to them."""
        target = self._tables[self._step.target]
        pieces: list[tuple[Words, Layout]] = []
        led = 0
        for runner in self._runners:
            if runner.lead is not None:
                size = self._tables[runner.lead.relation].size(runner.lead.state)
                if not size:
                    continue
                led += size
            if runner.copied is not None and self._is_set:
                words = self._unknown(runner.copy(run))
                self._add(words, pieces, runner, target, run)
                continue
            for columns, count in _heads(runner, run):
                words = target.fit(columns, runner.widths).pack(columns, count)
                words = self._fresh(words) if self._is_set else words
                self._add(words, pieces, runner, target, run)
        if not pieces:
            return target.layout.nothing, led
        run.budget.release()
        layout = target.layout
        return self._reduced(target, [layout.convert(*each) for each in pieces]), led

    @staticmethod
    def _add(
        words: Words,
        pieces: list[tuple[Words, Layout]],
        runner: PipelineRunner,
        target: Table,
        run: Run,
    ) -> None:
        if len(words):
            pieces.append((words, target.layout))
            run.budget.spend(runner.pipeline, words)

    def _fresh(self, words: Words) -> Words:
        """Return the tuples sorted, each once, less those that are known."""
        marked = [each for each in self._step.without if self._tables[each.relation].is_marked]
        for each in marked:
            words = words[~self._tables[each.relation].contains(words, each.state)]
        return self._unknown(distinct(words), marked)

    def _unknown(self, words: Words, but: Collection[Reference] = ()) -> Words:
        """Return the tuples less those that are known, in other relations than some."""
        for each in self._step.without:
            table = self._tables[each.relation]
            if each not in but and table.size(each.state):
                found = table.contains(words, each.state)
                if np.count_nonzero(found):
                    words = words[~found]
        return words

    def _reduced(self, target: Table, pieces: list[Words]) -> Words:
        words = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        match self._step.reduce:
            case None:
                return words if len(pieces) == 1 else distinct(words)
            case Reduce.MIN:
                words = words if len(pieces) == 1 else distinct(words)
                return words[_starts(words, target.layout)]
            case Reduce.SUM:
                return self._unknown(self._sums(words, target))

    def _sums(self, words: Words, target: Table) -> Words:
        """Return each group with the sum of its last column, where that is not 0; null is 0."""
        words = np.sort(words)
        layout, type_ = target.layout, target.types[-1]
        last = len(target.types) - 1
        words = words[layout.column(words, last) != 0]
        if not len(words):
            return words
        starts = _starts(words, layout)
        values = self._dictionary.decode(layout.column(words, last), type_)
        sizes = np.diff(np.append(starts, len(words)))
        sums, too_large = exact_sums(values, starts, sizes, type_, type_)
        nonzero = (sums != 0) if too_large is None else (sums != 0) | too_large
        codes = self._dictionary.encode(
            sums[nonzero], None if too_large is None else too_large[nonzero], type_
        )
        firsts = words[starts[nonzero]]
        keys = [layout.column(firsts, at) for at in range(last)]
        return target.pack([*keys, codes], len(firsts))


def _heads(runner: PipelineRunner, run: Run) -> Iterable[tuple[list[Codes], int]]:
    """Yield the heads of a pipeline; raise if an expression has no value, and that counts."""
    pipeline = runner.pipeline
    frames = runner.frames(run)
    if pipeline.is_bag and pipeline.is_lenient and pipeline.judge:
        # What the judge lets pass includes the rows that no fault befell, which count once.
        frames = list(frames)
        if runner.has_fault:
            yield from judge(pipeline, run)
            return
    for frame in frames:
        yield runner.head(frame), frame.count
    if pipeline.judge and runner.has_fault:
        yield from judge(pipeline, run)


def _starts(words: Words, layout: Layout) -> Codes:
    """Return where sorted tuples begin to differ in a column that is not the last."""
    prefix = layout.prefix(words, len(layout.widths) - 1)
    is_start = np.empty(len(words), np.bool_)
    is_start[:1] = True
    is_start[1:] = prefix[1:] != prefix[:-1]
    return is_start.nonzero()[0]
