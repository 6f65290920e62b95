"""Commit: the one place that knows the order in which things happen.

net change of base relations and rules; what follows from it in other base relations
→ keys, but for those that triggers may repair
→ plan
→ maintain every relevant relation, stratum by stratum
→ rounds of triggers, until one changes nothing; all keys
→ constraints, alerts and other event predicates, on the net change
→ record, all or nothing
→ publish
→ deliver
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from corollary.active.events import has_observable_change
from corollary.analysis.bags import ROWS_SUFFIX
from corollary.console import Phase
from corollary.core.alerts import Alert
from corollary.core.engine import within_seconds
from corollary.core.once import in_order
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.recorder import JobRecord, job_group
from corollary.core.states import CHANGES
from corollary.data_class import dataclass
from corollary.database import counters, pending_commit
from corollary.database.access.principals import AccessRole, Principal
from corollary.database.changes import Changes, KeptTuples, collect_changes
from corollary.database.planning import Stage
from corollary.database.program.added_relations import add_relations
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import writable_relation
from corollary.database.program.program_edits import load_next_program
from corollary.database.program_change import Conversion
from corollary.database.reactions import trigger_rounds
from corollary.database.reactions.keys import check_keys
from corollary.database.reactions.reactions import ExistingViolations, Violation, evaluate_reactions
from corollary.database.relation_plans import RelationPlan, plan_relations
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.writing.bounds import keep_bounds
from corollary.database.writing.day import day_operations
from corollary.database.writing.operations import (
    Operation,
    apply_operations,
    apply_request,
    fact_edits,
    with_written_parts,
)
from corollary.errors import ConflictError, ConstraintError, Diagnostic, InputError, LimitError
from corollary.maintain.maintenance import Maintenance
from corollary.maintain.update import Update
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts
from corollary.warehouse.catalog.idempotency_keys import given_key

if TYPE_CHECKING:
    from corollary.database.alterations import Alter
    from corollary.warehouse.publishing.outputs import PublishResult

KEY_REUSED = "C0929"
"""The code of an idempotency key that comes with another change."""

MAX_TRIES = 10
"""How often a transaction is tried when other processes commit first."""

MAX_ALERT_DEPTH = 16
"""How many commits in a row may each be made by alerts of the one before."""

Result = TypeVar("Result")


@dataclass(slots=True)
class TransactionRequest:
    """What a transaction asks for.

    Attributes:
        author: on whose behalf it is made.
        operations: on base relations, in the order given.
        columns: the relations that rows were given for, as they were declared then.
        reads: functions that return further operations, called on the state that is committed to.
        edits: of the program, in the order given.
        drops: the relations that edits drop with their tuples, in small letters; with each, how
            many operations and reads came before: what these do to it does not matter any more.
        alter: alters a relation, instead of edits.
        follow_up: what is written when all this is.
        delivers: the alerts that the commit itself delivers.
        idempotency: the key of the whole transaction, with the name of who has chosen it.
        keys: the idempotency keys of the requests that share the commit, if it is a group.
        digests: of the changes of these keys, as far as they are known.
        is_restored: whether the tuples were there before, in another database: no trigger is set
            off, and if they violate constraints, `existing` says what to do.
        inspect: called when everything is maintained, before it is recorded or rolled back; with
            it, a violated key is noted first, and raised at the end.

    The others are described in `Database.transaction`.
    """

    author: Principal
    # What may be added until the commit.
    operations: list[Operation] = field(default_factory=list)
    columns: dict[str, Relation] = field(default_factory=dict)
    reads: list[Callable[[], pending_commit.DeferredOperations]] = field(default_factory=list)
    edits: list[Callable[[Program], Program]] = field(default_factory=list)
    drops: dict[str, tuple[int, int]] = field(default_factory=dict)
    alter: "Alter | None" = None
    follow_up: pending_commit.FollowUp = pending_commit.NO_FOLLOW_UP
    # What is known from the start.
    algorithm: str | Mapping[str, str] | None = None
    is_traced: bool = False
    idempotency: str | None = None
    is_dry: bool = False
    publishes: bool = False
    existing: ExistingViolations = ExistingViolations.REPORT
    delivers: DeliveredAlerts | None = None
    keys: tuple[str, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    is_restored: bool = False
    inspect: "Callable[[OpenTransaction], None] | None" = None
    _edited: tuple[Program, Program, int] | None = None
    """A program, the same after the first edits, and how many these are."""

    def find_replay(self, store: Store) -> pending_commit.Replay | None:
        """Return what an earlier transaction of the same key did.

        Raises:
            InputError: `C0929`, it has made another change.
        """
        key = self.idempotency
        replay = None if key is None else store.replay_of(key)
        if key is None or replay is None:
            return None
        known, digest = replay.digest, self.digests.get(key)
        if known is not None and digest is not None and known != digest:
            raise InputError.of(
                KEY_REUSED,
                f"The idempotency key `{given_key(key)}` stands for another change, that of commit "
                f"{replay.number}.",
                None,
                "use a new key for a new change: nothing was changed",
            )
        return replay

    def check_rights(self) -> None:
        """Refuse what the author may not do.

        Raises:
            AccessError: `C1601`.
        """
        if self.edits or self.alter is not None:
            self.author.require(AccessRole.ADMIN, "change rules")
        if not self.is_dry:
            self.author.require(AccessRole.WRITE, "change data")

    def edit(self, program: Program) -> Program:
        """Return a program with all edits."""
        if self._edited is None or self._edited[0] is not program:
            self._edited = program, program, 0
        _, edited, done = self._edited
        for edit in self.edits[done:]:
            edited = edit(edited)
        self._edited = program, edited, len(self.edits)
        return edited

    def drop(self, relations: Iterable[str]) -> None:
        """Note relations that the last edit has dropped with their tuples."""
        for name in relations:
            self.drops[name.lower()] = len(self.operations), len(self.reads)
            self.columns = {at: it for at, it in self.columns.items() if at.lower() != name.lower()}

    def without_dropped(
        self, numbered: Iterable[tuple[int, Operation]], *, are_read: bool
    ) -> Iterator[Operation]:
        """Yield operations, or those of reads, but for those on what is dropped later."""
        if not self.drops:
            yield from (each for _, each in numbered)
            return
        for number, each in numbered:
            name = each.relation.lower()
            until = self.drops.get(name) or self.drops.get(name.removesuffix(ROWS_SUFFIX), (0, 0))
            if number >= until[are_read]:
                yield each

    def add_edit(self, program: Program, edit: Callable[[Program], Program]) -> None:
        """Add an edit, and try it on the program in force."""
        edited = edit(self.edit(program))
        self.edits.append(edit)
        self._edited = program, edited, len(self.edits)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction whose views are maintained, and that is not recorded or rolled back yet.

    Attributes:
        update: what it changes; the engine has both states.
        after: the program that it puts into force.
        rounds: what triggers did, if some may have been set off.
        outcome: what is known so far.
    """

    update: Update
    after: LoadedProgram
    rounds: trigger_rounds.TriggerRounds | None
    outcome: "CommitOutcome"


@dataclass(slots=True)
class CommitOutcome:
    """What a transaction did; see the attributes of `Transaction`."""

    changes: Changes = field(default_factory=lambda: Changes({}))
    alerts: Sequence[Alert] = ()
    stats: Mapping[str, counters.Stats] = field(default_factory=dict)
    trace: Sequence[counters.TraceRow] = ()
    jobs: Sequence[JobRecord] = ()
    kept: Mapping[str, KeptTuples] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    triggered: Sequence[trigger_rounds.TriggerEffects] = ()
    existing: Sequence[Violation] = ()
    violations: Sequence[Violation] = ()
    commit_number: int | None = None
    is_repeated: bool = False
    published: "PublishResult | None" = None
    created: frozenset[str] = frozenset()
    program: LoadedProgram | None = None
    plan: Sequence[RelationPlan] = ()
    failures: list[Diagnostic] = field(default_factory=list)

    @classmethod
    def of_replay(cls, replay: pending_commit.Replay) -> "CommitOutcome":
        """Return what an earlier transaction of the same key did."""
        done = replay.changes, replay.alerts, replay.stats
        return cls(*done, commit_number=replay.number, is_repeated=True)


def commit(state: DatabaseState, store: Store, request: TransactionRequest) -> CommitOutcome:
    """Do what a transaction asks for, and maintain what depends on it; all or nothing.

    Raises:
        AccessError: its author may not do this.
        InputError: the rules do not fit, or an expression has no value.
        ConstraintError: a key, a functional dependency or a constraint would not hold.
        LimitError: a limit was hit.
        ConflictError: other processes committed first every time.
    """
    if pending_commit.ALERT_DEPTH.get() > MAX_ALERT_DEPTH:
        raise LimitError(
            f"alerts have made {MAX_ALERT_DEPTH} commits, each by an alert of the one before; "
            "nothing was changed\n"
            "  = do not let the events of alerts depend on the relation they are inserted into"
        )
    with state.lock, job_group(store.location, state.commits + 1):
        try:
            with within_seconds(state.limits):
                outcome = retry_on_conflict(state, store, lambda: _attempt(state, store, request))
            if outcome.commit_number is not None and not outcome.is_repeated:
                if outcome.created:
                    state.arrange_for_changes(outcome.created)
                store.fold_if_due(state)
            if request.publishes and not request.is_dry:
                state.console.enter(Phase.PUBLISH)
                is_fresh = outcome.commit_number == state.commits
                outcome.published = store.publish(state, outcome.changes if is_fresh else None)
        finally:
            state.console.enter(Phase.OTHER)
    if not request.is_dry:
        state.after_commit()  # delivers to callbacks
    return outcome


def rehearse(state: DatabaseState, store: Store, request: TransactionRequest) -> CommitOutcome:
    """Do what a dry transaction asks for on the state as it is, not caught up, and roll it back."""
    with state.lock, within_seconds(state.limits):
        was_committing, state.is_committing = state.is_committing, True
        try:
            return _attempt(state, store, request)
        finally:
            state.is_committing = was_committing
            state.console.enter(Phase.OTHER)


def retry_on_conflict(state: DatabaseState, store: Store, work: Callable[[], Result]) -> Result:
    """Do work that ends in a commit; repeat it if another process has committed first.

    Raises:
        ConflictError: others committed first every time.
    """
    with state.lock:
        tries = MAX_TRIES
        while True:
            store.catch_up(state)
            # All that the work reads has to belong to the one state that the commit follows.
            state.is_committing = True
            try:
                with job_group(store.location, state.commits + 1):
                    return work()
            except ConflictError:
                tries -= 1
                if not tries:
                    raise
            finally:
                state.is_committing = False


def _attempt(state: DatabaseState, store: Store, request: TransactionRequest) -> CommitOutcome:
    """Try to commit on the state as it is now."""
    replay = request.find_replay(store)
    if replay is not None:
        return CommitOutcome.of_replay(replay)
    program, conversion, operations, positions = _gather(state, request)
    outcome = CommitOutcome(dropped=conversion.dropped)
    state.console.enter(Phase.PLAN)
    written = with_written_parts(program, operations, request.follow_up.relations)
    with state.begin(written, conversion) as pending:
        _note_request(pending, request, positions)
        after = pending.planned

        # Net change of base relations and rules.
        operations = [*fact_edits(pending.before, after), *operations]
        is_bounded = keep_bounds(operations, after)
        outcome.kept = apply_request(
            state.engine, after, operations, state.limits, state.loaded.dependencies
        )
        operations += _follow(state, request.follow_up, pending)

        update, maintenance = _plan(
            state,
            request,
            pending.before,
            after,
            refilled=pending.refilled,
            is_bounded=is_bounded and keep_bounds(operations, after),
        )

        # Another program, or a key, is recorded even if no tuple changes: with a key that is not
        # recorded, a retry would act on whatever has been committed since.
        is_new = store.is_durable and program.program != state.program
        has_key = request.idempotency is not None or bool(request.keys)
        must_record = is_new or has_key or pending.has_other_relations
        run: pending_commit.PlanRun | None = None
        rounds: trigger_rounds.TriggerRounds | None = None
        if must_record or not _is_empty(state, update):
            has_triggers = not request.is_restored and _has_triggers(update)
            # A trigger may still repair a violated key of a relation from which it deletes.
            late = update.new.active.deleted_from if has_triggers else frozenset()
            check = partial(_check_keys, state, request, pending, outcome, late)
            check()
            run = _maintain(state, pending, update, maintenance)
            if has_triggers:
                rounds = trigger_rounds.TriggerRounds(state, store, pending)
                _run_triggers(state, request, rounds, run, check)
                operations, outcome.triggered = [*operations, *rounds.operations], rounds.chain
                if rounds.chain:  # undone: apply what was asked and what they added in one step
                    outcome.kept = apply_operations(state.engine, after, operations, state.limits)
                _check_keys(state, request, pending, outcome)
                run = _maintain_net_change(
                    state, request, pending, run, rounds, is_bounded=keep_bounds(operations, after)
                )
            update = run.update
        else:
            _check_keys(state, request, pending, outcome)

        outcome.changes = collect_changes(
            state.engine, update, state.watched, state.frames, pending.created
        )
        if run is not None and (must_record or not _is_empty(state, update)):
            outcome.trace, outcome.jobs = run.recorder.rows, run.recorder.jobs
            outcome.stats = counters.collect_stats(
                state.engine, update, run.maintenance, run.recorder
            )
        else:
            run = None  # triggers may undo everything

        # Constraints and alerts.
        _react(state, request, OpenTransaction(update, pending.after, rounds, outcome))
        if request.is_dry:
            return outcome
        if outcome.failures:
            raise ConstraintError(outcome.failures)
        positions |= request.follow_up.positions(state.commits + (run is not None))
        if run is None:
            store.record_positions(state, positions)
            state.note_no_change(program)
            state.forget_day()
            return outcome

        # Record, all or nothing.
        state.console.enter(Phase.STORE)
        ran = update, run.maintenance, run.recorder
        payload, pending.exact = state.planner.payload_after(*ran), state.planner.exact_after(*ran)
        pending.alerts, pending.changes, pending.stats = (
            outcome.alerts,
            outcome.changes,
            {name: each.as_json() for name, each in outcome.stats.items()},
        )
        number = store.record(state, pending, state.planner.stored_payload(payload, pending.stored))
        state.accept(pending, run, number)
        state.forget_day()
    outcome.commit_number, outcome.created = number, pending.created
    return outcome


def _note_request(
    pending: pending_commit.PendingCommit,
    request: TransactionRequest,
    positions: dict[str, pending_commit.Position],
) -> None:
    """Note what is recorded of a request."""
    pending.positions, pending.idempotency = positions, request.idempotency
    pending.keys, pending.digests = request.keys, request.digests
    pending.delivers, pending.depth = request.delivers, pending_commit.ALERT_DEPTH.get()


def _follow(
    state: DatabaseState, follow_up: pending_commit.FollowUp, pending: pending_commit.PendingCommit
) -> list[Operation]:
    """Write what depends on the other changes of base relations; return it."""
    found: list[Operation] = []
    for step in follow_up.steps:
        further = step(pending)
        apply_operations(state.engine, pending.planned, further, state.limits)
        found += further
    return found


def _react(state: DatabaseState, request: TransactionRequest, transaction: OpenTransaction) -> None:
    """Find alerts, what would violate constraints, and what happens to relations."""
    update, outcome, after = transaction.update, transaction.outcome, transaction.after
    result = evaluate_reactions(state, update, request.existing, transaction.rounds)
    outcome.alerts, outcome.existing = result.alerts, result.existing
    outcome.violations = result.violations
    if not request.is_restored or request.existing is ExistingViolations.REFUSE:
        outcome.failures += result.findings
    if request.is_dry or after.normal is not state.loaded.normal:
        outcome.program = after
        outcome.plan = plan_relations(
            state.engine,
            old=state.loaded.normal,
            update=update,
            after=after.normal,
            changes=outcome.changes,
            stats=outcome.stats,
        )
    if request.inspect is not None:
        request.inspect(transaction)


# --- net change ----------------------------------------------------------------------------------


def _gather(
    state: DatabaseState, request: TransactionRequest
) -> tuple[LoadedProgram, Conversion, list[Operation], dict[str, pending_commit.Position]]:
    """Return the program after all edits, all operations, and how far sources have been read.

    Raises:
        AccessError: the author may not do this.
    """
    request.check_rights()
    loaded, (program, conversion) = state.loaded, _edited_program(state, request)
    if request.reads:
        state.console.enter(Phase.READ)
    deferred = [read() for read in request.reads]
    if state.loaded is not loaded:  # a read has seen what others have committed
        program, conversion = _edited_program(state, request)
    _refuse_altered_columns(request.columns, program.normal)
    operations = day_operations(state.engine, state.loaded.normal, program.normal, state.day)
    operations += request.without_dropped(enumerate(request.operations), are_read=False)
    of_reads = ((at, each) for at, read in enumerate(deferred) for each in read.operations)
    operations += request.without_dropped(of_reads, are_read=True)
    positions = {name: each for read in deferred for name, each in read.positions.items()}
    return program, conversion, operations, positions


def _edited_program(
    state: DatabaseState, request: TransactionRequest
) -> tuple[LoadedProgram, Conversion]:
    if request.alter is not None:
        from corollary.database.alterations import altered_program

        return altered_program(state, request.alter)
    program = request.edit(state.program) if request.edits else state.program
    if program is state.program:
        return state.loaded, Conversion()
    if any(name.lower() in request.drops for name in state.loaded.normal.relations):
        from corollary.database.alterations import dropped_program

        return dropped_program(state, program, request.drops)
    added = add_relations(state.loaded, program)
    if added is None:
        added = load_next_program(program, state.loaded.normal, held=state.held_parts())
    return added, Conversion()


def _refuse_altered_columns(columns: Mapping[str, Relation], program: NormalProgram) -> None:
    """Refuse rows that were given for columns that others have altered since."""
    for name, given in columns.items():
        now = writable_relation(program, name)
        if (now.columns, now.types) != (given.columns, given.types):
            raise InputError.of(
                "C0910",
                f"The columns of `{name}` have been altered since rows were given for it.",
                None,
                f"its columns are {', '.join(now.columns) or 'none'} now; nothing was changed",
            )


def _is_empty(state: DatabaseState, update: Update) -> bool:
    """Whether nothing changes: no rule, no key, no base relation, and no part of one either."""
    before, after, engine = update.old, update.new, state.engine
    if update.changed or update.changed_aggregates:
        return False
    if (before.subsumption, before.keys) != (after.subsumption, after.keys):
        return False
    if before.rules != after.rules and {*before.rules} != {*after.rules}:  # in any order
        return False
    parts = {at for name, by_part in after.parts.items() for at in by_part.values() if at != name}
    if engine.changed() & parts:
        return False
    old, new = (
        {name: relation for name, relation in each.relations.items() if name not in parts}
        for each in (before, after)
    )
    return old == new


def _check_keys(
    state: DatabaseState,
    request: TransactionRequest,
    pending: pending_commit.PendingCommit,
    outcome: CommitOutcome,
    late: frozenset[str] = frozenset(),
) -> None:
    """Refuse what violates a key; a dry run notes it, and goes on; `late` are checked later."""
    outcome.failures = []
    try:
        known = None if request.alter is not None else state.loaded
        check_keys(state.engine, known, pending.after, state.limits, late)
    except ConstraintError as error:
        if not request.is_dry and request.inspect is None:
            raise
        outcome.failures += error.diagnostics


# --- plan, maintain, trigger rounds --------------------------------------------------------------


def _plan(
    state: DatabaseState,
    request: TransactionRequest,
    before: NormalProgram,
    after: NormalProgram,
    *,
    has_triggered: bool = False,
    refilled: frozenset[str] = frozenset(),
    is_bounded: bool = False,
) -> tuple[Update, Maintenance]:
    """Plan a change; if it is `is_bounded`, all rows that come in keep the bounds of columns."""
    engine = state.engine
    changes = {
        name: {sign: size for sign in CHANGES if (size := engine.size(name, sign))}
        for name in in_order(after, engine.changed())
        if not after.relations[name].is_derived
        if WORKING_SEPARATOR not in name
    }
    if before is after is state.loaded.normal:
        before = after = state.planned_program
    stage = Stage.REACTIONS
    if not has_observable_change(before, after, changes):
        stage = Stage.NOTHING
    elif after.active.triggers and not has_triggered:
        stage = Stage.TRIGGERS
    state.console.enter(Phase.PLAN)
    planned = state.planner.plan(
        before,
        after,
        changes,
        state.demand(after, stage, is_bounded=is_bounded and before is after),
        request.algorithm,
        is_traced=request.is_traced,
        refilled=refilled,
    )
    state.console.enter(Phase.EVALUATE)
    return planned


def _has_triggers(update: Update) -> bool:
    """Whether the change may set off a trigger."""
    is_active = bool(update.new.active.triggers)
    return is_active and has_observable_change(update.old, update.new, update.changed)


def _maintain(
    state: DatabaseState,
    pending: pending_commit.PendingCommit,
    update: Update,
    maintenance: Maintenance,
) -> pending_commit.PlanRun:
    """Run the plan."""
    recorder = counters.StatsRecorder(state.console, update.new, maintenance.choices)
    pending.rebuilt |= state.planner.rebuild_payload(update, maintenance, state.limits)
    state.engine.run(maintenance.plan, recorder, state.limits)
    state.console.done()
    return pending_commit.PlanRun(update, maintenance, recorder)


def _run_triggers(
    state: DatabaseState,
    request: TransactionRequest,
    rounds: trigger_rounds.TriggerRounds,
    run: pending_commit.PlanRun,
    check: Callable[[], None],
) -> None:
    """Run triggers round by round, and check each; at the end all rounds are undone."""
    normal = rounds.pending.planned
    effects = trigger_rounds.trigger_effects(state.engine, normal)
    if not effects.operations:
        return
    with rounds:
        while effects.operations:
            rounds.advance(effects, run)
            apply_operations(state.engine, normal, effects.operations, state.limits)
            check()
            # Constraints are about the net change.
            plan = _plan(state, request, normal, normal, is_bounded=True)
            run = _maintain(state, rounds.pending, *plan)
            effects = trigger_rounds.trigger_effects(state.engine, normal)


def _maintain_net_change(
    state: DatabaseState,
    request: TransactionRequest,
    pending: pending_commit.PendingCommit,
    run: pending_commit.PlanRun,
    rounds: trigger_rounds.TriggerRounds,
    *,
    is_bounded: bool,
) -> pending_commit.PlanRun:
    """Maintain what was asked and what triggers added, and evaluate event predicates on it."""
    if rounds.chain:
        plan = _plan(
            state,
            request,
            pending.before,
            pending.planned,
            has_triggered=True,
            refilled=pending.refilled,
            is_bounded=is_bounded,
        )
        return _maintain(state, pending, *plan)
    # No trigger fired: all views are maintained, only the event predicates are left.
    plan_of_events = state.planner.plan_reactions(run.update, state.demand(run.update.new))
    state.engine.run(plan_of_events, counters.ProgressRecorder(state.console), state.limits)
    return run
