"""The state of an open database: engine, program in force, plans, watchers and callbacks.

It does not know the store: `commit` brings the two together.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from threading import RLock
from typing import Any

from corollary.active.events import observed_change, required_changes
from corollary.analysis.orders import probed_columns
from corollary.analysis.relevance import NO_SIGNS, Signs
from corollary.analysis.today import TODAY_RELATION
from corollary.console import Console, SilentConsole
from corollary.core import plans
from corollary.core.engine import Engine, Limits
from corollary.core.monitoring_optimisations import NO_OPTIMISATIONS as NO_OPTIMISATION
from corollary.core.monitoring_optimisations import MonitoringOptimisation
from corollary.core.once import stored_relations
from corollary.core.program import NormalProgram, Program, Reaction, Relation
from corollary.core.states import CHANGES, State
from corollary.database.access.principals import OWNER, Principal
from corollary.database.counters import ProgressRecorder
from corollary.database.engines import SparkFrames
from corollary.database.pending_commit import PendingCommit, PlanRun
from corollary.database.planning import Demand, Planner, Stage
from corollary.database.program.loaded_program import LoadedProgram, check_functions, load_program
from corollary.database.program.names import writable_relation
from corollary.database.program_change import Conversion, ProgramChange
from corollary.database.relation_contents import evaluated_relation
from corollary.database.writing.bounds import bounded_constraints
from corollary.errors import InputError
from corollary.maintain.update import EMPTY_PROGRAM

ARRANGED_MIN_TUPLES, ARRANGED_MAX_TUPLES = 1 << 19, 1 << 24
"""Relations of this size are sorted for changes to come: fewer take no time, more memory."""


RESIZED_BITS = 2
"""A plan is made again when a relation has become larger or smaller by more powers of two."""


class DatabaseState:
    """Relations that are maintained while the data under them changes, as transactions see them.

    Attributes:
        engine: holds the relations.
        loaded: the program in force.
        planner: plans, and what is known for them.
        planned_program: the program in force as it is planned for: specialised for constants.
        reactions: alerts and constraints by the relation that holds what they react to, and by
            event.
        commits: the number of the last commit.
        author: on whose behalf transactions are made.
        day: what the next commit makes of `today()`; None if it stays as it is.
        watched: the virtual relations whose changes are asked for.
        callbacks: the functions that ask for events, by event.
        frames: of the Spark session that the user works in.
        lock: held by the thread that uses the engine; streams commit in threads of their own.
        is_committing: whether a transaction is running: all that it reads belongs to one state,
            so nobody may catch up with other processes meanwhile.
        is_pinned: whether all that is read belongs to one state for another reason.
        is_closed: whether it was closed, and nothing can be read any more.
        is_trial: whether callbacks are not called, since changes are only tried out.
        closing: called before the engine is closed.
        after_commit: called after every commit; delivers to callbacks.
        shapes: the `ShapeCache` of questions, once one was asked.
    """

    def __init__(
        self,
        engine: Engine,
        algorithm: str | Mapping[str, str] = "auto",
        *,
        is_strict: bool = False,
        limits: Limits | None = None,
        console: Console | None = None,
        frames: SparkFrames | None = None,
        without: frozenset[MonitoringOptimisation] = NO_OPTIMISATION,
    ) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self.console = console or SilentConsole()
        self.frames = frames or SparkFrames()
        self.planner = Planner(engine, algorithm, is_strict=is_strict, without=without)
        self.loaded = LoadedProgram(Program(), load_program(Program()).checked, EMPTY_PROGRAM)
        self.planned_program = EMPTY_PROGRAM
        self.reactions: dict[str, dict[str, list[Reaction]]] = {}
        self.commits = 0
        self.author: Principal = OWNER
        self.day: date | None = None
        self.watched: dict[str, frozenset[State]] = {}
        self.callbacks: dict[str, list[Callable[[Any], object]]] = {}
        self.lock = RLock()
        self.is_committing = False
        self.is_pinned = False
        self.is_trial = False
        self.is_closed = False
        self.closing: list[Callable[[], object]] = []
        self.after_commit: Callable[[], None] = lambda: None
        self.shapes: Any = None
        self._event_relations: dict[str, Relation] = {}
        self._program_change: ProgramChange | None = None
        self._demand: tuple[NormalProgram, Collection[str], tuple[Signs, Signs]] | None = None

    @property
    def program(self) -> Program:
        """The program in force, as written."""
        return self.loaded.program

    def writable_relation(self, name: str) -> Relation:
        """Return a relation that may be written to.

        Raises:
            InputError: there is no such relation, or it has rules and no base part.
        """
        return writable_relation(self.loaded.normal, name)

    # --- what transactions have to evaluate ----------------------------------------------------

    def demand(
        self, program: NormalProgram, stage: Stage = Stage.REACTIONS, *, is_bounded: bool = False
    ) -> Demand:
        """Return what a transaction has to evaluate besides the stored relations.

        Args:
            program: what will be in force, perhaps specialised for planning.
            stage: which event predicates are to be evaluated.
            is_bounded: whether all rows that come in keep the bounds of their columns.
        """
        if self._demand is None or self._demand[0] is not program:
            active = program.active
            called = self.callback_events(program)
            reacting = {each.relation for each in active.reactions} | called
            reacting = {active.merged.get(name, name) for name in reacting}
            bounded = {*bounded_constraints(program)} & {*bounded_constraints(self.loaded.normal)}
            found: tuple[Signs, Signs] = (
                required_changes(active, (*active.triggers, *reacting)),
                required_changes(active, (*active.triggers, *(reacting - (bounded - called)))),
            )
            self._demand = program, reacting & active.relations.keys(), found
        _, events, by_bounds = self._demand
        signs = by_bounds[is_bounded]
        goals: Collection[str] = ()
        if stage is Stage.TRIGGERS:
            goals = program.active.triggers.keys()
        elif stage is Stage.REACTIONS:
            goals = events
        merged = _merge_signs(self._watched_in(program), signs)
        return Demand(merged, frozenset(goals), is_bounded)

    def _watched_in(self, program: NormalProgram) -> Signs:
        """Return what is watched, as far as a program has it."""
        return {name: each for name, each in self.watched.items() if name in program.relations}

    def callback_events(self, program: NormalProgram) -> frozenset[str]:
        """Return the relations, their changes (`-p`) and the event predicates with callbacks."""
        known = program.active.relations
        return frozenset(
            name
            for name in self.callbacks
            if name in known or observed_change(name)[0] in program.relations
        )

    def sizes_of(self, plan: plans.Plan) -> dict[str, int]:
        """Return the sizes of the stored relations that a plan for a question reads."""
        stored = plan.types.keys() & stored_relations(self.loaded.normal)
        return {name: self.engine.size(name) for name in stored}

    def has_resized(self, sizes: Mapping[str, int]) -> bool:
        """Return whether relations have other sizes than those that a plan was made for."""
        return any(
            abs(self.engine.size(name).bit_length() - size.bit_length()) > RESIZED_BITS
            for name, size in sizes.items()
        )

    def watch(self, relation: str, signs: frozenset[State]) -> None:
        """Ask for the changes of a virtual relation in every transaction from now on."""
        self.watched[relation] = signs
        self._observers_changed()

    def unwatch(self, relations: Iterable[str]) -> None:
        """Ask for the changes of virtual relations no more."""
        for name in relations:
            self.watched.pop(name, None)
        self._observers_changed()

    def add_callback(self, event: str, function: Callable[[Any], object]) -> None:
        """Call a function after every commit in which an event happened."""
        self.callbacks.setdefault(event, []).append(function)
        self._observers_changed()

    def _observers_changed(self) -> None:
        self.planner.drop_plans(self.loaded.normal)
        self.declare_event_relations()

    def declare_event_relations(self, program: NormalProgram | None = None) -> None:
        """Declare relations for the changes of virtual relations, and for event predicates.

        They belong to the program in force, or to the one that a transaction puts into force, and
        are empty between transactions.
        """
        self.engine.drop(self._event_relations)
        self._demand = None
        self.planned_program = self._plan_program() if program is None else program
        demand, active = self.demand(self.planned_program), self.planned_program.active
        relations = self.planned_program.relations
        declared = {
            plans.working_relation(name, sign): relations[name]
            for name in demand.signs
            if relations[name].is_virtual
            for sign in CHANGES
        }
        declared |= {
            plans.effect_relation(name): active.relations[name] for name in active.triggers
        }
        declared |= {plans.event_relation(name): active.relations[name] for name in demand.goals}
        self._event_relations = {
            name: replace(relation, name=name, is_declared=False)
            for name, relation in declared.items()
        }
        self.engine.declare(self._event_relations)
        self.reactions = {}
        for reaction in active.reactions:
            name = reaction.relation
            events = self.reactions.setdefault(active.merged.get(name, name), {})
            events.setdefault(name, []).append(reaction)

    def _plan_program(self) -> NormalProgram:
        """Return the program in force as it is planned for."""
        program = self.loaded.normal
        reacting = {each.relation for each in program.active.reactions}
        observed = {observed_change(each)[0] for each in self.callback_events(program)}
        observed |= reacting & program.relations.keys()
        kept = observed | self._watched_in(program).keys()
        return self.planner.monitored_program(program, frozenset(kept))

    def held_parts(self) -> dict[str, list[str]]:
        """Return for declared relations which parts hold tuples."""
        normal, engine = self.loaded.normal, self.engine
        return {
            name: [part for part, at in by_part.items() if engine.size(at)]
            for name, relation in normal.relations.items()
            if relation.is_declared
            if (by_part := normal.parts.get(normal.bases.get(name, name)))
        }

    def clear_event_relations(self) -> None:
        """Delete the changes of virtual relations, and the tuples of event predicates."""
        self.engine.clear(self._event_relations)

    # --- a transaction, from its beginning to its end ------------------------------------------

    @contextmanager
    def begin(
        self, after: LoadedProgram, conversion: Conversion | None = None
    ) -> Iterator[PendingCommit]:
        """Begin a transaction that puts a program into force; roll back unless it is accepted."""
        change = None
        pending = PendingCommit(after.normal, after, after.normal)
        if after.normal is not self.loaded.normal:
            check_functions(after)
            change = self._program_change = ProgramChange(
                self.engine, self.loaded.normal, after.normal, conversion or Conversion()
            )
        commits = self.commits
        try:
            if change is not None:
                pending = self._change_program(change, after)
            yield pending
        finally:
            if self.commits == commits:  # not accepted: an error, a dry run, nothing to commit
                self.console.done()
                self.clear_event_relations()
                self.engine.rollback()
                if change is not None:
                    change.undo()
                    self.planner.forget_columns(change.created)
                    self.declare_event_relations()
            self._program_change = None

    def _change_program(self, change: ProgramChange, after: LoadedProgram) -> PendingCommit:
        """Give the engine the relations of both programs."""
        normal = after.normal
        observed = {name for name, _ in normal.active.marked.values()}
        observed |= {*self.callback_events(normal), *self.watched}
        work = change.begin(observed if self.commits else ())
        change.fill(self.limits)
        self.planner.forget_columns(change.created)
        for each in work:
            with evaluated_relation(
                self.engine,
                each.rules,
                each.relation,
                data=State.OLD,
                statistics=self.planner.statistics,
                recorder=ProgressRecorder(self.console),
                limits=self.limits,
                is_readable=each.is_readable,
            ) as answers:
                self.engine.copy(answers, each.relation)
        self.declare_event_relations(change.after)
        return PendingCommit(
            change.before,
            after,
            change.after,
            frozenset(change.created),
            frozenset(change.refilled),
            frozenset(self.loaded.checked.signatures.keys() - after.checked.signatures.keys()),
            has_other_relations=change.has_other_relations,
        )

    def accept(self, pending: PendingCommit, run: PlanRun, number: int) -> None:
        """Make NEW the OLD: the transaction is recorded under a number."""
        self.planner.record_run(run.update, run.maintenance, run.recorder)
        self.clear_event_relations()
        self.engine.commit()
        self.commits = number
        if self._program_change is not None:
            self._program_change.finish()
            self.loaded = pending.after
            self.planner.drop_plans(pending.after.normal)
            self.declare_event_relations()

    def forget_day(self) -> None:
        """Forget the day that was set, once the program has it."""
        if TODAY_RELATION in self.loaded.normal.relations:
            self.day = None

    def arrange_for_changes(self, views: Collection[str]) -> None:
        """Sort large relations in the orders that maintaining views will probe.

        A first evaluation in bulk needs none of them, nor does a recomputation that a large change
        falls back to; the first change would wait for all. Changes are expected of large relations:
        small ones rather describe than record.
        """
        program, engine = self.planned_program, self.engine
        stored = (each for each in program.relations.values() if each.is_stored)
        large = {
            each.name
            for each in stored
            if ARRANGED_MIN_TUPLES <= engine.size(each.name) <= ARRANGED_MAX_TUPLES
        }
        if not large:
            return
        part = program.restricted_to(views)
        changed = [
            name
            for name in large
            if not part.relations[name].is_derived and plans.WORKING_SEPARATOR not in name
        ]
        with suppress(InputError):  # an algorithm that was asked for does not suit all changes
            plan = self.planner.plan_few(part, changed)
            probed = probed_columns(plans.pipelines_of(plan, with_fallbacks=False))
            for name in large & probed.keys():
                engine.arrange(name, plan.orders[name], probed[name])

    def note_no_change(self, after: LoadedProgram) -> None:
        """Take over a program that derives the same tuples, without a commit."""
        if after is not self.loaded:
            self.loaded = after
            self.planner.drop_plans(after.normal)

    # --- what other processes have committed ---------------------------------------------------

    def restore(
        self,
        engine: Engine,
        loaded: LoadedProgram,
        number: int,
        payload: frozenset[str],
        exact: frozenset[str],
    ) -> None:
        """Replace everything with what a store holds at a commit."""
        check_functions(loaded)
        self.engine.close()
        self.engine, self.loaded = engine, loaded
        self.planner.reset(engine)
        self.advance(number, payload, exact)
        self._event_relations = {}
        self.declare_event_relations()

    def advance(self, number: int, payload: frozenset[str], exact: frozenset[str]) -> None:
        """Note that the relations are those of a later commit.

        Args:
            number: of the commit.
            payload: the relations whose payload is valid.
            exact: those of them whose ranks are least heights.
        """
        self.commits = number
        self.planner.advance(payload, exact & payload)

    def invalidate_payload(self, relations: Iterable[str]) -> None:
        """Note that the ranks or counts of relations are no longer valid."""
        self.planner.payload -= set(relations)

    def close(self) -> None:
        """Stop what uses the engine, then close it."""
        while self.closing:
            self.closing.pop()()
        self.is_closed = True
        self.engine.close()

    def check_open(self) -> None:
        """Refuse to use a database that is closed.

        Raises:
            InputError: it is.
        """
        if self.is_closed:
            raise InputError.of(
                "C0925",
                "The database is closed.",
                None,
                "open it again with `corollary.open`, or read before it is closed",
            )


def _merge_signs(some: Signs, others: Signs) -> Signs:
    names = dict.fromkeys((*some, *others))
    return {name: some.get(name, NO_SIGNS) | others.get(name, NO_SIGNS) for name in names}
