"""`corollary explain`."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from corollary.cli.databases import load_in_memory
from corollary.cli.options import (
    Bulk,
    FormatOptions,
    LimitOptions,
    Placement,
    PropagationOptions,
    RootOption,
    Today,
    Without,
)
from corollary.cli.parameters import family, functors, option, place, programs
from corollary.console import Console
from corollary.data_class import dataclass

if TYPE_CHECKING:
    from corollary.core.pipeline import Reference
    from corollary.core.plans import Plan
    from corollary.core.program import NormalProgram
    from corollary.core.states import State
    from corollary.database.database import Database
    from corollary.explain.forecast import Forecast
    from corollary.explain.plan import StepNote
    from corollary.warehouse.files.places import Place


@dataclass(frozen=True)
class ExplainOptions(RootOption, PropagationOptions, LimitOptions):
    """What is explained, and with which sizes."""

    goal: Annotated[
        str | None, "Explain how this goal is answered, instead of a full evaluation.", option()
    ]
    added: Annotated[
        tuple[str, ...],
        "Explain what happens when this base relation gains N tuples (1 if not given).",
        option(metavar="RELATION[=N]", multiple=True),
    ]
    removed: Annotated[
        tuple[str, ...],
        "Explain what happens when it loses some.",
        option(metavar="RELATION[=N]", multiple=True),
    ]
    facts: Annotated[
        "Place | None",
        "Directory of the facts files, to measure sizes; without it they are guessed.",
        option("-F", "--facts", type=place, metavar="DIRECTORY"),
    ]
    today: Today
    placement: Placement
    bulk: Bulk
    without: Without


@click.command()
@programs
@family("options", ExplainOptions)
@functors
@family("output", FormatOptions)
def command(programs: tuple[Path, ...], options: ExplainOptions, output: FormatOptions) -> None:
    """Show how a program will be evaluated, or maintained.

    Prints the strata in order; for each one whether it is recursive, stored or virtual, by which
    column its work could be divided (pivot), and its rules as pipelines: the literals in the order
    of their probes, with the columns that are bound (b) and free (f), and the column orders that
    the probes need.

    With --added or --removed, shows how a change is propagated instead: which relations may change
    and which are asked for, what maintains each stratum and why, the delta pipelines and the plan;
    with active rules also what they watch, and the copies of views that are watched for constants.

    \b
      corollary explain network.dl
      corollary explain network.dl --goal 'link("a", y)'
      corollary explain network.dl --removed direct_link
      corollary explain network.dl --added direct_link=1000 -F facts
    """
    is_change = bool(options.added or options.removed)
    if options.goal is not None and is_change:
        raise click.UsageError("--goal explains a query, --added and --removed explain a change")
    with output.reporting() as console:
        if not is_change:
            text, document = _evaluation(programs, options, console)
        else:
            from corollary.explain.forecast import forecast_as_json, print_forecast

            forecast, sizes = _forecast(programs, options, console)
            counts = forecast.changes
            inside = {name for name, each in forecast.places.items() if each.place == "partitions"}
            note = _bulk_note(
                forecast.plan, options.bulk, lambda each: _size(each, sizes, counts), inside
            )
            text, document = print_forecast(forecast, note), forecast_as_json(forecast, note)
        output.show(lambda: document, [text])


def _size(
    source: "Reference", sizes: Mapping[str, int], changes: Mapping[str, Mapping["State", int]]
) -> int | None:
    """Return the size of a relation in a state, if it is known."""
    from corollary.core.states import CHANGES

    if source.state in CHANGES:
        return changes.get(source.relation, {}).get(source.state)
    return sizes.get(source.relation)


def _bulk_note(
    plan: "Plan", bulk: str, size_of: "Callable[[Reference], int | None]", inside: Collection[str]
) -> "StepNote":
    """Return what says of each step whether it is bulk; some relations are in partitions."""
    from corollary.core.engine import BulkMode
    from corollary.engines.local.bulk.notes import BulkNotes

    if not inside:
        return BulkNotes(plan, BulkMode(bulk), size_of).note
    from corollary.engines.spark.bulk.notes import SparkNotes

    return SparkNotes(plan, BulkMode(bulk), size_of, inside.__contains__).note


def _forecast(
    programs: tuple[Path, ...], options: ExplainOptions, console: Console
) -> "tuple[Forecast, Mapping[str, int]]":
    """Return how a change would be propagated, and the sizes of relations that were measured."""
    from corollary.core.monitoring_optimisations import parse_optimisations
    from corollary.database.engines import create_engine
    from corollary.database.forecast import forecast_for_database, forecast_for_program
    from corollary.database.options import DatabaseOptions
    from corollary.database.program.loaded_program import load_program, read_programs

    loaded = load_program(read_programs(programs))
    normal = loaded.normal
    changes = _changes(normal, options.added, options.removed)
    options.check(normal)
    if options.facts is None:
        guessed = forecast_for_program(
            normal,
            changes,
            options.algorithms,
            options.watched(loaded),
            engine=create_engine(DatabaseOptions(placement=options.placement)),
            without=parse_optimisations(options.without),
        )
        return guessed, {}
    database, sizes = _loaded(
        programs, options, console, placement=options.placement, without=options.without
    )
    return forecast_for_database(database, changes), sizes


def _loaded(
    programs: tuple[Path, ...], options: ExplainOptions, console: Console, **placed: Any
) -> "tuple[Database, Mapping[str, int]]":
    """Return a database in memory with the facts, and the sizes of its relations."""
    from corollary.database.database import state_of

    facts, root, limits, today = options.facts, options.root, options.limits, options.today
    assert facts is not None
    database = load_in_memory(
        programs, facts, root, options, limits, console, today=today, **placed
    )
    return database, state_of(database).engine.statistics().rows


def _evaluation(
    programs: tuple[Path, ...], options: ExplainOptions, console: Console
) -> tuple[str, dict[str, Any]]:
    """Return the plan of an evaluation, or of a query, as text and as JSON."""
    from corollary.core.monitoring_optimisations import MonitoringOptimisation, parse_optimisations
    from corollary.core.statistics import Statistics
    from corollary.core.table_options import describe_options, given_options
    from corollary.database.program.goals import read_goal
    from corollary.database.program.loaded_program import load_program, read_programs
    from corollary.explain.plan import plan_as_json, print_plan
    from corollary.maintain.algorithms.seminaive import plan_program
    from corollary.maintain.goal_evaluation import solve

    program = read_programs(programs)
    loaded = load_program(program)
    normal = loaded.normal
    sizes: Mapping[str, int] = {}
    if options.facts is not None:
        _, sizes = _loaded(programs, options, console)
    without = parse_optimisations(options.without)
    statistics = Statistics(has_fixed_order=MonitoringOptimisation.SIP in without)
    if options.goal is None:
        plan = plan_program(normal, statistics, asked=loaded.written_relations or None)
    else:
        goal = read_goal(loaded, options.goal)
        normal = goal.program
        plan = solve(normal, goal.literal, statistics)
    inside = plan.types.keys() & normal.relations if options.placement == "partitions" else ()
    note = _bulk_note(plan, options.bulk, lambda each: _size(each, sizes, {}), inside)
    text, document = print_plan(plan, normal, note), plan_as_json(plan, normal, note)
    tables = {name: each for name, each in given_options(program.directives).items() if each}
    if tables and options.goal is None:
        lines = (f"    {name}: {describe_options(each)}" for name, each in tables.items())
        return "\n".join((text, "", "tables", *lines)), {**document, "tables": tables}
    return text, document


def _changes(
    program: "NormalProgram", added: tuple[str, ...], removed: tuple[str, ...]
) -> Mapping[str, Mapping["State", int]]:
    """Return how many tuples base relations gain and lose, from the options."""
    from corollary.core.states import State
    from corollary.database.program.names import writable_relation

    changes: dict[str, dict[State, int]] = {}
    for sign, texts in ((State.ADDED, added), (State.REMOVED, removed)):
        for text in texts:
            name, equals, count = text.partition("=")
            if equals and not (count.isdecimal() and int(count)):
                raise click.BadParameter(
                    f"'{count}' is not a number of tuples; write {name}=100",
                    param_hint=f"'--{sign}'",
                )
            writable_relation(program, name)
            changes.setdefault(name, {})[sign] = int(count or 1)
    return changes
