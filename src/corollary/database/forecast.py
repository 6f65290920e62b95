"""Forecasts: algorithms, delta pipelines and plan for a change, without running it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from corollary.active.events import asked, react
from corollary.active.form import form
from corollary.analysis.relevance import BOTH, flipped
from corollary.analysis.strata import strata
from corollary.core.engine import Engine
from corollary.core.optimisations import NONE, Optimisation
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.printer import print_rule
from corollary.core.program import NormalProgram
from corollary.core.rules import Rule
from corollary.core.states import State
from corollary.core.statistics import GUESS, Statistics
from corollary.database.database import Database, state_of
from corollary.database.engines import LOCAL, made
from corollary.database.planning import algorithms_by_relation
from corollary.explain.forecast import Decision, Delta, Forecast
from corollary.maintain import placing
from corollary.maintain.autonomous import is_autonomous
from corollary.maintain.choose import Sizes
from corollary.maintain.delta import Changed, in_state, instance
from corollary.maintain.maintenance import Maintenance, choices, maintain
from corollary.maintain.sip import sip
from corollary.maintain.update import Update

ChangeSizes = Mapping[str, Mapping[State, int]]
"""How many tuples base relations gain and lose."""


def forecast_measured(database: Database, changes: ChangeSizes) -> Forecast:
    """Return the forecast for a change of a database, by the statistics of its relations."""
    state = state_of(database)
    normal = state.planned_program
    found = _by_base(normal, changes)
    update, maintenance = state.planning.planned(
        normal, normal, found, state.demand(normal), None, is_traced=False
    )
    return _forecast(changes, update, maintenance, state.engine.home)


def forecast_guessed(
    program: NormalProgram,
    changes: ChangeSizes,
    algorithm: str | Mapping[str, str] = "auto",
    watched: Iterable[str] = (),
    *,
    engine: Engine | None = None,
    without: Collection[Optimisation] = NONE,
) -> Forecast:
    """Return the forecast for a change if all relations had some default size."""
    found = _by_base(program, changes)
    engine = engine or made(LOCAL)
    watching = dict.fromkeys(watched, BOTH)
    reacting = {each.relation for each in program.active.reactions}
    program = form(program, {*watching, *(reacting & program.relations.keys())}, without)
    active = program.active
    goals = {active.merged.get(name, name) for name in reacting} | active.triggers.keys()
    placed = placing.place(engine, program, program)
    update = Update(
        placed.before,
        placed.after,
        {name: frozenset(each) for name, each in found.items()},
        Statistics(dict.fromkeys(program.relations, GUESS)),
        {**asked(active, goals), **watching},
        frozenset(program.relations),
        frozenset(without),
    )
    chosen = choices(update, algorithms_by_relation(algorithm), Sizes(found, {}))
    maintenance = maintain(
        update,
        chosen,
        places=placed.places,
        further=partial(react, goals=goals & active.relations.keys()),
    )
    return _forecast(changes, update, maintenance, engine.home, is_guessed=True)


def _by_base(program: NormalProgram, changes: ChangeSizes) -> ChangeSizes:
    return {program.bases.get(name, name): each for name, each in changes.items()}


def _forecast(
    changes: ChangeSizes,
    update: Update,
    maintenance: Maintenance,
    home: str,
    *,
    is_guessed: bool = False,
) -> Forecast:
    places = maintenance.places
    by_relations = {stratum.relations: stratum for stratum in strata(update.new)}
    decisions = tuple(
        Decision(
            choice.relations,
            str(choice.algorithm),
            choice.reason,
            choice.cost,
            choice.budget,
            is_autonomous(by_relations[choice.relations], update),
            str(places[procedure].placement) if procedure in places else home,
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
    )


def _deltas(update: Update) -> Iterator[Delta]:
    """Yield the delta pipelines of every rule that the change reaches and that is needed."""
    for stratum in strata(update.new):
        for rule in stratum.rules:
            wanted = update.signs(rule.head.relation)
            for place, literal in enumerate(rule.literals):
                below = update.signs(literal.relation)
                effects = flipped(below) if literal.negated else below
                for sign in sorted(effects & wanted):
                    pipeline = _pipeline(rule, place, sign, update)
                    yield Delta(print_rule(rule), sign, place, pipeline)


def _pipeline(rule: Rule, place: int, sign: State, update: Update) -> Pipeline:
    """Return add_i or rem_i."""
    literal = rule.literals[place]
    (change,) = flipped({sign}) if literal.negated else {sign}
    changed = Changed(rule, place, sign, Reference(literal.relation, change))
    state = State.NEW if sign is State.ADDED else State.OLD
    body = instance(rule, in_state(state), lead=changed.lead, place=place)
    return sip(
        body.head, body.goals, body.conditions, body.origin, update.statistics, lead=body.lead
    )
