"""A transaction: the one place that knows the order in which things happen.

operations, as they were given → net change of base relations and rules → maintain every relevant
relation, stratum by stratum → commit, all or nothing
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from corollary.core.engine import Kept
from corollary.core.plan import working
from corollary.core.program import NormalProgram, Program
from corollary.core.states import State
from corollary.database.changes import MAX_ROWS, Change, Changes
from corollary.database.counters import Counters, Stats, TraceRow
from corollary.database.rows import checked_rows
from corollary.database.rules import load_after, with_rule, without_rule
from corollary.errors import InputError
from corollary.maintain.choose import Algorithm
from corollary.maintain.maintenance import Maintenance
from corollary.maintain.update import Update

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.database import Database

SIGNS = (State.ADDED, State.REMOVED)


@dataclass(frozen=True, slots=True)
class _Operation:
    """Tuples to add to a base relation, or to take out of it."""

    sign: State
    relation: str
    rows: Any


class Transaction:
    """Inserts, deletes, rules added and removed, in the order given; the last one wins.

    Used as a context manager it commits at the end of the block, and forgets everything if the
    block raises. Afterwards `changes`, `stats` and `commit` tell what happened.
    """

    def __init__(self, database: "Database", algorithm: str | None, is_traced: bool) -> None:
        self._database = database
        self._algorithm = algorithm
        self._is_traced = is_traced
        self._operations: list[_Operation] = []
        self._edits: list[Callable[[Program], Program]] = []
        self._is_open = True
        self.changes = Changes({}, {})
        self.stats: dict[str, Stats] = {}
        self.trace: list[TraceRow] = []
        self.commit_number: int | None = None

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
        declared = self._database.declared(relation)
        self._operations.append(_Operation(sign, relation, checked_rows(rows, declared)))

    def insert_input(self, relation: str, table: "pa.Table") -> None:
        """Add what was read for an `.input` of the program that is put into force."""
        self._operations.append(_Operation(State.ADDED, relation, table))

    def add_rule(self, text: str) -> None:
        """Add a rule, such as `link(x, y) :- cable(x, y).`, or a fact.

        Raises:
            InputError: the text is no rule. Whether it fits the program is judged at the commit.
        """
        self._demand_open()
        self._edit(lambda program: with_rule(program, text))

    def remove_rule(self, text: str) -> None:
        """Remove a rule or fact of the program; the names of its variables do not matter.

        Raises:
            InputError: the program has no such rule.
        """
        self._demand_open()
        self._edit(lambda program: without_rule(program, text))

    def set_program(self, program: Program) -> None:
        """Replace the whole program, as if its text had been edited."""
        self._demand_open()
        self._edit(lambda _: program)

    def _edit(self, edit: Callable[[Program], Program]) -> None:
        """Keep an edit for the commit; what is wrong with it by itself is said now."""
        edit(self._edited())
        self._edits.append(edit)

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

        Raises:
            InputError: the rules do not fit, or an expression has no value.
            LimitError: a limit was hit.
        """
        self._demand_open()
        self._is_open = False
        database = self._database
        after = database.loaded
        if self._edits:
            after = load_after(self._edited(), database.loaded.normal)
        with database.attempt(after) as before:
            self._apply(before, after.normal)
            update, maintenance = self._plan(before, after.normal)
            if maintenance is None:
                self._collect(update)
                database.adopt(after)
                return
            recorder = self._run(update, maintenance)
            self._collect(update)
            self.trace = recorder.rows
            self._tell(update, maintenance, recorder)
            database.accept(after, update, maintenance, recorder)
        self.commit_number = database.commits

    def _apply(self, before: NormalProgram, after: NormalProgram) -> None:
        """Open the changes of base relations: edited facts of the text, then the operations."""
        engine = self._database.engine
        for name in dict.fromkeys((*before.facts, *after.facts)):
            old, new = before.facts.get(name, ()), after.facts.get(name, ())
            if old != new:
                gone, come = set(old) - set(new), set(new) - set(old)
                engine.delete(name, list(gone))
                engine.insert(name, list(come))
        for operation in self._operations:
            name = after.bases.get(operation.relation, operation.relation)
            if operation.sign is State.ADDED:
                engine.insert(name, operation.rows)
            else:
                engine.delete(name, operation.rows)

    def _plan(
        self, before: NormalProgram, after: NormalProgram
    ) -> tuple[Update, Maintenance | None]:
        database = self._database
        engine = database.engine
        changes = {
            name: found
            for name, relation in after.relations.items()
            if not relation.is_derived
            if (found := {s: size for s in SIGNS if (size := engine.size(name, s))})
        }
        update, maintenance = database.planning.planned(
            before,
            after,
            changes,
            database.watched,
            self._algorithm,
            is_traced=self._is_traced,
        )
        is_empty = not changes and (before.relations, before.rules) == (
            after.relations,
            after.rules,
        )
        return update, None if is_empty else maintenance

    def _run(self, update: Update, maintenance: Maintenance) -> Counters:
        database = self._database
        recorder = Counters(database.console, update.new, maintenance.choices)
        database.planning.refresh(update, maintenance, database.limits)
        limits = database.limits
        if limits.seconds is not None:
            limits = replace(limits, since=time.monotonic())
        database.engine.run(maintenance.plan, recorder, limits)
        database.console.done()
        return recorder

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
            change = Change(relation, added, removed)
            known[name] = change
            if len(added) or len(removed):
                found[name] = change
        self.changes = Changes(found, known)

    def _tell(self, update: Update, maintenance: Maintenance, recorder: Counters) -> None:
        engine = self._database.engine
        for procedure, record in recorder.strata.items():
            choice = maintenance.choices[procedure]
            algorithm, reason = str(choice.algorithm), choice.reason
            if record.has_switched:
                algorithm = str(Algorithm.RECOMPUTE)
                reason = f"{choice.algorithm} outgrew {choice.budget:,} rows ({reason})"
            for name in choice.relations:
                counts = dict(recorder.counts.get(name, {}))
                if not update.is_virtual(name):
                    counts["actual"] = sum(engine.size(name, sign) for sign in SIGNS)
                if choice.algorithm in (Algorithm.RANKED, Algorithm.DRED):
                    counts |= _filtered(counts, engine.size(name, State.REMOVED))
                self.stats[name] = Stats(algorithm, reason, record.seconds, counts)
        for name, signs in update.changed.items():
            unasked = signs - update.relevant.get(name, frozenset())
            if unasked:
                irrelevant = sum(engine.size(name, sign) for sign in unasked)
                counts = {"irrelevant_updates": irrelevant}
                self.stats[name] = Stats("none", "nobody asks for it", 0.0, counts)

    def as_json(self, max_rows: int = MAX_ROWS) -> dict[str, Any]:
        """Return what happened as `apply` prints it."""
        return {
            "commit": self.commit_number,
            "changes": {name: each.as_json(max_rows) for name, each in self.changes.items()},
            "alerts": [],
            "stats": {name: each.as_json() for name, each in self.stats.items()},
        }


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
