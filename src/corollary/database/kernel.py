"""What a database is made of: relations, a program, plans; and how a transaction changes them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from corollary.analysis.strata import strata
from corollary.console import Console, SilentConsole
from corollary.core.engine import Engine, Limits
from corollary.core.plan import working
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.states import State
from corollary.database.frames import Frames
from corollary.database.journal import Attempt, Journal, Position, Ran, Told
from corollary.database.names import writable
from corollary.database.parts import separated
from corollary.database.planning import Planning
from corollary.database.program import Loaded, load
from corollary.database.rules import moved, with_base_parts
from corollary.database.transaction import SIGNS
from corollary.errors import ConflictError
from corollary.maintain.payload import payload_relations
from corollary.maintain.update import EMPTY, Update

if TYPE_CHECKING:
    from corollary.database.durable import Durable

TRIES = 10
"""So often a transaction is done again because another process has committed first."""


class Kernel:
    """Relations kept true while the data under them changes, as transactions see them.

    Attributes:
        engine: holds the relations.
        store: where they last; None if they do not.
        frames: of the session that the user works in.
        commits: the number of the last commit.
        loaded: the program in force.
        watched: the virtual relations whose changes are asked for.
        planning: plans, and what is known for them.
        lock: held by the thread that uses the engine; streams commit in threads of their own.
        closing: what is to be done before the database lets go of its engine.
    """

    def __init__(
        self,
        engine: Engine,
        algorithm: str | Mapping[str, str] = "auto",
        *,
        is_strict: bool = False,
        limits: Limits | None = None,
        console: Console | None = None,
        store: "Durable | None" = None,
        frames: Frames | None = None,
    ) -> None:
        self.engine = engine
        self.lock = RLock()
        self.closing: list[Callable[[], object]] = []
        self.store = store
        self.frames = frames or Frames()
        self.limits = limits or Limits()
        self.console = console or SilentConsole()
        self.commits = 0
        self.loaded = Loaded(Program(), load(Program()).checked, EMPTY)
        self.is_busy = False
        """Whether a transaction is being committed: all that it reads has to be of one state."""
        self.watched: dict[str, frozenset[State]] = {}
        self.planning = Planning(engine, algorithm, is_strict=is_strict)

    @property
    def program(self) -> Program:
        """The program in force."""
        return self.loaded.program

    def declared(self, name: str) -> Relation:
        """Return a relation that may be written to.

        Raises:
            InputError: there is none of that name, or it has rules and no base part.
        """
        return writable(self.loaded.normal, name)

    def insist(self, work: Callable[[], None]) -> None:
        """Do work that ends in a commit, again if another process has committed first.

        Raises:
            ConflictError: others came first every time.
        """
        with self.lock:
            self._insist(work)

    def _insist(self, work: Callable[[], None]) -> None:
        if self.store is None:
            work()
            return
        for left in reversed(range(TRIES)):
            self.store.catch_up(self)
            self.is_busy = True
            try:
                work()
            except ConflictError:
                if not left:
                    raise
            else:
                return
            finally:
                self.is_busy = False

    @contextmanager
    def attempt(self, after: Loaded) -> Iterator[Attempt]:
        """Let a transaction change relations; if it fails, everything is as it was."""
        before = self.loaded.normal
        fresh: dict[str, Relation] = {}
        if after.normal is not before:
            fresh = {**after.normal.relations, **self.payload_of(after.normal)}
            known = {*before.relations, *self.payload_of(before)}
            fresh = {name: each for name, each in fresh.items() if name not in known}
            self.engine.declare(fresh)
            for name, base in moved(before, after.normal).items():
                self.engine.copy(name, base)
            for part, name in separated(before, after.normal).items():
                self.engine.copy(name, part)
            before = with_base_parts(before, after.normal)
            self._declare_deltas(after.normal)
        commits = self.commits
        try:
            yield Attempt(before, after, frozenset(fresh))
        finally:
            if self.commits == commits:
                self.console.done()
                self._clear_deltas()
                self.engine.rollback()
                self.engine.drop(fresh)

    @staticmethod
    def payload_of(program: NormalProgram) -> dict[str, Relation]:
        """Return the payload relations of a program by name."""
        return {
            each.name: each
            for stratum in strata(program)
            for each in payload_relations(stratum, program).values()
        }

    def _declare_deltas(self, program: NormalProgram) -> None:
        """Declare where the changes of watched virtual relations stand during a transaction."""
        self.engine.declare(
            {
                working(name, sign): replace(
                    program.relations[name], name=working(name, sign), is_declared=False
                )
                for name in self.watched
                for sign in SIGNS
            }
        )

    def accept(self, attempt: Attempt, update: Update, ran: Ran, journal: Journal) -> None:
        """Commit: what is to last is made durable, then NEW becomes OLD."""
        maintenance, recorder = ran.maintenance, ran.recorder
        number = self.commits + 1
        if self.store is not None:
            payload = self.planning.payload_after(update, maintenance, recorder)
            number = self.store.record(self, attempt, payload, journal)
        self.planning.note(update, maintenance, recorder)
        self._clear_deltas()
        self.engine.commit()
        self.commits = number
        if attempt.after.normal is not self.loaded.normal:
            self._replace(attempt.after)

    def become(self, engine: Engine, loaded: Loaded, number: int, payload: frozenset[str]) -> None:
        """Be what a warehouse says that the database was at a commit."""
        self.engine.close()
        self.engine, self.loaded = engine, loaded
        self.planning.begin(engine)
        self.follow(number, payload)
        self._declare_deltas(loaded.normal)

    def follow(self, number: int, payload: frozenset[str]) -> None:
        """Take note that the relations are those of a later commit, and which payload is valid."""
        self.commits = number
        self.planning.payload = payload

    def settle(self) -> None:
        """Do what is due behind a commit: fold what has piled up."""
        if self.store is not None:
            self.store.settle(self)

    def told(self, idempotency: str) -> Told | None:
        """Return what the transaction of a key did, if it was made before."""
        return None if self.store is None else self.store.told(idempotency)

    def _clear_deltas(self) -> None:
        """Forget the changes of virtual relations."""
        self.engine.clear(working(name, sign) for name in self.watched for sign in SIGNS)

    def must_note(self, program: Program, idempotency: str | None) -> bool:
        """Whether what changes no tuple is worth a commit: another program, or a key.

        A key that left no trace would let a retry act, on whatever has been committed since.
        """
        is_new = program != self.program or idempotency is not None
        return self.store is not None and is_new

    def adopt(self, after: Loaded, positions: Mapping[str, Position]) -> None:
        """Take note of what changes no tuple: a program that says the same, sources read on."""
        if self.store is not None and positions:
            self.store.note(self, positions)
        if after is not self.loaded:
            self.loaded = after
            self.planning.forget(after.normal)

    def _replace(self, after: Loaded) -> None:
        """Put a program into force: forget relations it has no more, and payload of other kind."""
        old, new = self.loaded.normal, after.normal
        kept = {**new.relations, **self.payload_of(new)}
        known = {**old.relations, **self.payload_of(old)}
        self.engine.drop(name for name in known if name not in kept)
        self.engine.clear(name for name in moved(old, new) if new.relations[name].is_virtual)
        self.loaded = after
        self.planning.forget(new)
