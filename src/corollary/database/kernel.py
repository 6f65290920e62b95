"""What a database is made of: relations, a program, plans; and how a transaction changes them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from corollary.active.events import asked
from corollary.analysis.relevance import NONE, Signs
from corollary.analysis.strata import strata
from corollary.console import Console, SilentConsole
from corollary.core.engine import Engine, Limits
from corollary.core.optimisations import NONE as NO_OPTIMISATION
from corollary.core.optimisations import Optimisation
from corollary.core.plan import effect_of, event_of, working
from corollary.core.program import NormalProgram, Program, Reaction, Relation
from corollary.core.states import State
from corollary.database.frames import Frames
from corollary.database.journal import Attempt, Journal, Position, Ran, Told
from corollary.database.memory_outbox import MemoryOutbox
from corollary.database.names import writable
from corollary.database.outlets import Outlets
from corollary.database.parts import separated
from corollary.database.planning import Planning, Stage, Wanted
from corollary.database.program import Loaded, load
from corollary.database.rules import moved, with_base_parts
from corollary.database.sinks.sender import Outgoing
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
        callbacks: the functions that ask for events, by event.
        outlets: where alerts may go.
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
        without: frozenset[Optimisation] = NO_OPTIMISATION,
    ) -> None:
        self.engine = engine
        self.lock = RLock()
        self.closing: list[Callable[[], object]] = []
        self.callbacks: dict[str, list[Callable[[Any], object]]] = {}
        self.outlets = Outlets()
        self._memory_outbox = MemoryOutbox()
        self.store = store
        self.frames = frames or Frames()
        self.limits = limits or Limits()
        self.console = console or SilentConsole()
        self.commits = 0
        self.loaded = Loaded(Program(), load(Program()).checked, EMPTY)
        self.is_busy = False
        """Whether a transaction is being committed: all that it reads has to be of one state."""
        self.watched: dict[str, frozenset[State]] = {}
        self.formed = EMPTY
        """The program in force as it is planned for."""
        self.reacting: dict[str, dict[str, list[Reaction]]] = {}
        """Alerts and constraints by the relation that holds what they react to, and by event."""
        self._standing: dict[str, Relation] = {}
        self._asks: tuple[NormalProgram, Collection[str], Signs] | None = None
        self.planning = Planning(engine, algorithm, is_strict=is_strict, without=without)

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
        is_other = after.normal is not before
        if is_other:
            fresh = {**after.normal.relations, **self.payload_of(after.normal)}
            known = {*before.relations, *self.payload_of(before)}
            fresh = {name: each for name, each in fresh.items() if name not in known}
            self.engine.declare(fresh)
            for name, base in moved(before, after.normal).items():
                self.engine.copy(name, base)
            for part, name in separated(before, after.normal).items():
                self.engine.copy(name, part)
            before = with_base_parts(before, after.normal)
            self.stand(after.normal)
        commits = self.commits
        try:
            yield Attempt(before, after, frozenset(fresh))
        finally:
            if self.commits == commits:
                self.console.done()
                self.clear_deltas()
                self.engine.rollback()
                self.engine.drop(fresh)
                if is_other:
                    self.stand()

    @staticmethod
    def payload_of(program: NormalProgram) -> dict[str, Relation]:
        """Return the payload relations of a program by name."""
        return {
            each.name: each
            for stratum in strata(program)
            for each in payload_relations(stratum, program).values()
        }

    def wanted(self, program: NormalProgram, stage: Stage = Stage.REACTIONS) -> Wanted:
        """Return what is asked of a transaction besides the stored relations.

        Args:
            program: what will be in force, perhaps as it is planned for.
            stage: which event predicates are to be evaluated.
        """
        if self._asks is None or self._asks[0] is not program:
            active = program.active
            reacting = {each.relation for each in active.reactions} | self.heard(program)
            reacting = {active.merged.get(name, name) for name in reacting}
            found = asked(active, (*active.triggers, *reacting))
            self._asks = program, reacting & active.relations.keys(), found
        _, events, signs = self._asks
        goals: Collection[str] = ()
        if stage is Stage.TRIGGERS:
            goals = program.active.triggers.keys()
        elif stage is Stage.REACTIONS:
            goals = events
        return Wanted(_both(self.watched, signs), frozenset(goals))

    def heard(self, program: NormalProgram) -> frozenset[str]:
        """Return the relations and event predicates of a program that callbacks hear of."""
        known = (program.relations, program.active.relations)
        return frozenset(name for name in self.callbacks if any(name in each for each in known))

    def _form(self) -> NormalProgram:
        """Return the program in force as it is planned for."""
        program = self.loaded.normal
        if not program.active.rules:
            return program
        reacting = {each.relation for each in program.active.reactions}
        kept = (reacting & program.relations.keys()) | self.heard(program) | self.watched.keys()
        return self.planning.formed(program, frozenset(kept))

    def stand(self, program: NormalProgram | None = None) -> None:
        """Give what is wanted a place during transactions.

        The changes of virtual relations, and event predicates.

        Args:
            program: what comes into force with a transaction; the one in force if not given.
        """
        self.engine.drop(self._standing)
        self._asks = None
        self.formed = self._form() if program is None else program
        wanted, active = self.wanted(self.formed), self.formed.active
        relations = self.formed.relations
        places = {
            working(name, sign): relations[name]
            for name in wanted.signs
            if relations[name].is_virtual
            for sign in SIGNS
        }
        places |= {effect_of(name): active.relations[name] for name in active.triggers}
        places |= {event_of(name): active.relations[name] for name in wanted.goals}
        self._standing = {
            place: replace(relation, name=place, is_declared=False)
            for place, relation in places.items()
        }
        self.engine.declare(self._standing)
        self.reacting = {}
        for reaction in active.reactions:
            name = reaction.relation
            events = self.reacting.setdefault(active.merged.get(name, name), {})
            events.setdefault(name, []).append(reaction)

    def clear_deltas(self) -> None:
        """Forget the changes of virtual relations, and what event predicates held."""
        self.engine.clear(self._standing)

    def accept(self, attempt: Attempt, update: Update, ran: Ran, journal: Journal) -> None:
        """Commit: what is to last is made durable, then NEW becomes OLD."""
        maintenance, recorder = ran.maintenance, ran.recorder
        number = self.commits + 1
        if self.store is None:
            self._memory_outbox.record(number, journal.alerts, journal.cause, journal.depth)
        else:
            payload = self.planning.payload_after(update, maintenance, recorder)
            number = self.store.record(self, attempt, payload, journal)
        self.planning.note(update, maintenance, recorder)
        self.clear_deltas()
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
        self._standing = {}
        self.stand()

    def follow(self, number: int, payload: frozenset[str]) -> None:
        """Take note that the relations are those of a later commit, and which payload is valid."""
        self.commits = number
        self.planning.payload = payload

    def distrust(self, relations: Iterable[str]) -> None:
        """Take note that the ranks or counts of relations are not what they were."""
        self.planning.payload -= set(relations)
        if self.store is not None:
            self.store.distrust(relations)

    def settle(self) -> None:
        """Do what is due behind a commit: fold what has piled up."""
        if self.store is not None:
            self.store.settle(self)

    @property
    def outbox(self) -> Outgoing:
        """The alerts that are not delivered yet."""
        if self.store is None:
            return self._memory_outbox
        from corollary.warehouse.outbox import Outbox

        return Outbox(self.store.warehouse.catalog)

    def notify(self) -> None:
        """Do what is due behind a commit without being asked: call back who asks for its events."""

    def told(self, idempotency: str) -> Told | None:
        """Return what the transaction of a key did, if it was made before."""
        return None if self.store is None else self.store.told(idempotency)

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
        self.stand()


def _both(some: Signs, others: Signs) -> Signs:
    return {
        name: some.get(name, NONE) | others.get(name, NONE)
        for name in dict.fromkeys((*some, *others))
    }
