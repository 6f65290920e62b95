"""One `Derive` step: the heads of its pipelines as one sorted array."""

from collections.abc import Iterator

import numpy as np

from corollary.core.pipeline import Pipeline
from corollary.core.plan import Derive, Reduce
from corollary.engines.local.aggregates import exact_sums
from corollary.engines.local.judge import judge
from corollary.engines.local.layout import Codes, Words
from corollary.engines.local.prepared import Prepared
from corollary.engines.local.runs import distinct
from corollary.engines.local.table import Table


def derive(step: Derive, prepared: Prepared) -> Words:
    """Return the tuples of a step, packed and sorted for its target."""
    target = prepared.tables[step.target]
    layout = target.layout
    is_sum = step.reduce is Reduce.SUM
    pieces: list[Words] = []
    for pipeline in step.pipelines:
        for columns, count in _batches(pipeline, prepared):
            current = target.layout
            if current is not layout:
                pieces = [current.pack(layout.columns(each), len(each)) for each in pieces]
                layout = current
            words = layout.pack(columns, count)
            if not is_sum:
                words = _fresh(step, words, prepared)
            if len(words):
                pieces.append(words)
                prepared.budget.spend(pipeline, words)
    if target.layout is not layout:
        pieces = [target.layout.pack(layout.columns(each), len(each)) for each in pieces]
    prepared.budget.release()
    if not pieces:
        return np.empty(0, target.layout.dtype)
    match step.reduce:
        case None:
            return pieces[0] if len(pieces) == 1 else distinct(np.concatenate(pieces))
        case Reduce.MIN:
            words = pieces[0] if len(pieces) == 1 else distinct(np.concatenate(pieces))
            return words[_starts(words, target)]
        case Reduce.SUM:
            return _without(step, _sums(np.concatenate(pieces), target, prepared), prepared)


def _batches(pipeline: Pipeline, prepared: Prepared) -> Iterator[tuple[list[Codes], int]]:
    """Yield the heads of a pipeline; raise if an expression has no value, and that counts."""
    runner = prepared.runner(pipeline)
    if not pipeline.is_bag:
        yield from runner.run(prepared)
        if runner.has_fault and pipeline.judge:
            yield from judge(pipeline, prepared)
        return
    # What a judge lets pass includes the rows that no fault befell; a bag must not have them twice.
    batches = list(runner.run(prepared))
    if runner.has_fault and pipeline.judge:
        judged = judge(pipeline, prepared)
        batches = judged if pipeline.is_lenient else batches
    yield from batches


def _fresh(step: Derive, words: Words, prepared: Prepared) -> Words:
    """Return the tuples sorted, each once, less those that are known."""
    known = [(prepared.tables[each.relation], each.state) for each in step.without]
    for table, state in known:
        if table.is_marked:
            words = words[~table.contains(words, state)]
    words = distinct(words)
    for table, state in known:
        if not table.is_marked:
            words = words[~table.contains(words, state)]
    return words


def _without(step: Derive, words: Words, prepared: Prepared) -> Words:
    """Return the tuples less those that are known."""
    for each in step.without:
        words = words[~prepared.tables[each.relation].contains(words, each.state)]
    return words


def _starts(words: Words, table: Table) -> Codes:
    """Return where sorted tuples begin to differ in a column that is not the last."""
    prefix = table.layout.prefix(words, len(table.types) - 1)
    is_start = np.empty(len(words), np.bool_)
    is_start[:1] = True
    np.not_equal(prefix[1:], prefix[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def _sums(words: Words, target: Table, prepared: Prepared) -> Words:
    """Return each group with the sum of its last column, where it is not 0; null counts as 0."""
    words = np.sort(words)
    last = len(target.types) - 1
    layout = target.layout
    words = words[layout.column(words, last) != 0]
    starts = _starts(words, target)
    if not len(starts):
        return words
    values = prepared.dictionary.decode(layout.column(words, last), target.types[last])
    sizes = np.diff(np.append(starts, len(words)))
    sums, too_large = exact_sums(values, starts, sizes, target.types[last], target.types[last])
    nonzero = (sums != 0) if too_large is None else (sums != 0) | too_large
    codes = prepared.dictionary.encode(
        sums[nonzero], None if too_large is None else too_large[nonzero], target.types[last]
    )
    firsts = words[starts[nonzero]]
    keys = [layout.column(firsts, at) for at in range(last)]
    return target.pack([*keys, codes], len(firsts))
