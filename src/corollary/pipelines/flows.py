"""Flows: what a run writes to streaming tables, and how far each flow has read its streams.

    gains(s)   what a stream s has gained since the commit that the flow's position names:
               the net change that later commits have recorded, and that of this transaction
    append     rows of the flow's query on gains(s), static relations as they are now
    AUTO CDC   the same rows are events, see `database.intake.change_events`

A flow without a position (a new one, or after a full refresh) reads all that its streams have.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import group_rows, schema_of
from corollary.core.engine import TableHandle
from corollary.core.graph import reachable
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.history import feeds_of
from corollary.database.intake.change_events import apply_events, identity_of
from corollary.database.pending_commit import FollowUp, PendingCommit, Position
from corollary.database.program.parts import find_agreeing
from corollary.database.relation_contents import evaluated_relation
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.writing.operations import Operation, apply_operations
from corollary.errors import InputError
from corollary.pipelines.compile import DatasetPlan, FlowPlan
from corollary.pipelines.digests import digest_of
from corollary.pipelines.graph import CLOCK, DatasetKind
from corollary.warehouse.copies import CopiesHandle, sum_counts
from corollary.warehouse.warehouse import Warehouse

SEEN = "seen"
"""The field of a flow's position: the last commit that it has read."""
DIGEST = "digest"
"""The field of the position of what Spark computes: of its query."""


@dataclass(slots=True)
class FlowRun:
    """The flows of one run.

    Attributes:
        plans: the datasets that are refreshed, in order.
        restarted: those that are truncated first, and whose flows begin anew.
        compute: returns of how many copies each row of a dataset that is left to Spark gets more
            or less, given what other commits have changed since it was computed last; None if it
            need not be computed.
        gone: the keys of flows that there are no more.
        time: that of the run, which is one for all rows of its commit.
        seconds: what each dataset took.
        touched: the datasets that got rows, or were computed.
    """

    state: DatabaseState
    store: Store
    warehouse: Warehouse | None
    plans: Sequence[DatasetPlan]
    restarted: frozenset[str]
    compute: "Callable[[DatasetPlan, Reading, frozenset[str]], pa.Table | None]"
    gone: frozenset[str] = frozenset()
    time: datetime = field(default_factory=partial(datetime.now, UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def follow_up(self) -> FollowUp:
        """Return what a transaction does when sources are read."""
        written = [each for each in self.plans if each.relation is not None]
        relations = {each.relation for each in written if each.relation is not None}
        flows = [flow for each in written for flow in each.flows]
        relations |= {flow.writes for flow in flows}
        relations |= {name for flow in flows for name in flow.gains.values()}
        relations |= {CLOCK.relation for flow in flows if flow.has_clock}
        steps = [partial(self._refresh, each) for each in written]
        return FollowUp(frozenset(relations), steps, self._positions)

    def _positions(self, number: int) -> dict[str, Position]:
        known = self.store.source_positions()
        found: dict[str, Position] = {
            flow.key: (flow.writes, {SEEN: number})
            for plan in self.plans
            for flow in plan.flows
            if self._seen(flow.key) != number
        }
        for plan in self.plans:
            if plan.spark is not None and plan.dataset.name in self.touched:
                position = {SEEN: number, DIGEST: digest_of(plan.spark[0].query)}
                found[spark_key(plan)] = (plan.dataset.name, position)
        return found | {key: (known[key][0], None) for key in self.gone}

    def _seen(self, key: str) -> int | None:
        found = self.store.source_positions().get(key)
        return None if found is None else int(found[1][SEEN])

    def _changed_since(self, key: str) -> frozenset[str]:
        """Return the relations that commits have changed since the position of a dataset."""
        seen, last = self._seen(key), self.state.commits
        if self.warehouse is None or seen is None or seen >= last:
            return frozenset()
        counts = self.warehouse.catalog.change_counts(seen, last)
        return frozenset(name for _, name, added, removed in counts if added or removed)

    def _refresh(self, plan: DatasetPlan, pending: PendingCommit) -> list[Operation]:
        """Return what one dataset gets."""
        began = time.monotonic()
        reading = Reading(self.state, pending)
        if plan.spark is not None:
            operations = self._recompute(plan, reading)
        else:
            operations = self._append(plan, reading)
        self.seconds[plan.dataset.name] = time.monotonic() - began
        if operations:
            self.touched.add(plan.dataset.name)
        return operations

    def _recompute(self, plan: DatasetPlan, reading: "Reading") -> list[Operation]:
        """Let a dataset have the rows that Spark computes, if it has to."""
        assert plan.relation is not None
        found = self.compute(plan, reading, self._changed_since(spark_key(plan)))
        if found is None:
            return []
        self.touched.add(plan.dataset.name)
        name = reading.counted(plan.relation)
        return [
            Operation(state, name, _positive(_signed(found, sign)))
            for state, sign in ((State.REMOVED, -1), (State.ADDED, 1))
        ]

    def _append(self, plan: DatasetPlan, reading: "Reading") -> list[Operation]:
        """Return what the flows of a streaming table do."""
        found: list[Operation] = []
        name = plan.dataset.name
        is_restarted = name in self.restarted
        written = dict.fromkeys(flow.writes for flow in plan.flows)
        found += [reading.removal(relation) for relation in written if is_restarted]
        for flow in plan.flows:
            seen = None if is_restarted else self._seen(flow.key)
            gains = {stream: self._gained(reading, stream, seen) for stream in flow.gains}
            if any(each.num_rows for each in gains.values()):
                rows = reading.evaluate(flow, gains, self.time)
                found += self._written(flow, rows, reading, found)
        found = [each for each in found if len(each.rows)]
        if found and plan.dataset.kind is DatasetKind.SINK and not is_restarted:
            assert plan.relation is not None
            found.insert(0, reading.removal(plan.relation))  # of a sink, one run's rows are kept
        return found

    def _written(
        self, flow: FlowPlan, rows: pa.Table, reading: "Reading", before: Sequence[Operation]
    ) -> list[Operation]:
        """Return what the rows of a flow change."""
        if flow.cdc is None:
            return [Operation(State.ADDED, reading.counted(flow.writes), rows)]
        shape = reading.normal.relations[flow.writes]
        history = flow.cdc.scd_type == 2
        identity = identity_of(flow.cdc.keys, has_history=history)
        held = schema_of(shape).empty_table()
        if not any(each.sign is State.REMOVED for each in before):
            positions = [shape.columns.index(_column(shape.columns, each)) for each in identity]
            held = reading.agreeing(flow.writes, rows, positions)
        for each in before:  # what an earlier flow of this run has written
            if each.sign is State.ADDED:
                held = pa.concat_tables([held, each.rows])
        keys = [_column(shape.columns, each) for each in flow.cdc.keys]
        added, removed = apply_events(held, rows, keys, has_history=history)
        return [
            Operation(State.REMOVED, flow.writes, removed),
            Operation(State.ADDED, flow.writes, added),
        ]

    def _gained(self, reading: "Reading", stream: str, seen: int | None) -> pa.Table:
        """Return what a stream has gained since a commit, with the number of copies.

        Raises:
            InputError: `C1723`, these commits are no longer kept.
        """
        name = reading.counted(stream)
        if seen is None:
            return reading.rows(name)
        shape = reading.normal.relations[name]
        changes = [
            reading.rows(name, State.ADDED),
            _signed(reading.rows(name, State.REMOVED), -1),
        ]
        last = self.state.commits
        if seen < last and self.warehouse is not None:
            oldest = int(self.warehouse.catalog.meta("oldest"))
            if seen < oldest - 1:
                raise InputError.of(
                    "C1723",
                    f"A flow has read `{stream}` up to commit {seen}, and commits are kept from "
                    f"{oldest} on: what came between is not known.",
                    None,
                    "run it with `--full-refresh`, and let `corollary gc` keep more commits",
                )
            for _, feed in feeds_of(self.warehouse, [name], seen, last):
                kinds = feed.column("_change_type")
                for kind, sign in (("insert", 1), ("delete", -1)):
                    part = feed.filter(pc.equal(kinds, kind)).select(list(shape.columns))
                    changes.append(_signed(part, sign))
        return _positive(sum_counts(changes, shape))


def spark_key(plan: DatasetPlan) -> str:
    """Return the key of the position of a dataset that is left to Spark."""
    return f"flow {plan.dataset.name}.spark"


def _signed(counted: pa.Table, sign: int) -> pa.Table:
    """Return rows with their numbers of copies, or with the opposite of these."""
    last = counted.num_columns - 1
    copies = pc.multiply(counted.column(last), sign)
    return counted.set_column(last, counted.column_names[last], copies)


def _positive(counted: pa.Table) -> pa.Table:
    return counted.filter(pc.greater(counted.column(counted.num_columns - 1), 0))


def _column(columns: Sequence[str], name: str) -> str:
    return next(each for each in columns if each.lower() == name.lower())


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads relations in a transaction before its views are maintained."""

    state: DatabaseState
    pending: PendingCommit

    @property
    def normal(self) -> NormalProgram:
        """The program that the transaction puts into force."""
        return self.pending.planned

    def counted(self, relation: str) -> str:
        """Return the relation that has the rows of another, with their copies if it has any."""
        return self.normal.bags.get(relation, relation)

    def rows(self, name: str, state: State = State.NEW) -> pa.Table:
        """Return the rows of a stored relation."""
        base = self.normal.bases.get(name, name)
        return self.state.engine.read(base, state)

    def removal(self, relation: str) -> Operation:
        """Return the operation that removes all rows of a base relation."""
        name = self.counted(relation)
        return Operation(State.REMOVED, name, self.rows(name))

    def agreeing(self, name: str, rows: pa.Table, columns: Sequence[int]) -> pa.Table:
        """Return the rows of a base relation that agree with some of others in some columns."""
        state, names = self.state, self.normal.relations[name].columns
        wanted = rows.select([names[each] for each in columns])
        base = self.normal.bases.get(name, name)
        keys = group_rows(wanted, wanted.column_names)
        return find_agreeing(
            state.engine, self.normal, base, keys, columns=columns, limits=state.limits
        )

    def whole(self, relation: str) -> TableHandle:
        """Return a handle on any relation as it is now, with each row as often as it is there."""
        name = self.counted(relation)
        return self.handle(name) if name == relation else CopiesHandle(self.handle(name))

    def is_touched(self, relations: Sequence[str], earlier: Iterable[str]) -> bool:
        """Whether some relations may have other rows than before the transaction.

        Or than before the commits that have changed others, `earlier`.
        """
        if self.pending.before is not self.normal:
            return True
        stale = self._stale(earlier)
        return any(self.counted(each) in stale or each in stale for each in relations)

    def evaluate(self, flow: FlowPlan, gains: Mapping[str, pa.Table], now: datetime) -> pa.Table:
        """Return the rows of a flow's view on what its streams have gained, at a time."""
        state, normal = self.state, self.normal
        given = [
            Operation(State.ADDED, self.counted(flow.gains[stream]), rows)
            for stream, rows in gains.items()
        ]
        if flow.has_clock:
            clock = schema_of(normal.relations[CLOCK.relation])
            given.append(Operation(State.ADDED, CLOCK.relation, pa.table([[now]], schema=clock)))
        apply_operations(state.engine, normal, given, state.limits)
        try:
            return self.evaluated(self.counted(flow.view))
        finally:
            back = [replace(each, sign=State.REMOVED) for each in given]
            apply_operations(state.engine, normal, back, state.limits)

    def evaluated(self, name: str) -> pa.Table:
        """Return the tuples of a relation, derived from what is stored and still right."""
        relation = self.normal.relations[name]
        found = self.handle(name).table()
        return found.rename_columns(list(relation.columns)).cast(schema_of(relation))

    def handle(self, name: str) -> TableHandle:
        """Return a handle on these tuples; its columns may have other names."""
        state, normal = self.state, self.normal
        if not normal.relations[name].is_derived:
            return state.engine.handle(normal.bases.get(name, name))
        stale = self._stale()
        is_same = self.pending.before is normal

        def is_readable(other: str) -> bool:
            found = normal.relations[other]
            return not found.is_derived or (is_same and found.is_stored and other not in stale)

        with evaluated_relation(
            state.engine,
            normal,
            name,
            data=State.NEW,
            statistics=state.planner.query_statistics(normal),
            recorder=ProgressRecorder(state.console),
            limits=state.limits,
            is_readable=is_readable,
        ) as answers:
            return state.engine.handle(answers)

    def _stale(self, earlier: Iterable[str] = ()) -> set[str]:
        """Return the relations that changed ones reach."""
        readers: dict[str, list[str]] = {}
        for rule in self.normal.rules:
            for literal in rule.literals:
                readers.setdefault(literal.relation, []).append(rule.head.relation)
        for each in self.normal.aggregations:
            readers.setdefault(each.body, []).append(each.relation)
        changed = {*self.state.engine.changed(), *earlier}
        return {*reachable(changed, lambda name: readers.get(name, ()))}
