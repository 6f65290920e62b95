"""A transaction: the one place that knows the order in which things happen.

operations, as they were given → net change of base relations and rules → maintain every relevant
relation, stratum by stratum → rounds of triggers, until one changes nothing → constraints, alerts
and other event predicates, on the net change → commit, all or nothing → callbacks
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from corollary.active.events import is_felt
from corollary.core.alerts import Alert, distinct
from corollary.core.engine import Kept
from corollary.core.plan import WORKING, working
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.states import State
from corollary.core.values import is_text, shown
from corollary.database.cascade import Cascade, Fired, fired
from corollary.database.changes import MAX_ROWS, Change, Changes
from corollary.database.counters import Counters, Stats, TraceRow
from corollary.database.journal import DEPTH, Attempt, Journal, Ran, Reading
from corollary.database.keys import demand_keys, dependences
from corollary.database.names import writable
from corollary.database.operations import Operation, apply, edited_facts, with_writers
from corollary.database.planning import Stage
from corollary.database.program import Loaded
from corollary.database.progress import Progress
from corollary.database.reacting import Violation, demand_choice, judged
from corollary.database.rows import checked_rows
from corollary.database.rules import load_after, with_rule, without_rule
from corollary.errors import InputError, LimitError
from corollary.maintain.choose import Algorithm
from corollary.maintain.maintenance import Maintenance
from corollary.maintain.update import Update
from corollary.warehouse.entries import Cause

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.database import Database

SIGNS = (State.ADDED, State.REMOVED)
LONGEST_KEY = 200
"""So many characters an idempotency key may have."""
LONGEST_CHAIN = 16
"""So often alerts may make a commit whose alerts make the next."""


class Transaction:
    """Inserts, deletes, rules added and removed, in the order given; the last one wins.

    Used as a context manager it commits at the end of the block, and forgets everything if the
    block raises. Afterwards `changes`, `alerts`, `stats` and `commit_number` tell what happened,
    `kept` which tuples were to be deleted and are there all the same, since another part asserts
    them, and `is_repeated` whether all this is what an earlier transaction of the same key did.
    Such a transaction does nothing, whatever is asked of it. `cause` is set by a sink of alerts
    that delivers them by this transaction.
    """

    def __init__(
        self,
        database: "Database",
        algorithm: str | None,
        *,
        is_traced: bool,
        idempotency: str | None = None,
        is_dry: bool = False,
        existing: str = "report",
    ) -> None:
        if idempotency is not None:
            _demand_key(idempotency)
        demand_choice(existing)
        self._database = database
        self._algorithm = algorithm
        self._is_traced = is_traced
        self._idempotency = idempotency
        self._is_dry = is_dry
        self._existing = existing
        self._operations: list[Operation] = []
        self._shapes: dict[str, Relation] = {}
        self._readings: list[Callable[[], Reading]] = []
        self._edits: list[Callable[[Program], Program]] = []
        self._going: set[str] = set()
        self._is_open = True
        self.cause: Cause | None = None
        self.changes = Changes({}, {})
        self.alerts: list[Alert] = []
        self.stats: dict[str, Stats] = {}
        self.trace: list[TraceRow] = []
        self.kept: dict[str, Kept] = {}
        self.triggered: list[Fired] = []
        self.existing: list[Violation] = []
        self.commit_number: int | None = None
        self.is_repeated = False
        self._recall()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    # --- what is asked -------------------------------------------------------------------------

    def insert(self, relation: str, rows: Any) -> None:
        """Add tuples to a base relation: an iterable of tuples, an Arrow table or a data frame.

        Raises:
            InputError: there is no such base relation, or a row does not fit it.
        """
        self._operate(State.ADDED, relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        """Take tuples out of a base relation; what is not there is left alone.

        Raises:
            InputError: there is no such base relation, or a row does not fit it.
        """
        self._operate(State.REMOVED, relation, rows)

    def _operate(self, sign: State, relation: str, rows: Any) -> None:
        self._demand_open()
        if not self.is_repeated:
            declared = self._shapes[relation] = self._database.declared(relation)
            self._operations.append(Operation(sign, relation, checked_rows(rows, declared)))

    def insert_input(self, relation: str, table: "pa.Table") -> None:
        """Add what was read for an `.input` of the program that is put into force."""
        self._operations.append(Operation(State.ADDED, relation, table))

    def read(self, reading: Callable[[], Reading]) -> None:
        """Add what a function asks for at the commit, and again if another one comes first.

        All that it reads of the database is of the one state that the commit follows, so that a
        serial order exists in which the transaction was alone.

        Args:
            reading: reads what it needs, and returns operations.
        """
        self._readings.append(reading)

    def add_rule(self, text: str, *, place: str = "rule") -> None:
        """Add a rule, such as `link(x, y) :- cable(x, y).`, or a fact.

        Args:
            text: the rule.
            place: what messages call the text.

        Raises:
            InputError: the text is no rule. Whether it fits the program is judged at the commit.
        """
        self.edit(lambda program: with_rule(program, text, place))

    def remove_rule(self, text: str, *, place: str = "rule") -> None:
        """Remove a rule or fact of the program; the names of its variables do not matter.

        Args:
            text: the rule.
            place: what messages call the text.

        Raises:
            InputError: the program has no such rule.
        """
        self.edit(lambda program: without_rule(program, text, place))

    def set_program(self, program: Program) -> None:
        """Replace the whole program, as if its text had been edited."""
        self.edit(lambda _: program)

    def edit(self, edit: Callable[[Program], Program], going: Iterable[str] = ()) -> None:
        """Keep an edit of the program for the commit; what is wrong by itself is said now.

        Args:
            edit: returns the program that follows one.
            going: derived relations that the edit may drop.
        """
        self._demand_open()
        if not self.is_repeated:
            edit(self._edited())
            self._edits.append(edit)
            self._going.update(going)

    def _edited(self) -> Program:
        """Return the program in force with all edits so far."""
        program = self._database.program
        for edit in self._edits:
            program = edit(program)
        return program

    def _demand_open(self) -> None:
        if not self._is_open:
            raise InputError.of(
                "C0914",
                "The transaction has ended: it was committed or rolled back.",
                None,
                "begin another one with `db.transaction()`",
            )

    # --- what happens --------------------------------------------------------------------------

    def rollback(self) -> None:
        """Forget everything that was asked."""
        self._is_open = False
        self._operations.clear()

    def commit(self) -> None:
        """Apply what was asked and maintain what depends on it; all or nothing.

        If another transaction came first, everything is done again on what it left.

        Raises:
            InputError: the rules do not fit, or an expression has no value.
            ConstraintError: a key or functional dependency would not hold.
            LimitError: a limit was hit.
            ConflictError: others came first again and again.
        """
        self._demand_open()
        self._is_open = False
        if not self.is_repeated:
            _demand_end()
            self._database.insist(self._attempt)
        if not self._is_dry:
            self._database.notify()

    def _attempt(self) -> None:
        database = self._database
        self._recall()
        if self.is_repeated:
            return
        loaded, asked = database.loaded, self._edited_program()
        reading = [each() for each in self._readings]
        if database.loaded is not loaded:  # a reading has seen what others have committed
            asked = self._edited_program()
        self._demand_shapes(asked.normal)
        operations = [*self._operations, *(one for each in reading for one in each.operations)]
        after = with_writers(asked, operations)
        with database.attempt(after) as attempt:
            operations = [*edited_facts(attempt.before, after.normal), *operations]
            self._apply(attempt, operations)
            update, maintenance = self._plan(attempt.before, after.normal)
            positions = {name: each for read in reading for name, each in read.positions.items()}
            must_note = database.must_note(asked.program, self._idempotency)
            ran = None
            if must_note or not self._is_empty(update):
                update, ran = self._maintain(attempt, operations, update, maintenance)
            else:
                self._demand_keys(attempt)
            self._collect(update)
            if ran is None or (self._is_empty(update) and not must_note):  # triggers may undo all
                self._react(update)
                if not self._is_dry:
                    database.adopt(asked, positions)
                return
            self.trace = ran.recorder.rows
            self._tell(update, ran.maintenance, ran.recorder)
            self._react(update)
            if self._is_dry:
                return
            stats = {name: each.as_json() for name, each in self.stats.items()}
            journal = Journal(
                stats, positions, self._idempotency, self.alerts, self.cause, DEPTH.get()
            )
            database.accept(attempt, update, ran, journal)
        self.commit_number = database.commits
        database.settle()

    def _maintain(
        self,
        attempt: Attempt,
        operations: Sequence[Operation],
        update: Update,
        maintenance: Maintenance,
    ) -> tuple[Update, Ran]:
        """Maintain all views, let triggers do what they do, and evaluate what is told of it."""
        database, normal = self._database, attempt.after.normal
        self.triggered = []
        if not normal.active.triggers or not is_felt(update.old, update.new, update.changed):
            self._demand_keys(attempt)
            return update, self._run(attempt, update, maintenance)
        ran = self._run(attempt, update, maintenance)
        found = fired(database, normal)
        if not found.operations:
            self._demand_keys(attempt)
            plan = database.planning.reacting(update, database.wanted(update.new))
            database.engine.run(plan, Progress(database.console), database.limits)
            return update, ran
        with Cascade(database, attempt) as cascade:
            while found.operations:
                cascade.follow(found, update, ran)
                apply(database.engine, normal, found.operations, database.limits)
                update, maintenance = self._plan(normal, normal)
                ran = self._run(attempt, update, maintenance)
                found = fired(database, normal)
        self.triggered = cascade.chain
        self._apply(attempt, [*operations, *cascade.operations])
        self._demand_keys(attempt)
        update, maintenance = self._plan(attempt.before, normal, has_triggered=True)
        return update, self._run(attempt, update, maintenance)

    def _recall(self) -> None:
        """Tell what the transaction of the same key did, if there was one."""
        if self._idempotency is None:
            return
        found = self._database.told(self._idempotency)
        if found is not None:
            self.commit_number, self.changes = found.number, found.changes
            self.stats, self.alerts = dict(found.stats), list(found.alerts)
            self.is_repeated = True

    def _demand_shapes(self, program: NormalProgram) -> None:
        """Refuse rows that were given for columns that others have altered since."""
        for name, shape in self._shapes.items():
            now = writable(program, name)
            if (now.columns, now.types) != (shape.columns, shape.types):
                raise InputError.of(
                    "C0910",
                    f"The columns of `{name}` have been altered since rows were given for it.",
                    None,
                    f"its columns are {', '.join(now.columns) or 'none'} now; nothing was changed",
                )

    def _edited_program(self) -> Loaded:
        """Return the program in force with all edits, ready to be used after the one before."""
        loaded = self._database.loaded
        if not self._edits:
            return loaded
        return load_after(self._edited(), loaded.normal, going=self._going)

    def _apply(self, attempt: Attempt, operations: Sequence[Operation]) -> None:
        """Open the changes of base relations."""
        database = self._database
        self.kept = apply(database.engine, attempt.after.normal, operations, database.limits)

    def _demand_keys(self, attempt: Attempt) -> None:
        database, after = self._database, attempt.after
        known = set(dependences(database.program, database.loaded.normal))
        demand_keys(database.engine, known, after.program, after.normal, database.limits)

    def _plan(
        self, before: NormalProgram, after: NormalProgram, *, has_triggered: bool = False
    ) -> tuple[Update, Maintenance]:
        database = self._database
        engine = database.engine
        changes = {
            name: found
            for name, relation in after.relations.items()
            if not relation.is_derived and WORKING not in name
            if (found := {s: size for s in SIGNS if (size := engine.size(name, s))})
        }
        if before is after is database.loaded.normal:
            before = after = database.formed
        stage = Stage.REACTIONS
        if not is_felt(before, after, changes):
            stage = Stage.NOTHING
        elif after.active.triggers and not has_triggered:
            stage = Stage.TRIGGERS
        return database.planning.planned(
            before,
            after,
            changes,
            database.wanted(after, stage),
            self._algorithm,
            is_traced=self._is_traced,
        )

    def _is_empty(self, update: Update) -> bool:
        """Whether nothing changes: no rule, no base relation, and no part of one either."""
        before, after, engine = update.old, update.new, self._database.engine
        if update.changed or before.rules != after.rules:
            return False
        parts = {at for name, held in after.parts.items() for at in held.values() if at != name}
        if any(engine.size(at, sign) for at in parts for sign in SIGNS):
            return False
        whole = (
            {n: r for n, r in each.relations.items() if n not in parts} for each in (before, after)
        )
        return next(whole) == next(whole)

    def _run(self, attempt: Attempt, update: Update, maintenance: Maintenance) -> Ran:
        database = self._database
        recorder = Counters(database.console, update.new, maintenance.choices)
        attempt.rebuilt |= database.planning.refresh(update, maintenance, database.limits)
        limits = database.limits
        if limits.seconds is not None:
            limits = replace(limits, since=time.monotonic())
        database.engine.run(maintenance.plan, recorder, limits)
        database.console.done()
        return Ran(maintenance, recorder)

    def _react(self, update: Update) -> None:
        """Judge constraints, and find what is to be told.

        Raises:
            ConstraintError: with the tuples that violate one.
        """
        verdict = judged(self._database, update, self._existing)
        self.alerts, self.existing = verdict.alerts, verdict.existing

    def _collect(self, update: Update) -> None:
        """Keep what changed, before the commit makes NEW the OLD."""
        engine = self._database.engine
        found: dict[str, Change] = {}
        known: dict[str, Change] = {}
        for name, relation in update.new.relations.items():
            if not relation.is_declared or (
                relation.is_virtual and name not in self._database.watched
            ):
                continue
            added, removed = (_kept(engine, update, name, sign) for sign in SIGNS)
            change = Change(relation, added, removed, self._database.frames)
            known[name] = change
            if len(added) or len(removed):
                found[name] = change
        self.changes = Changes(found, known)

    def _tell(self, update: Update, maintenance: Maintenance, recorder: Counters) -> None:
        engine = self._database.engine
        for procedure, record in recorder.strata.items():
            choice = maintenance.choices[procedure]
            algorithm, reason = str(choice.algorithm), choice.reason
            placed = maintenance.places.get(procedure)
            place = engine.home if placed is None else str(placed.placement)
            if record.has_switched:
                algorithm = str(Algorithm.RECOMPUTE)
                reason = f"{choice.algorithm} outgrew {choice.budget:,} rows ({reason})"
            for name in choice.relations:
                counts = dict(recorder.counts.get(name, {}))
                if not update.is_virtual(name):
                    counts["actual"] = sum(engine.size(name, sign) for sign in SIGNS)
                if choice.algorithm in (Algorithm.RANKED, Algorithm.DRED):
                    counts |= _filtered(counts, engine.size(name, State.REMOVED))
                self.stats[name] = Stats(algorithm, reason, record.seconds, counts, place)
        for name, signs in update.changed.items():
            unasked = signs - update.relevant.get(name, frozenset())
            if unasked:
                irrelevant = sum(engine.size(name, sign) for sign in unasked)
                counts = {"irrelevant_updates": irrelevant}
                self.stats[name] = Stats("none", "nobody asks for it", 0.0, counts, engine.home)

    def as_json(self, max_rows: int = MAX_ROWS) -> dict[str, Any]:
        """Return what happened as `apply` prints it."""
        alerts = distinct(self.alerts)
        told: dict[str, Any] = {
            "commit": self.commit_number,
            "changes": {name: each.as_json(max_rows) for name, each in self.changes.items()},
            "alerts": [each.as_json() for each in alerts[:max_rows]],
            "stats": {name: each.as_json() for name, each in self.stats.items()},
        }
        if len(alerts) > max_rows:
            told |= {"truncated": True, "counts": {"alerts": len(alerts)}}
        return told


def _demand_key(idempotency: str) -> None:
    """Refuse an idempotency key that no catalog could keep."""
    if not is_text(idempotency) or len(idempotency) > LONGEST_KEY:
        raise InputError.of(
            "C0920",
            f"{shown(idempotency[:LONGEST_KEY])} is no idempotency key.",
            None,
            f"use a text of at most {LONGEST_KEY} characters, none of them half a surrogate pair",
        )


def _demand_end() -> None:
    """Stop alerts that set each other off, commit after commit."""
    if DEPTH.get() > LONGEST_CHAIN:
        raise LimitError(
            f"alerts have made {LONGEST_CHAIN} commits, each by an alert of the one before; "
            "nothing was changed\n"
            "  = let the relation that alerts go to not be watched by what sets them off"
        )


def _filtered(counts: dict[str, int], removed: int) -> dict[str, int]:
    """Return the papers' counters for algorithms that check tuples before they remove any."""
    seen = counts.get("checked", 0) or counts.get("approximated", 0)
    return {"approximated": seen, "filtered": seen, "disqualified": max(0, seen - removed)}


def _kept(engine: Any, update: Update, name: str, sign: State) -> Kept:
    if update.is_virtual(name):
        kept: Kept = engine.keep(working(name, sign))
    else:
        kept = engine.keep(name, sign)
    return kept
