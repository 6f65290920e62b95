"""Plans transactions: statistics, measured costs, and a cache of plans."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import partial

from corollary.active.events import evaluate_events, event_plan
from corollary.active.normal_form import with_old_queries
from corollary.active.optimise import optimise
from corollary.analysis.relevance import Signs
from corollary.analysis.strata import Stratum, strata
from corollary.core.engine import Engine, Limits
from corollary.core.monitoring_optimisations import NO_OPTIMISATIONS, MonitoringOptimisation
from corollary.core.once import once_per_program, stored_relations
from corollary.core.plans import Plan
from corollary.core.program import NormalProgram, RefreshPolicy, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import CHANGES, State
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.database.counters import StatsRecorder, StratumRecord
from corollary.database.size_estimates import query_sizes, with_virtual_sizes
from corollary.errors import InputError
from corollary.maintain.choose import (
    SELECTABLE_ALGORITHMS,
    Algorithm,
    AlgorithmChoice,
    ChangeSizes,
    corrected,
)
from corollary.maintain.maintenance import (
    PAYLOAD_KEEPING_ALGORITHMS,
    Maintenance,
    choose_algorithms,
    incremental_update,
    maintain,
    plan_payload_rebuild,
)
from corollary.maintain.payload import has_ranks, payload_kinds, payload_relations, rank_meaning
from corollary.maintain.placing import PlacedPrograms, place_strata
from corollary.maintain.update import EMPTY_PROGRAM, Update

CACHE_MAX_PLANS = 64
"""The maximum number of plans that are kept for similar transactions."""

MAX_GROWTH_FACTOR, MAX_SHRINK_FACTOR = 2, 64
"""A relation that has grown or shrunk by more is measured again..."""

IGNORED_TUPLES = 64
"""...unless it differs by no more tuples than this."""


class Stage(StrEnum):
    """What is evaluated after the views: triggers, then reactions to the net change, or nothing."""

    TRIGGERS = "triggers"
    REACTIONS = "reactions"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a transaction has to evaluate besides the stored relations.

    Attributes:
        signs: virtual relations whose changes are needed, with the signs.
        goals: event predicates to evaluate.
        is_bounded: whether violations of bounds are left out, since all rows keep them.
    """

    signs: Signs = field(default_factory=dict)
    goals: frozenset[str] = frozenset()
    is_bounded: bool = False


@dataclass(frozen=True, slots=True)
class _PlanVariants:
    """The plans for changes of the same relations with the same signs.

    Attributes:
        by_algorithms: a plan for each choice of algorithms.
        by_magnitudes: those plans, by the numbers of bits of the sizes.
    """

    update: Update
    placed: PlacedPrograms
    by_algorithms: dict[object, Maintenance] = field(default_factory=dict)
    by_magnitudes: dict[object, Maintenance] = field(default_factory=dict)


class Planner:
    """Chooses and caches plans.

    Attributes:
        statistics: of the relations, when they were last measured.
        payload: the relations whose ranks, counts or totals are valid.
        exact: those whose ranks are least heights: their strata were evaluated, and nothing below
            them has changed since.
    """

    def __init__(
        self,
        engine: Engine,
        algorithm: str | Mapping[str, str],
        *,
        is_strict: bool,
        without: frozenset[MonitoringOptimisation] = NO_OPTIMISATIONS,
    ) -> None:
        self.statistics = Statistics()
        self.payload: frozenset[str] = frozenset()
        self.exact: frozenset[str] = frozenset()
        self._engine = engine
        self._named = parse_algorithms(algorithm)
        self._is_strict = is_strict
        self._without = without
        self._work: dict[str, int] = {}
        self._corrections: dict[tuple[str, frozenset[State]], float] = {}
        self._measured: NormalProgram | None = None
        self._resized: set[str] = set()
        """The relations that have changed since all were compared with the statistics."""
        self._plans: dict[object, _PlanVariants] = {}
        self._reactions: dict[object, tuple[Update, Plan]] = {}
        self._formed = EMPTY_PROGRAM, frozenset[str](), EMPTY_PROGRAM
        """The program in force, the other relations that were needed, and the result."""
        self._stored_payload = (frozenset[str](),) * 3

    def reset(self, engine: Engine) -> None:
        """Plan for another engine, without any statistics yet."""
        self._engine = engine
        self._formed = EMPTY_PROGRAM, frozenset[str](), EMPTY_PROGRAM
        self.statistics = Statistics()
        self._measured = None
        self._work.clear()
        self._corrections.clear()
        self._plans.clear()

    def plan(
        self,
        before: NormalProgram,
        after: NormalProgram,
        changes: Mapping[str, Mapping[State, int]],
        demand: Demand,
        algorithm: str | Mapping[str, str] | None,
        *,
        is_traced: bool,
        refilled: frozenset[str] = frozenset(),
    ) -> tuple[Update, Maintenance]:
        """Return the plan for a change; a known one if the same relations gained or lost before.

        Sizes only choose algorithms, by their orders of magnitude.
        """
        self._measure(before)
        is_first = not any(map(self._is_filled, before.relations.values()))
        key: object = None
        if before is after:
            signs = tuple((name, *each) for name, each in changes.items())
            options = demand.goals, demand.is_bounded, repr(algorithm), is_traced
            key = (id(after), signs, is_first, self.payload, *options)
        known = None if key is None else self._plans.get(key)
        magnitudes = tuple(size.bit_length() for each in changes.values() for size in each.values())
        if known is not None and (made := known.by_magnitudes.get(magnitudes)) is not None:
            return known.update, made
        variants = known or self._new_variants(
            before, after, changes, demand, refilled, is_traced=is_traced
        )
        named = self._named if algorithm is None else parse_algorithms(algorithm)
        if before is not after and RefreshPolicy.STRICT in after.policies.values():
            self.choices_by_changes(before, after)
        home, residency = self._engine.default_placement, self._engine.residency
        bodies = {each.body for each in after.aggregations}
        remote = {name for name in bodies if residency(name).place != home}
        sizes = ChangeSizes(changes, self._work, is_first, self._corrections, remote)
        made = self._variant(variants, named, sizes, demand.goals, is_traced=is_traced)
        variants.by_magnitudes[magnitudes] = made
        if key is not None and known is None:
            if len(self._plans) >= CACHE_MAX_PLANS:
                self._plans.clear()
            self._plans[key] = variants
        return variants.update, made

    def choices_by_changes(
        self, before: NormalProgram, program: NormalProgram
    ) -> dict[str, tuple[Stratum, AlgorithmChoice]]:
        """Return how a program follows a row that comes and one that goes in each base relation.

        The sizes are those of the program before it.

        Raises:
            InputError: a view is not to be computed anew, and has to be.
        """
        update = incremental_update(program, self.query_statistics(before))
        changes = {name: dict.fromkeys(each, 1) for name, each in update.changed.items()}
        return choose_algorithms(update, parse_algorithms("auto"), ChangeSizes(changes, self._work))

    def plan_few(self, program: NormalProgram, changed: Collection[str]) -> Plan:
        """Return the plan for a few changes of some relations, which is not kept."""
        self._measure(program)
        changes = {name: dict.fromkeys(CHANGES, 1) for name in changed}
        variants = self._new_variants(program, program, changes, Demand(), frozenset())
        sizes = ChangeSizes(changes, self._work, is_first=False, corrections=self._corrections)
        return self._variant(variants, self._named, sizes, frozenset(), is_traced=False).plan

    def _variant(
        self,
        variants: _PlanVariants,
        named: Callable[[str], Algorithm],
        sizes: ChangeSizes,
        goals: frozenset[str],
        *,
        is_traced: bool,
    ) -> Maintenance:
        """Return the plan with the algorithms that suit changes of some sizes."""
        update = variants.update
        chosen = choose_algorithms(update, named, sizes)
        algorithms = tuple(
            (name, choice.algorithm, choice.budget is None) for name, (_, choice) in chosen.items()
        )
        made = variants.by_algorithms.get(algorithms)
        if made is not None:
            return replace(made, choices={name: choice for name, (_, choice) in chosen.items()})
        made = variants.by_algorithms[algorithms] = maintain(
            update,
            chosen,
            places=variants.placed.places,
            make_final_steps=partial(evaluate_events, goals=goals),
            is_traced=is_traced,
            is_strict=self._is_strict,
        )
        return made

    def _new_variants(
        self,
        before: NormalProgram,
        after: NormalProgram,
        changes: Mapping[str, Mapping[State, int]],
        demand: Demand,
        refilled: frozenset[str],
        *,
        is_traced: bool = False,
    ) -> "_PlanVariants":
        placed = PlacedPrograms(before, after, {})
        if not is_traced:  # a trace tells the steps of one propagation, not those of each task
            placed = place_strata(self._engine, before, after)
        update = Update(
            placed.before,
            placed.after,
            {name: frozenset(each) for name, each in changes.items()},
            self._statistics_used,
            demand.signs,
            self.payload if before is after else self._valid(before, after),
            self._without,
            None if before is after else with_old_queries(placed.before, placed.after),
            refilled,
        )
        return _PlanVariants(update, placed)

    def monitored_program(self, program: NormalProgram, kept: frozenset[str]) -> NormalProgram:
        """Return the program in force, optimised for monitoring.

        Views that active rules watch for some constants are specialised for them, and similar
        rules are merged. The constants are inserted into the engine.

        Args:
            program: the one in force.
            kept: further relations whose changes are needed.
        """
        known, others, formed = self._formed
        if known is not program or others != kept:
            formed = optimise(program, kept, self._without)
            self._engine.declare({name: formed.relations[name] for name in formed.constants})
            for name, rows in formed.constants.items():
                self._engine.insert(name, rows)
            self._engine.commit(formed.constants)
            self._formed = program, kept, formed
        return formed

    def plan_reactions(self, update: Update, demand: Demand) -> Plan:
        """Return the plan that evaluates event predicates after the maintenance of an update."""
        key = id(update), demand.goals
        known = self._reactions.get(key)
        if known is None or known[0] is not update:
            if len(self._reactions) >= CACHE_MAX_PLANS:
                self._reactions.clear()
            known = self._reactions[key] = update, event_plan(update, demand.goals)
        return known[1]

    @property
    def _statistics_used(self) -> Statistics:
        """The statistics, and whether literals are probed in the order of the text."""
        is_as_written = MonitoringOptimisation.SIP in self._without
        return replace(self.statistics, has_fixed_order=True) if is_as_written else self.statistics

    def query_statistics(self, program: NormalProgram) -> Statistics:
        """Return the statistics for a query: current sizes, distinct values as last measured.

        Counting distinct values may take long, so no query waits for it.
        """
        rows, known = query_sizes(program, self._engine.size), self.statistics
        distinct = {
            name: each
            for name, each in known.distinct.items()
            if name in rows and _is_similar(rows[name], known.rows.get(name, 0))
        }
        return Statistics(rows, distinct)

    def _is_filled(self, relation: Relation) -> bool:
        """Whether a relation is derived and stored, and not empty."""
        is_stored = relation.is_derived and not relation.is_virtual
        return is_stored and self._engine.size(relation.name, State.OLD) > 0

    def _measure(self, program: NormalProgram) -> None:
        """Measure statistics again if sizes have changed much."""
        rows = self.statistics.rows
        resized = stored_relations(program)
        if self._measured is program:
            resized &= self._resized
        self._measured, self._resized = program, set()
        for name in resized:
            size = self._engine.size(name, State.OLD)
            if (size and name not in rows) or not _is_similar(size, rows.get(name, 0)):
                self.statistics = with_virtual_sizes(program, self._engine.statistics())
                self._plans.clear()
                return

    def rebuild_payload(self, update: Update, maintenance: Maintenance, limits: Limits) -> set[str]:
        """Rebuild the payload, as of OLD, where an algorithm needs it and it is not valid.

        Returns the relations whose payload was rebuilt.
        """
        needed = {
            procedure
            for procedure, choice in maintenance.choices.items()
            if choice.algorithm in (Algorithm.RANKED, Algorithm.COUNTING)
            and not update.valid_payload >= set(choice.relations)
        }
        if not needed:
            return set()
        for stratum in strata(update.new):
            for choice in (maintenance.choices[each] for each in needed):
                if choice.relations == stratum.relations:
                    self._engine.run(
                        plan_payload_rebuild(stratum, update), CountingRecorder(), limits
                    )
                    made = payload_relations(stratum, update.new)
                    self._engine.commit(each.name for each in made)
        return {name for each in needed for name in maintenance.choices[each].relations}

    @staticmethod
    def payload_after(
        update: Update, maintenance: Maintenance, recorder: StatsRecorder
    ) -> frozenset[str]:
        """Return the relations whose payload is valid after a transaction.

        It is the same set as before if none comes or goes: others are not looked at.
        """
        payload = update.valid_payload
        kept: set[str] = set()
        lost: set[str] = set()
        for procedure, record in recorder.strata.items():
            choice = maintenance.choices[procedure]
            if choice.algorithm in PAYLOAD_KEEPING_ALGORITHMS or _is_full(choice, record):
                kept.update(choice.relations)
            elif choice.algorithm is not Algorithm.AUTONOMOUS:  # which does not touch payload
                lost.update(choice.relations)
        return payload if kept <= payload and payload.isdisjoint(lost) else payload - lost | kept

    def exact_after(
        self, update: Update, maintenance: Maintenance, recorder: StatsRecorder
    ) -> frozenset[str]:
        """Return the relations whose ranks are least heights after a transaction."""
        choices = maintenance.choices
        full = {
            name
            for procedure, record in recorder.strata.items()
            if _is_full(choices[procedure], record)
            for name in choices[procedure].relations
        }
        if update.old is update.new and not full and self.exact.isdisjoint(update.candidates):
            return self.exact
        return (self.exact - update.candidates.keys() | full) & _ranked_relations(update.new)

    def stored_payload(self, payload: frozenset[str], stored: frozenset[str]) -> frozenset[str]:
        """Return those of the valid payload that are stored; the same set for the same ones."""
        known, of, found = self._stored_payload
        if payload is not known or stored is not of:  # to compare them takes long
            both = payload & stored
            found = found if both == found else both
            self._stored_payload = payload, stored, found
        return found

    def record_run(self, update: Update, maintenance: Maintenance, recorder: StatsRecorder) -> None:
        """Note after a transaction which payload is valid, and what an evaluation costs."""
        self._resized |= self._engine.changed()
        self.exact = self.exact_after(update, maintenance, recorder)
        self.payload = self.payload_after(update, maintenance, recorder)
        for procedure, record in recorder.strata.items():
            choice = maintenance.choices[procedure]
            if _is_full(choice, record):
                self._work |= dict.fromkeys(choice.relations, 0)
                self._work[choice.relations[0]] = record.handled - record.given_up
            self._correct(choice, record)

    def _correct(self, choice: AlgorithmChoice, record: StratumRecord) -> None:
        """Compare what a stratum has handled with its estimate, for those that follow."""
        if not choice.signs:
            return
        key = choice.relations[0], choice.signs
        known = self._corrections.get(key, 1.0)
        work = record.handled - record.given_up if record.has_switched else None
        handled = record.given_up if record.has_switched else record.handled
        found = corrected(choice, known, handled, work)
        if found != known:
            self._corrections[key] = found
            for variants in self._plans.values():
                variants.by_magnitudes.clear()

    def advance(self, payload: frozenset[str], exact: frozenset[str]) -> None:
        """Note which payload is valid after commits of others, which have changed any relation."""
        self.payload, self.exact = payload, exact
        self._measured = None

    def forget_columns(self, relations: Collection[str]) -> None:
        """Forget what was measured of the columns of relations, which have others now."""
        distinct = self.statistics.distinct
        if not distinct.keys().isdisjoint(relations):
            left = {name: each for name, each in distinct.items() if name not in relations}
            self.statistics = replace(self.statistics, distinct=left)

    def drop_plans(self, program: NormalProgram) -> None:
        """Drop all plans, and the payload of relations that a program does not store."""
        self.payload &= stored_relations(program)
        self._measured = None
        self._plans.clear()

    def _valid(self, old: NormalProgram, new: NormalProgram) -> frozenset[str]:
        """Return the relations whose payload is still valid when the rules have changed.

        Ranks stay valid when a stratum is split, not when strata merge; counts only if the
        relation was counted before.
        """
        before = {name: stratum for stratum in strata(old) for name in stratum.relations}
        found: set[str] = set()
        for stratum in strata(new):
            members = set(stratum.relations)
            was = before.get(stratum.relations[0])
            if (
                was is not None
                and payload_kinds(was, old) == payload_kinds(stratum, new)
                and rank_meaning(was, old) == rank_meaning(stratum, new)
            ):
                found |= members if members <= set(was.relations) else set()
        return self.payload & found


@once_per_program
def _ranked_relations(program: NormalProgram) -> frozenset[str]:
    """Return the relations that have ranks."""
    return frozenset(
        name
        for stratum in strata(program)
        if has_ranks(stratum, program) and not (stratum.subsumption or stratum.dominated)
        for name in stratum.relations
    )


def _is_similar(size: int, was: int) -> bool:
    """Whether plans for the size that was measured are good for the current size.

    A relation may shrink by more than it may grow, so that relations that are emptied and filled
    again and again are not planned for each time.
    """
    lowest = was // MAX_SHRINK_FACTOR - IGNORED_TUPLES
    return lowest <= size <= MAX_GROWTH_FACTOR * was + IGNORED_TUPLES


def _is_full(choice: AlgorithmChoice, record: StratumRecord) -> bool:
    """Whether a stratum was evaluated in full."""
    return choice.algorithm is Algorithm.RECOMPUTE or record.has_switched


def parse_algorithms(algorithm: str | Mapping[str, str]) -> Callable[[str], Algorithm]:
    """Return a function from relations to the algorithm that was chosen for them.

    Raises:
        InputError: there is no such algorithm.
    """
    named = {"": algorithm} if isinstance(algorithm, str) else dict(algorithm)
    for each in named.values():
        if each not in SELECTABLE_ALGORITHMS:
            raise InputError.of(
                "C0917",
                f"There is no algorithm `{each}`.",
                None,
                f"the algorithms are {', '.join(SELECTABLE_ALGORITHMS)}",
            )
    default = Algorithm(named.get("", Algorithm.AUTO))
    return lambda name: Algorithm(named.get(name, default))
