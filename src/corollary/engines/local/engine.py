"""The interpreter of plans in one process."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from corollary.core.arrow import nullary_table
from corollary.core.engine import Limits
from corollary.core.pipeline import Pipeline
from corollary.core.plan import Aggregate, Call, Derive, Extend, Loop, Plan, Step, Store, steps_of
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.engines.local.aggregates import aggregate
from corollary.engines.local.budget import Budget
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.judge import judge
from corollary.engines.local.layout import Codes, Words
from corollary.engines.local.pipelines import PipelineRunner
from corollary.engines.local.runs import distinct
from corollary.engines.local.table import Table

SAMPLE = 1 << 15
"""Distinct values are estimated from about so many tuples."""


class LocalEngine:
    """Relations as coded, packed, sorted arrays; plans run step by step."""

    def __init__(self) -> None:
        self._dictionary = Dictionary()
        self._relations: dict[str, Relation] = {}
        self._tables: dict[str, Table] = {}

    # --- relations -----------------------------------------------------------------------------

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Make relations known; those already known stay as they are."""
        for name, relation in relations.items():
            if name not in self._relations:
                self._relations[name] = relation
                self._tables[name] = Table(relation.types, self._dictionary)

    def insert(self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table) -> None:
        """Add tuples to a base relation."""
        table = self._tables[relation]
        types = table.types
        if isinstance(rows, Sequence):
            count = len(rows)
            columns = [
                self._dictionary.encode_python((row[index] for row in rows), type_)
                for index, type_ in enumerate(types)
            ]
        else:
            count = rows.num_rows
            columns = [
                self._dictionary.encode_arrow(rows.column(index), type_)
                for index, type_ in enumerate(types)
            ]
        table.insert(columns, count)

    def commit(self) -> None:
        """Make NEW the OLD of every relation."""
        for table in self._tables.values():
            table.commit()

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        table = self._tables[relation]
        words = table.words(state)
        columns = [
            self._dictionary.decode_arrow(table.layout.column(words, index), type_)
            for index, type_ in enumerate(table.types)
        ]
        names = self._relations[relation].columns
        if not columns:
            return nullary_table(len(words))
        return pa.table(columns, names=list(names))

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        return self._tables[relation].size(state)

    def statistics(self) -> Statistics:
        """Return the sizes of relations and, for those with tuples, distinct values by column."""
        sizes = {name: self.size(name) for name in self._relations}
        spread = {}
        for name, size in sizes.items():
            if size:
                table = self._tables[name]
                words = table.words(State.NEW)
                sample = words[:: 1 + size // SAMPLE]
                columns = table.layout.columns(sample)
                spread[name] = tuple(_distinct_values(column, size) for column in columns)
        return Statistics(sizes, spread)

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> None:
        """Run the main procedure of a plan."""
        working = {
            name: Table(types, self._dictionary)
            for name, types in plan.types.items()
            if name not in self._tables
        }
        tables = {**self._tables, **working}
        for name, orders in plan.orders.items():
            for order in orders:
                tables[name].layers(State.NEW, order)
        try:
            _Run(plan, tables, self._dictionary, recorder, limits).call(plan.main)
        except BaseException:
            for step in steps_of(plan):
                if isinstance(step, Store):
                    tables[step.relation].rollback()
            raise


def _distinct_values(sample: Codes, size: int) -> int:
    """Estimate the distinct values of a column from a sample (Charikar et al., PODS 2000)."""
    _, counts = np.unique(sample, return_counts=True)
    once = int(np.count_nonzero(counts == 1))
    scale = (size / len(sample)) ** 0.5
    return int(scale * once) + len(counts) - once


class _Run:
    """One run of a plan: working tables, prepared pipelines, limits."""

    def __init__(
        self,
        plan: Plan,
        tables: dict[str, Table],
        dictionary: Dictionary,
        recorder: Recorder,
        limits: Limits,
    ) -> None:
        self._plan = plan
        self._tables = tables
        self._dictionary = dictionary
        self._recorder = recorder
        self._budget = Budget(limits, tables, dictionary)
        self._runners: dict[int, PipelineRunner] = {}

    def call(self, procedure: str) -> None:
        """Run a procedure."""
        self._budget.check_totals()
        self._recorder.procedure(procedure)
        for step in self._plan.procedures[procedure]:
            self._step(step)

    def _step(self, step: Step) -> None:
        match step:
            case Derive():
                self._assign(step, self._derive(step))
            case Aggregate():
                self._assign(step, self._aggregate(step))
            case Extend(target=target, source=source):
                self._tables[target].extend(self._tables[source].words(State.NEW))
            case Store(relation=relation, source=source):
                self._tables[relation].replace(self._tables[source].words(State.NEW))
                self._tables[source].clear()
            case Loop():
                self._loop(step)
            case Call(procedure=procedure):
                self.call(procedure)
            case _:
                assert_never(step)

    def _assign(self, step: Derive | Aggregate, words: Words) -> None:
        self._tables[step.target].assign(words)
        self._budget.check_totals()
        self._recorder.step(step, len(words))

    def _loop(self, loop: Loop) -> None:
        for step in loop.steps:
            if isinstance(step, Extend):
                self._tables[step.target].mark()
        rounds = 0
        while any(self._tables[each.relation].size(each.state) for each in loop.until_empty):
            if any(self._tables[name].size(State.NEW) >= size for name, size in loop.limits):
                return
            rounds += 1
            self._budget.check_rounds(rounds)
            for step in loop.steps:
                self._step(step)
            self._recorder.round(rounds)

    def _derive(self, step: Derive) -> Words:
        target = self._tables[step.target]
        layout = target.layout
        pieces: list[Words] = []
        for pipeline in step.pipelines:
            for columns, count in self._batches(pipeline):
                current = target.layout
                if current is not layout:
                    pieces = [current.pack(layout.columns(each), len(each)) for each in pieces]
                    layout = current
                words = self._fresh(step, layout.pack(columns, count))
                if len(words):
                    pieces.append(words)
                    self._budget.spend(pipeline, words)
        if target.layout is not layout:
            pieces = [target.layout.pack(layout.columns(each), len(each)) for each in pieces]
        self._budget.release()
        if len(pieces) < 2:
            return pieces[0] if pieces else np.empty(0, target.layout.dtype)
        return distinct(np.concatenate(pieces))

    def _batches(self, pipeline: Pipeline) -> Iterator[tuple[list[Codes], int]]:
        """Yield the heads of a pipeline; raise if an expression has no value, and that counts."""
        runner = self._runner(pipeline)
        yield from runner.run()
        if runner.has_fault and pipeline.judge:
            yield from judge(pipeline, self._tables, self._dictionary, self._budget.tick)

    def _fresh(self, step: Derive, words: Words) -> Words:
        """Return the tuples sorted, each once, less those that are known."""
        known = [(self._tables[each.relation], each.state) for each in step.without]
        for table, state in known:
            if table.is_marked:
                words = words[~table.contains(words, state)]
        words = distinct(words)
        for table, state in known:
            if not table.is_marked:
                words = words[~table.contains(words, state)]
        return words

    def _runner(self, pipeline: Pipeline) -> PipelineRunner:
        runner = self._runners.get(id(pipeline))
        if runner is None:
            runner = PipelineRunner(pipeline, self._tables, self._dictionary, self._budget.tick)
            self._runners[id(pipeline)] = runner
        return runner

    def _aggregate(self, step: Aggregate) -> Words:
        body, target = self._tables[step.body.relation], self._tables[step.target]
        words = aggregate(step.aggregation, body, step.body.state, target, self._dictionary)
        for each in step.without:
            words = words[~self._tables[each.relation].contains(words, each.state)]
        return words
