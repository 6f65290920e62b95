"""Forecasts: algorithms, delta pipelines and plan for a change, without running it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from corollary.active.events import evaluate_events, required_changes
from corollary.active.optimise import optimise
from corollary.analysis.relevance import BOTH_SIGNS, flip_signs
from corollary.analysis.strata import strata
from corollary.core.engine import Engine
from corollary.core.logic import Rule
from corollary.core.monitoring_optimisations import NO_OPTIMISATIONS, MonitoringOptimisation
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.printer import print_rule
from corollary.core.program import NormalProgram
from corollary.core.states import CHANGES, State
from corollary.core.statistics import UNMEASURED_ROWS, Statistics
from corollary.database.counters import home_of
from corollary.database.database import Database, state_of
from corollary.database.engines import create_engine
from corollary.database.planning import parse_algorithms
from corollary.explain.forecast import DeltaPipeline, Forecast, StratumForecast
from corollary.maintain import placing
from corollary.maintain.algorithms.autonomous import is_autonomous, needs_witness
from corollary.maintain.choose import ChangeSizes
from corollary.maintain.delta import ChangedLiteral, make_body, read_in_state
from corollary.maintain.maintenance import Maintenance, choose_algorithms, maintain
from corollary.maintain.sip import sip
from corollary.maintain.update import Update

BaseChangeSizes = Mapping[str, Mapping[State, int]]
"""How many tuples base relations gain and lose."""


def forecast_for_database(database: Database, changes: BaseChangeSizes) -> Forecast:
    """Return the forecast for a change of a database, by the statistics of its relations."""
    state = state_of(database)
    normal = state.planned_program
    found = _by_base(normal, changes)
    update, maintenance = state.planner.plan(
        normal, normal, found, state.demand(normal, is_bounded=True), None, is_traced=False
    )
    return _forecast(changes, update, maintenance, state.engine)


def forecast_for_program(
    program: NormalProgram,
    changes: BaseChangeSizes,
    algorithm: str | Mapping[str, str] = "auto",
    watched: Iterable[str] = (),
    *,
    engine: Engine | None = None,
    without: Collection[MonitoringOptimisation] = NO_OPTIMISATIONS,
) -> Forecast:
    """Return the forecast for a change if all relations had some default size."""
    found = _by_base(program, changes)
    engine = engine or create_engine()
    watching = dict.fromkeys(watched, BOTH_SIGNS)
    reacting = {each.relation for each in program.active.reactions}
    program = optimise(program, {*watching, *(reacting & program.relations.keys())}, without)
    active = program.active
    goals = {active.merged.get(name, name) for name in reacting} | active.triggers.keys()
    placed = placing.place_strata(engine, program, program)
    update = Update(
        placed.before,
        placed.after,
        {name: frozenset(each) for name, each in found.items()},
        Statistics(
            dict.fromkeys(program.relations, UNMEASURED_ROWS),
            has_fixed_order=MonitoringOptimisation.SIP in without,
        ),
        {**required_changes(active, goals), **watching},
        frozenset(program.relations),
        frozenset(without),
    )
    chosen = choose_algorithms(update, parse_algorithms(algorithm), ChangeSizes(found, {}))
    maintenance = maintain(
        update,
        chosen,
        places=placed.places,
        make_final_steps=partial(evaluate_events, goals=goals & active.relations.keys()),
    )
    return _forecast(changes, update, maintenance, engine, is_guessed=True)


def _by_base(program: NormalProgram, changes: BaseChangeSizes) -> BaseChangeSizes:
    """Return changes by base relation; other copies of a row are another count."""
    found: dict[str, Mapping[State, int]] = {}
    for name, each in changes.items():
        counted = dict.fromkeys(CHANGES, max(each.values(), default=0))
        found[program.bases.get(name, name)] = counted if name in program.bags else each
    return found


def _forecast(
    changes: BaseChangeSizes,
    update: Update,
    maintenance: Maintenance,
    engine: Engine,
    *,
    is_guessed: bool = False,
) -> Forecast:
    places = maintenance.places
    by_relations = {stratum.relations: stratum for stratum in strata(update.new)}
    decisions = tuple(
        StratumForecast(
            choice.relations,
            str(choice.algorithm),
            choice.explanation,
            choice.cost,
            choice.budget,
            is_autonomous(stratum := by_relations[choice.relations], update)
            and not needs_witness(stratum, update),
            str(places[procedure].placement)
            if procedure in places
            else home_of(engine, choice.relations),
        )
        for procedure, choice in maintenance.choices.items()
    )
    return Forecast(
        changes,
        update.candidates,
        update.relevant,
        decisions,
        tuple(_deltas(update)),
        maintenance.plan,
        is_guessed,
        update.new,
        {
            name: engine.residency(name)
            for name, relation in update.new.relations.items()
            if relation.is_stored and engine.residency(name).place != engine.default_placement
        },
    )


def _deltas(update: Update) -> Iterator[DeltaPipeline]:
    """Yield the delta pipelines of every rule that the change reaches and that is needed."""
    for stratum in strata(update.new):
        for rule in stratum.rules:
            wanted = update.signs_of(rule.head.relation)
            for place, literal in enumerate(rule.literals):
                below = update.signs_of(literal.relation)
                effects = flip_signs(below) if literal.negated else below
                for sign in sorted(effects & wanted):
                    pipeline = _pipeline(rule, place, sign, update)
                    yield DeltaPipeline(print_rule(rule), sign, place, pipeline)


def _pipeline(rule: Rule, place: int, sign: State, update: Update) -> Pipeline:
    """Return add_i or rem_i."""
    literal = rule.literals[place]
    (change,) = flip_signs({sign}) if literal.negated else {sign}
    changed = ChangedLiteral(rule, place, sign, Reference(literal.relation, change))
    state = State.NEW if sign is State.ADDED else State.OLD
    body = make_body(rule, read_in_state(state), lead=changed.lead, position=place)
    return sip(
        body.head, body.goals, body.conditions, body.origin, update.statistics, lead=body.lead
    )
