"""The pipeline: a program, its sources and a warehouse; each run processes only what has changed.

what changed in the sources and in the text → one transaction → commit → publish → deliver alerts
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.analysis.change_streams import PUSH, is_change_stream
from corollary.analysis.check import check
from corollary.analysis.pragmas import without_allowed
from corollary.core.alerts import LINEAGE_VARIABLE
from corollary.core.arrow import empty_table
from corollary.core.engine import LocalTable, TableHandle, ValueRange
from corollary.core.printer import print_program
from corollary.core.program import Program, Relation
from corollary.core.spark_io import is_spark_io
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.arguments import PATH, checked, chosen
from corollary.database.changes import Changes
from corollary.database.commit import OpenTransaction
from corollary.database.database import Database, state_of, store_of, warehouse_of
from corollary.database.intake import dry_run
from corollary.database.intake.event_tables import (
    event_operations,
    make_field_reader,
    with_event_relations,
)
from corollary.database.intake.source_guards import (
    SourceDifference,
    SourceGuards,
    parse_bound,
    refuse_quarantined,
)
from corollary.database.pending_commit import DeferredOperations, FollowUp, Position
from corollary.database.program.loaded_program import load_program, read_programs
from corollary.database.program.parts import SOURCE_PREFIX, find_agreeing
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.transaction import Transaction
from corollary.database.writing import quarantine
from corollary.database.writing.operations import Operation
from corollary.errors import CorollaryError, Diagnostic, InputError
from corollary.warehouse.copies import CopiesHandle, count_copies
from corollary.warehouse.files.places import Place, place_of
from corollary.warehouse.formats.dialect import is_sqlite
from corollary.warehouse.sources.events.pushed_events import PushedEvents
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, QUARANTINE, BadRowPolicy, remaining
from corollary.warehouse.sources.source_factory import SourceFactory

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.alerts.delivery import Delivered
    from corollary.warehouse.publishing.outputs import PublishResult
    from corollary.warehouse.sources.source import EventBatch, Source, SourceChange


OWN_PREFIXES = ("flow ", "pipeline ")
"""Begin the names of positions that are of no source: see `corollary.pipelines`."""
ONE_SHOT_WARNINGS = {"C0701", "C0702"}
"""Warnings that do not apply here: relations may also be queried, and filled by `apply`."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where sources are, what is done about malformed records, and what is accepted of sources.

    Attributes:
        relations: the relations whose sources are read; None for all.
    """

    facts: Place = Path()
    root: Place | None = None
    bad_rows: BadRowPolicy = BadRowPolicy.QUARANTINE
    guards: SourceGuards = field(default_factory=SourceGuards)
    relations: frozenset[str] | None = None


@dataclass(slots=True)
class PipelineRun:
    """What a run did.

    Attributes:
        transaction: what changed; None if nothing did.
        commit: the commit it made, or the last one if there was nothing to do; None in a dry run.
        published: the tables that show it; None if nothing is published.
        delivered: the alerts that were delivered, also earlier ones; None in a dry run.
        warnings: about the program or the sources.
        quarantined: how many records are in quarantine.
        sources: what was read.
        plan: what a dry run has found.
        plan_id: what the plan of a dry run is known by, to approve it.
        why: proofs of what a dry run would violate, if they were asked for.
        waiting: how much is left for the next run, by the name of a stream.
    """

    transaction: Transaction | None = None
    commit: int | None = None
    published: "PublishResult | None" = None
    delivered: "Delivered | None" = None
    warnings: list[Diagnostic] = field(default_factory=list)
    quarantined: int = 0
    seconds: float = 0.0
    sources: list[dry_run.SourcePlan] = field(default_factory=list)
    plan: dry_run.RunPlan | None = None
    plan_id: str = ""
    why: Sequence[object] = ()
    waiting: dict[str, int] = field(default_factory=dict)

    @property
    def has_more(self) -> bool:
        """Whether a stream has more events than one commit takes."""
        return any(self.waiting.values())

    @property
    def changes(self) -> Changes:
        """What was added and removed, by relation."""
        return Changes({}) if self.transaction is None else self.transaction.changes

    def as_json(self, max_rows: int) -> dict[str, Any]:
        """Return what happened as `run --warehouse` prints it."""
        found: dict[str, Any] = {"commit": None, "changes": {}, "alerts": [], "stats": {}}
        if self.transaction is not None:
            found = self.transaction.as_json(max_rows)
        found["commit"] = self.commit
        return found if self.plan is None else {**found, "plan": self.plan.as_json()}


def run(
    database: Database,
    program: Program,
    inputs: Inputs | None = None,
    *,
    idempotency: str | None = None,
    is_dry: bool = False,
    approved: str | None = None,
    inspect: Callable[[OpenTransaction], None] | None = None,
    follow_up: FollowUp | None = None,
) -> PipelineRun:
    """Bring a warehouse up to date with a program and its sources; or find out what that would do.

    What `inspect` is for, `Transaction.inspect` says.

    Args:
        database: the warehouse.
        program: what is to be in force.
        inputs: where sources are, and what is accepted of them.
        idempotency: a key of the run.
        is_dry: whether to change nothing.
        approved: the plan that the run has to have.
        inspect: called before the end.
        follow_up: what to write that depends on what has come from the sources.

    Raises:
        InputError: the program or a source is not acceptable; nothing was changed.
        ConflictError: others committed first every time.
    """
    with _telling_failure(database, is_dry=is_dry), state_of(database).lock:
        transaction = database.transaction(
            idempotency=idempotency,
            publish=not is_dry and not database.publishes_by_hand,
            is_dry=is_dry,
        )
        if inspect is not None:
            transaction.inspect(inspect)
        if follow_up is not None:
            transaction.follow_up(follow_up)
        outcome = _run(
            database,
            program,
            inputs or Inputs(),
            transaction,
            is_needed=idempotency is not None or follow_up is not None,
            is_dry=is_dry,
            approved=approved,
        )
    if not is_dry:
        outcome.delivered = database.deliver()
    return outcome


@contextmanager
def _telling_failure(database: Database, *, is_dry: bool) -> Iterator[None]:
    """Send to OpenLineage, if it is configured, that a run has failed."""
    try:
        yield
    except CorollaryError as error:
        warehouse = warehouse_of(database) if os.environ.get(LINEAGE_VARIABLE) else None
        if warehouse is not None and not is_dry:
            from corollary.database.alerts.openlineage import send_failure

            send_failure(warehouse, error)
        raise


def push_events(
    database: Database, relation: str, lines: bytes, *, idempotency: str | None = None
) -> PipelineRun:
    """Do what events say that a client has pushed, in a transaction of their own.

    Args:
        database: the warehouse.
        relation: the one that they are about.
        lines: the events, one on each line.
        idempotency: a key of the client's; a second transaction of it does nothing.

    Raises:
        InputError: `C1739`, the relation takes no such events; or a guard refuses them.
    """
    with state_of(database).lock:
        digest = hashlib.blake2b(lines, digest_size=16, person=b"push").hexdigest()
        transaction = database.transaction(idempotency=idempotency, digest=digest)
        outcome = PipelineRun(transaction)
        if transaction.is_repeated:
            outcome.commit = transaction.commit_number
            return outcome
        state, program = state_of(database), database.program
        found = [
            each
            for each in program.directives
            if each.relation == relation and is_change_stream(each) and each.parameter("IO") == PUSH
        ]
        normal = state.loaded.normal
        if not found or program != with_event_relations(program, normal.relations):
            raise InputError.of(
                "C1739",
                f"`{relation}` takes no events from clients{', yet' if found else ''}.",
                None,
                "bring the program into force with `corollary run PROGRAM --warehouse W`, with "
                f"`.input {relation}(IO=push)` in it",
            )
        policy = BadRowPolicy.ABORT
        if quarantine.has_quarantine(program):
            policy = BadRowPolicy.QUARANTINE
        inputs = Inputs(bad_rows=policy)
        pushed = PushedEvents(lines)
        factory = SourceFactory(Path(), None, policy, fields=make_field_reader, pushed=pushed)
        declared = (each for each in program.declarations if each.name == relation)
        source = factory.source(
            found[0],
            normal.relations[relation],
            next((each.key for each in declared), ()),
            has_copies=relation in normal.bags,
        )
        reader = _SourceReader(state, store_of(database), outcome, program, inputs)
        transaction.read(lambda: reader.read([source], []))
        transaction.commit()
    outcome.commit = transaction.commit_number or database.commits
    return outcome


def run_until_read(
    database: Database,
    program: Program,
    inputs: Inputs | None = None,
    *,
    first: PipelineRun | None = None,
) -> Iterator[PipelineRun]:
    """Yield runs until streams have no more events than one of them takes.

    Args:
        database: the warehouse.
        program: what is to be in force.
        inputs: where sources are, and what is accepted of them.
        first: the first run, if it was made; it is not yielded.
    """
    outcome = first
    while outcome is None or (outcome.has_more and outcome.commit is not None):
        outcome = run(database, program, inputs)
        yield outcome


@checked(paths=PATH, facts=PATH, root=PATH, bad_rows=str, idempotency=str)
def run_files(
    database: Database,
    *paths: str | Path,
    facts: str | Path = "",
    root: str | Path | None = None,
    bad_rows: str = BadRowPolicy.QUARANTINE,
    max_bad: str | int = "50%",
    max_deletes: str | int = "50%",
    idempotency: str | None = None,
) -> PipelineRun:
    """Bring a database up to date with a program in files; see `Database.run`."""
    policy = chosen(BadRowPolicy, bad_rows, "C0927", "a choice for malformed records")
    if not paths:
        cure = 'write `db.run("shop.dl")`'
        raise InputError.of("C0927", "`run` takes the files of a program.", None, cure)
    guards = SourceGuards(parse_bound("max_bad", max_bad), parse_bound("max_deletes", max_deletes))
    place = None if root is None else place_of(str(root))
    inputs = Inputs(place_of(str(facts)), place, policy, guards)
    program = read_programs([Path(each) for each in paths])
    outcome = run(database, program, inputs, idempotency=idempotency)
    if idempotency is None:
        outcome = [outcome, *run_until_read(database, program, inputs, first=outcome)][-1]
    return outcome


def _run(
    database: Database,
    program: Program,
    inputs: Inputs,
    transaction: Transaction,
    *,
    is_needed: bool,
    is_dry: bool,
    approved: str | None,
) -> PipelineRun:
    began = time.monotonic()
    state = state_of(database)
    warnings = [each for each in check(program).warnings if each.code not in ONE_SHOT_WARNINGS]
    _refuse_writing(program)
    if transaction.is_repeated and is_dry:
        plan = dry_run.try_out(database, transaction)
        return PipelineRun(transaction, warnings=warnings, plan=plan)
    if transaction.is_repeated:
        published = None if database.publishes_by_hand else database.publish()
        return PipelineRun(transaction, transaction.commit_number, published, warnings=warnings)
    program = quarantine.with_same_quarantine(program, database.program)
    has_inputs = any(each.name == "input" for each in program.directives)
    if has_inputs and inputs.bad_rows is BadRowPolicy.QUARANTINE:
        program = quarantine.with_quarantine(program)
    relations = load_program(program).normal.relations
    program = with_event_relations(program, relations)
    factory = SourceFactory(
        inputs.facts,
        inputs.root,
        inputs.bad_rows,
        state.frames.read,
        state.frames.map,
        state.console,
        state.engine.tasks,
        make_field_reader,
    )
    sources = factory.sources(program, relations)
    outcome = PipelineRun(warnings=warnings)
    is_needed = is_needed or state.day is not None
    # Constants that were read again may be other values of Python, with the same text.
    if program != database.program and print_program(program) != print_program(database.program):
        transaction.set_program(program)
        is_needed = True
    store = store_of(database)
    known = {
        name: each
        for name, each in store.source_positions().items()
        if not name.startswith(OWN_PREFIXES)
    }
    changed = [
        each
        for each in sources
        if (inputs.relations is None or each.relation.name in inputs.relations)
        and not each.is_unchanged(_position(known, each.name))
    ]
    gone = sorted(known.keys() - {each.name for each in sources})
    reader = _SourceReader(state, store, outcome, program, inputs)
    unchanged = [each for each in sources if each not in changed]
    reader.refuse_quarantined(unchanged)
    outcome.sources += [
        dry_run.SourcePlan(each.name, each.relation.name, dry_run.SourceReading.UNCHANGED)
        for each in unchanged
    ]
    if changed or gone:
        transaction.read(lambda: reader.read(changed, gone))
        is_needed = True

    def found_plan() -> str:
        positions: dict[str, Position | None] = {
            each.name: known.get(each.name) for each in sources
        }
        return dry_run.plan_id(database, program, positions | reader.positions)

    def check_plan() -> DeferredOperations:
        if approved is not None:
            dry_run.check_approved(approved, found_plan())
        return DeferredOperations((), {})

    if is_dry:
        outcome.transaction = transaction
        outcome.plan = dry_run.try_out(database, transaction, outcome.sources)
        outcome.plan_id = found_plan()
        outcome.seconds = time.monotonic() - began
        return outcome
    if is_needed:
        transaction.read(check_plan)
        transaction.commit()
        outcome.transaction, outcome.published = transaction, transaction.published
    else:
        check_plan()
        if not database.publishes_by_hand:
            outcome.published = database.publish()
    outcome.commit = transaction.commit_number or database.commits
    if quarantine.has_quarantine(program):
        outcome.quarantined = state.engine.size(QUARANTINE.name)
    outcome.seconds = time.monotonic() - began
    return outcome


def _refuse_writing(program: Program) -> None:
    """Refuse outputs through Spark or to SQLite: they could not be repeated after a crash."""
    found = [
        Diagnostic(
            "C0990",
            f"`{each.relation}` is to be written "
            f"{'through Spark' if is_spark_io(each) else 'to SQLite'}, but a warehouse publishes "
            "Delta tables.",
            each.span,
            f'write `.output {each.relation}`; from Python, `db.relation("{each.relation}").spark()'
            ".write` goes anywhere",
        )
        for each in program.directives
        if each.name == "output" and (is_spark_io(each) or is_sqlite(each))
    ]
    if found:
        raise InputError(found)


def _position(known: Mapping[str, Position], name: str) -> dict[str, Any] | None:
    found = known.get(name)
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class _SourceReader:
    """Reads sources, relative to the state that a transaction starts from."""

    state: DatabaseState
    store: Store
    outcome: PipelineRun
    program: Program
    inputs: Inputs
    positions: dict[str, Position] = field(default_factory=dict)
    """How far each source that has changed was read last."""

    def read(self, changed: "Sequence[Source]", gone: Sequence[str]) -> DeferredOperations:
        """Return what has changed in sources; called whenever the transaction is tried.

        Args:
            changed: the sources to read.
            gone: the names of sources that are no longer read, whose rows are deleted.

        Raises:
            InputError: a source cannot be read, or what it has now is not accepted.
        """
        operations: list[Operation] = []
        positions: dict[str, Position] = {}
        replaced: list[SourceDifference] = []
        keys = {each.name: each.key for each in self.program.declarations}
        bags = {each.name for each in self.program.declarations if each.is_bag}
        for source in changed:
            change = self._change(source)
            relation = source.relation
            if change.events is not None:
                change, kept = self._applied(
                    source, change, change.events, has_copies=relation.name in bags
                )
                operations += kept
            rows = change.added, change.removed
            counts = len(change.added), len(change.removed)
            read = dry_run.SourcePlan(
                source.name, relation.name, dry_run.SourceReading.READ, counts, len(change.bad_rows)
            )
            self._note(read)
            key = keys.get(relation.name, ())
            has_copies = relation.name in bags
            replaced.append(
                SourceDifference(
                    source.name,
                    relation,
                    *rows,
                    key,
                    source.directive,
                    has_copies=has_copies,
                    is_stream=change.events is not None and not change.events.is_first,
                )
            )
            positions[source.name] = relation.name, change.position
            operations += self._quarantine(source.name, change.bad_rows, change.reread_files)
        known = self.store.source_positions()
        for name in gone:
            positions[name] = known[name][0], None
            operations += self._quarantine(name, NO_BAD_ROWS, None)
            left = self.state.loaded.normal.relations.get(known[name][0])
            if left is None:  # it is gone together with its source
                continue
            rows = empty_table(left), PartRows(self.state, left, SOURCE_PREFIX + name).table()
            counts = 0, len(rows[1])
            self._note(dry_run.SourcePlan(name, left.name, dry_run.SourceReading.GONE, counts))
            if left.name not in keys:  # it goes now, and nobody is taken by surprise
                continue
            key, has_copies = keys.get(left.name, ()), left.name in bags
            replaced.append(SourceDifference(name, left, *rows, key, has_copies=has_copies))
        self.positions.update(positions)
        sizes = {each.relation.name: self._size(each.relation.name) for each in replaced}
        self.inputs.guards.check_deletes(replaced, sizes, self.state.engine.tasks)
        for each in replaced:
            name, part = each.relation.name, SOURCE_PREFIX + each.source
            operations += [
                Operation(State.REMOVED, name, each.removed, part),
                Operation(State.ADDED, name, each.added, part),
            ]
        return DeferredOperations(operations, positions)

    def _applied(
        self, source: "Source", change: "SourceChange", batch: "EventBatch", *, has_copies: bool
    ) -> "tuple[SourceChange, list[Operation]]":
        """Return the rows that events add and remove, and what else they change."""
        part = SOURCE_PREFIX + source.name
        added, removed, operations = event_operations(
            batch,
            part,
            lambda relation: PartRows(self.state, relation, part),
            has_copies=has_copies,
        )
        self.outcome.waiting[source.name] = batch.lag
        return replace(change, added=added, removed=removed), operations

    def refuse_quarantined(self, sources: "Sequence[Source]") -> None:
        """Raise if records of sources are in quarantine, and the policy is to abort."""
        if self.inputs.bad_rows is BadRowPolicy.ABORT:
            held = self._quarantined()
            for source in sources:
                refuse_quarantined(remaining(held, source.name), source)

    def _quarantine(
        self, source: str, bad_rows: "pa.Table", reread_files: frozenset[str] | None
    ) -> list[Operation]:
        state = self.state
        return quarantine.quarantine_operations(
            state.engine, state.program, source, bad_rows, reread_files
        )

    def _quarantined(self) -> "pa.Table":
        return quarantine.quarantined(self.state.engine, self.state.program)

    def _change(self, source: "Source") -> "SourceChange":
        """Return what has changed in a source, if that is accepted."""
        self.state.console.progress(f"reading {source.name}")
        before = _position(self.store.source_positions(), source.name)
        earlier = PartRows(self.state, source.relation, SOURCE_PREFIX + source.name)
        change = source.change_since(before, earlier)
        self.outcome.warnings += without_allowed(change.warnings)
        held = remaining(self._quarantined(), source.name, change.reread_files)
        if self.inputs.bad_rows is BadRowPolicy.ABORT:
            refuse_quarantined(held, source)
        good = change.good_records
        if good is None:
            good = len(earlier) + len(change.added) - len(change.removed)
        bad = held.num_rows + len(change.bad_rows)
        is_stream = change.events is not None
        self.inputs.guards.check_records(source, change, good, bad, is_stream=is_stream)
        return change

    def _note(self, plan: dry_run.SourcePlan) -> None:
        """Note what was read of a source; in another attempt, again."""
        sources = self.outcome.sources
        sources[:] = [*(each for each in sources if each.name != plan.name), plan]

    def _size(self, relation: str) -> int:
        """Return how many rows a base relation has."""
        normal = self.state.loaded.normal
        base = normal.bases.get(relation, relation)
        if base not in normal.relations:
            return 0
        handle = self.state.engine.handle(base)
        return count_copies(handle) if relation in normal.bags else len(handle)


class PartRows:
    """The rows that a source has given to its relation: one part of it, perhaps none."""

    def __init__(self, state: DatabaseState, relation: Relation, part: str) -> None:
        normal = state.loaded.normal
        base = normal.bases.get(relation.name, relation.name)
        self._at = normal.parts.get(base, {}).get(part)
        self._state = state
        self._relation = relation
        self._has_copies = relation.name in normal.bags

    def __len__(self) -> int:
        return 0 if self._at is None else len(self._handle(self._at))

    def table(self) -> "pa.Table":
        """Return all tuples, with their copies."""
        return self._empty if self._at is None else self._handle(self._at).table()

    def handle(self) -> TableHandle:
        """Return a handle on all tuples, with their copies."""
        return LocalTable(self._empty) if self._at is None else self._handle(self._at)

    def _handle(self, name: str) -> TableHandle:
        handle = self._state.engine.handle(name)
        return CopiesHandle(handle) if self._has_copies else handle

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> "pa.Table":
        """Return those in one of several boxes, each once, perhaps with others."""
        return self._empty if self._at is None else self._state.engine.within(self._at, boxes)

    def matching(self, rows: "pa.Table", columns: Sequence[int]) -> "pa.Table":
        """Return those that agree with one of some rows in some columns, each once."""
        if self._at is None:
            return self._empty
        state = self._state
        normal = state.loaded.normal
        keys = rows.select(list(columns))
        return find_agreeing(
            state.engine, normal, self._at, keys, columns=columns, limits=state.limits
        )

    @property
    def _empty(self) -> "pa.Table":
        return empty_table(self._relation)
