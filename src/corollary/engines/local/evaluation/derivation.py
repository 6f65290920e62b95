"""One `Derive` step: the heads of its pipelines as one sorted array."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Protocol

import numpy as np

from corollary.core.pipeline import Reference
from corollary.core.plans import Derive, Reduce
from corollary.engines.local.evaluation.frames import Frame
from corollary.engines.local.evaluation.pipelines import PipelineRunner, RunContext
from corollary.engines.local.evaluation.prefetch import Prefetch
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Row, Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import PendingProbe, sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

HeadBatch = tuple[list[Codes], int]
"""Some heads of a pipeline: their columns, and how many there are."""


class BulkPipelines(Protocol):
    """Runs pipelines through which many rows flow."""

    @property
    def min_tuples(self) -> int:
        """A pipeline whose first probe gives fewer tuples is never bulk."""

    def heads(
        self, runner: PipelineRunner, target: str, context: RunContext, *, sums_last: bool
    ) -> Generator[HeadBatch] | None:
        """Return the heads of a pipeline for a relation in batches, or None if it is not bulk."""


class Derivation:
    """A step, prepared to run on the tables of a plan.

    Attributes:
        runners: of its pipelines.
    """

    def __init__(
        self,
        step: Derive,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        engine_relations: Collection[str],
        bulk: BulkPipelines | None = None,
    ) -> None:
        self._step = step
        self._bulk = bulk
        self._tables = tables
        self._dictionary = dictionary
        self.runners = [
            PipelineRunner(pipeline, tables, dictionary, engine_relations)
            for pipeline in step.pipelines
        ]
        self._is_set = step.reduce is not Reduce.SUM

    def run(self, context: RunContext) -> tuple[Tuples, int]:
        """Return the tuples of the step, as its target takes them, and the leads' size."""
        target = self._tables[self._step.target]
        # Each with its layout: a later pipeline may widen that of the target.
        pieces: list[tuple[Words, Layout]] = []
        rows: list[Row] = []
        led = 0
        deferred = self._subtracted_together(context)
        for runner in self.runners:
            size = self._lead_size(runner)
            if not size:
                continue
            if runner.lead is not None:
                led += size
            if size <= context.few:
                heads = self._heads_by_row(runner, context)
            elif runner.copied_source is not None and self._is_set:
                words = runner.copy(context)
                assert not isinstance(words, list)
                words = self._subtract_known(words, context, deferred)
                self._add(words, pieces, runner, target, context)
                continue
            else:
                heads = self._heads(runner, context)
            if isinstance(heads, list):
                rows += heads
                context.budget.count_tuples(runner.pipeline, len(heads), 0)
                continue
            with closing(heads) as batches:
                for columns, count in batches:
                    ranges = runner.head_ranges
                    if not self._is_set:
                        ranges[-1] = None  # sums may have been made, which are larger
                    words = target.fit(columns, ranges).pack(columns, count)
                    words = self._new_tuples(words, context, deferred) if self._is_set else words
                    self._add(words, pieces, runner, target, context)
        if not pieces:
            return self._reduce_rows(rows, target), led
        if rows:
            words = target.pack_rows(rows)
            words = self._new_tuples(words, context, deferred) if self._is_set else words
            pieces.append((words, target.layout))
        context.budget.release_batches()
        layout = target.layout
        converted = [layout.convert(*each) for each in pieces]
        return self._reduce(target, converted, context, deferred), led

    def is_led_by_few(self, context: RunContext) -> bool:
        """Whether all pipelines are led by few tuples, and none by all of a relation."""
        return not any(
            each.is_led_by_all or self._lead_size(each) > context.few for each in self.runners
        )

    def _lead_size(self, runner: PipelineRunner) -> int:
        """Return how many tuples the first probe reads; 1 without one."""
        source = runner.first_source if runner.lead is None else runner.lead
        if source is None:
            return 1
        size = self._tables[source.relation].size(source.state)
        # What comes before the first probe may have a fault.
        return size if runner.lead is not None else max(size, 1)

    def _heads_by_row(
        self, runner: PipelineRunner, context: RunContext
    ) -> list[Row] | Generator[HeadBatch]:
        """Return the heads of a pipeline that is led by few tuples."""
        if runner.copied_source is not None:
            copied = runner.copy(context, as_rows=True)
            assert isinstance(copied, list)
            return copied
        if self._bulk is not None and runner.is_led_by_all:
            # All tuples of a small relation may meet most of a large one.
            heads = self._bulk_heads(self._bulk, runner, context)
            if heads is not None:
                return heads
        found = runner.rows(context)
        if not isinstance(found, list):
            return run_heads(runner, context, found)
        return run_heads(runner, context) if runner.has_fault else found

    def _reduce_rows(self, rows: list[Row], target: Table) -> Tuples:
        """Return the tuples of the step, of all heads."""
        reduce = self._step.reduce
        if reduce is Reduce.SUM:
            found = sum_rows(rows, target, self._dictionary)
        elif len(rows) > 1:
            found = list(dict.fromkeys(rows))
        else:
            found = rows
        for each in self._step.without if found else ():
            table = self._tables[each.relation]
            if table.size(each.state):
                found = [row for row in found if not table.has_row(row, each.state)]
        if self._is_set and reduce is not None and len(found) > 1:
            return reduce_words(target.pack_rows(found), reduce, target, self._dictionary)
        return found

    def _subtracted_together(self, context: RunContext) -> list[Reference]:
        """Return what is subtracted from all heads at once: a lookup elsewhere takes long."""
        if not context.is_remote or len(self.runners) == 1 or not self._is_set:
            return []
        without = self._step.without
        return [each for each in without if self._tables[each.relation].is_remote(each.state)]

    def _heads(self, runner: PipelineRunner, context: RunContext) -> Generator[HeadBatch]:
        bulk, source, found = self._bulk, runner.first_source, None
        if (
            bulk is not None
            and source is not None
            and self._tables[source.relation].size(source.state) >= bulk.min_tuples
        ):
            found = self._bulk_heads(bulk, runner, context)
        return run_heads(runner, context) if found is None else found

    def _bulk_heads(
        self, bulk: BulkPipelines, runner: PipelineRunner, context: RunContext
    ) -> Generator[HeadBatch] | None:
        return bulk.heads(runner, self._step.target, context, sums_last=not self._is_set)

    @staticmethod
    def _add(
        words: Words,
        pieces: list[tuple[Words, Layout]],
        runner: PipelineRunner,
        target: Table,
        context: RunContext,
    ) -> None:
        if len(words):
            pieces.append((words, target.layout))
            context.budget.count_tuples(runner.pipeline, len(words), words.nbytes)

    def _new_tuples(
        self, words: Words, context: RunContext, deferred: Sequence[Reference]
    ) -> Words:
        """Return the tuples sorted, each once, without the known ones."""
        # A lookup in a bitmap is cheaper than sorting: do these first, the searches afterwards.
        marked = [each for each in self._step.without if self._tables[each.relation].has_bitmap]
        for each in marked:
            words = words[~self._tables[each.relation].contains(words, each.state)]
        return self._subtract_known(sort_distinct(words), context, [*marked, *deferred])

    def _subtract_known(
        self, words: Words, context: RunContext, skipped: Collection[Reference] = ()
    ) -> Words:
        """Return the tuples without those of the step's `without`, some of which are skipped."""
        without = [each for each in self._step.without if each not in skipped]
        if context.is_remote:
            words = self._fetch_known(words, without)
        for each in without:
            table = self._tables[each.relation]
            if table.size(each.state):
                found = table.contains(words, each.state)
                if np.count_nonzero(found):
                    words = words[~found]
        return words

    def _fetch_known(self, words: Words, without: Sequence[Reference]) -> Words:
        """Fetch which tuples are known; return them, packed in the layout of then."""
        words, layout, needed = self._unfetched_known(words, without)
        if needed:
            Prefetch(needed).fetch()
            for each in without:
                _ = self._tables[each.relation].layout
        return self._tables[self._step.target].layout.convert(words, layout)

    def _unfetched_known(
        self, words: Words, without: Sequence[Reference]
    ) -> tuple[Words, Layout, list[PendingProbe]]:
        """Return tuples as they are packed now, their layout, and what a lookup has to fetch."""
        target = self._tables[self._step.target]
        remote = [
            (table, table.remote, each.state)
            for each in without
            if (table := self._tables[each.relation]).remote is not None
        ]
        layout = target.layout
        for table, _, _ in remote:
            _ = table.layout  # which makes room for all texts: it is the target's as well
        words, layout = target.layout.convert(words, layout), target.layout
        needed = [
            probe for _, each, state in remote for probe in each.unfetched_words(words, state)
        ]
        return words, layout, needed

    def look_ahead(self, prefetch: Prefetch) -> None:
        """Add what the step has to fetch next, as far as what is here tells."""
        target = self._tables[self._step.target]
        without = [
            each for each in self._step.without if self._tables[each.relation].is_remote(each.state)
        ]
        for runner in self.runners:
            is_due = self._lead_size(runner) and (without or runner.is_remote)
            frame = runner.look_ahead(prefetch) if is_due else None
            if frame is not None and frame.count and without and self._is_set:
                columns = runner.head_columns(frame)
                words = target.fit(columns, runner.head_ranges).pack(columns, frame.count)
                prefetch.add(self._unfetched_known(sort_distinct(words), without)[2])

    def _reduce(
        self,
        target: Table,
        pieces: list[Words],
        context: RunContext,
        deferred: Sequence[Reference],
    ) -> Words:
        words = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if self._is_set and len(pieces) > 1:
            words = sort_distinct(words)
        if deferred:
            words = self._subtract_known(words, context, set(self._step.without) - set(deferred))
        words = reduce_words(words, self._step.reduce, target, self._dictionary)
        return words if self._is_set else self._subtract_known(words, context)


def reduce_words(
    words: Words, reduce: Reduce | None, target: Table, dictionary: Dictionary
) -> Words:
    """Return tuples of which those that differ in their last column only become one.

    Args:
        words: the tuples, sorted and distinct unless they are summed.
        reduce: how; None leaves them as they are.
        target: the table that they are packed for.
        dictionary: of their codes.
    """
    match reduce:
        case None:
            return words
        case Reduce.MIN:
            # The last column is the value: the first tuple of a sorted group has the least.
            # Least by code, which for integers below 2^61 is least by value.
            return words[_starts(words, target.layout)]
        case Reduce.MAX:
            starts = _starts(words, target.layout)
            return words[np.append(starts[1:], len(words)) - 1] if len(words) else words
        case Reduce.SUM:
            return _sums(words, target, dictionary)


def sum_rows(rows: list[Row], target: Table, dictionary: Dictionary) -> list[Row]:
    """Return each group with the sum of its last column, unless that is 0; null counts as 0."""
    type_ = target.types[-1]
    if not dictionary.has_integers(type_):
        words = _sums(target.pack_rows(rows), target, dictionary)
        return [*map(target.layout.unpack_row, words.tolist())]
    sums: dict[Row, int] = {}
    for row in rows:
        if row[-1]:
            key = row[:-1]
            sums[key] = sums.get(key, 0) + dictionary.decode_integer(row[-1], type_)
    return [(*key, dictionary.encode_integer(sums[key], type_)) for key in sums if sums[key]]


def _sums(words: Words, target: Table, dictionary: Dictionary) -> Words:
    """Return each group with the sum of its last column, unless that is 0; null counts as 0."""
    words = sort_words(words)
    layout, type_ = target.layout, target.types[-1]
    last = len(target.types) - 1
    words = words[layout.unpack_column(words, last) != 0]
    if not len(words):
        return words
    starts = _starts(words, layout)
    values = dictionary.decode(layout.unpack_column(words, last), type_)
    sizes = np.diff(np.append(starts, len(words)))
    from corollary.engines.local.evaluation.aggregation.aggregates import sum_groups

    sums, too_large = sum_groups(values, starts, sizes, type_, type_)
    nonzero = (sums != 0) if too_large is None else (sums != 0) | too_large
    codes = dictionary.encode(
        sums[nonzero], None if too_large is None else too_large[nonzero], type_
    )
    firsts = words[starts[nonzero]]
    keys = [layout.unpack_column(firsts, at) for at in range(last)]
    return target.pack([*keys, codes], len(firsts))


def run_heads(
    runner: PipelineRunner, context: RunContext, frames: Iterable[Frame] | None = None
) -> Generator[HeadBatch]:
    """Yield the heads of a pipeline; raise if an instance lacks a value and that is an error.

    Args:
        runner: of the pipeline.
        context: of the run.
        frames: those that pass all stages, if they are there already.
    """
    pipeline = runner.pipeline
    if frames is None:
        frames = runner.frames(context)
    if pipeline.is_bag and pipeline.is_lenient and pipeline.judge:
        # The judge returns the heads of rows without faults as well: in a bag they must count once.
        frames = list(frames)
        if runner.has_fault:
            yield from _judge(runner, context)
            return
    for frame in frames:
        yield runner.head_columns(frame), frame.count
    if pipeline.judge and runner.has_fault:
        yield from _judge(runner, context)
    if pipeline.is_deferred and runner.has_fault:
        context.has_doubt = True


def _judge(runner: PipelineRunner, context: RunContext) -> Iterable[HeadBatch]:
    from corollary.engines.local.evaluation.judge import judge  # few runs need it

    return judge(runner, context)


def _starts(words: Words, layout: Layout) -> Codes:
    """Return the indices of the first tuple of each group that differs in the last column only."""
    starts: Codes = first_mask(layout.prefix_keys(words, len(layout.widths) - 1)).nonzero()[0]
    return starts
