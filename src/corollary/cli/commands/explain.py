"""`corollary explain`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from corollary.cli.databases import load_in_memory
from corollary.cli.options import (
    FormatOptions,
    LimitOptions,
    Placement,
    PropagationOptions,
    RootOption,
    Without,
)
from corollary.cli.parameters import DIRECTORY, family, option, programs
from corollary.console import Console

if TYPE_CHECKING:
    from corollary.core.program import NormalProgram
    from corollary.core.states import State
    from corollary.explain.forecast import Forecast


PARTITIONS = 2
"""The number of partitions in an explanation, which starts no Spark session to ask for it."""


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
        Path | None,
        "Directory of the facts files, to measure sizes; without it they are guessed.",
        option("-F", "--facts", type=DIRECTORY),
    ]
    placement: Placement
    without: Without


@click.command()
@programs
@family("options", ExplainOptions)
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
            text, document = _evaluation(programs, options.goal)
        else:
            from corollary.explain.forecast import forecast_as_json, print_forecast

            forecast = _forecast(programs, options, console)
            text, document = print_forecast(forecast), forecast_as_json(forecast)
        output.show(lambda: document, [text])


def _forecast(programs: tuple[Path, ...], options: ExplainOptions, console: Console) -> "Forecast":
    """Return how a change would be propagated, with sizes that are measured or guessed."""
    from corollary.core.monitoring_optimisations import parse_optimisations
    from corollary.database.engines import SPARK, create_engine
    from corollary.database.forecast import forecast_for_database, forecast_for_program
    from corollary.database.program.loaded_program import load_program, read_programs

    normal = load_program(read_programs(programs)).normal
    changes = _changes(normal, options.added, options.removed)
    options.check(normal)
    if options.facts is None:
        return forecast_for_program(
            normal,
            changes,
            options.algorithms,
            options.watched(normal),
            engine=create_engine(SPARK, placement=options.placement, partition_count=PARTITIONS),
            without=parse_optimisations(options.without),
        )
    database = load_in_memory(
        programs,
        options.facts,
        options.root,
        options,
        options.limits,
        console,
        options.placement,
        options.without,
    )
    return forecast_for_database(database, changes)


def _evaluation(programs: tuple[Path, ...], goal: str | None) -> tuple[str, dict[str, Any]]:
    """Return the plan of an evaluation, or of a query, as text and as JSON."""
    from corollary.core.statistics import Statistics
    from corollary.database.program.loaded_program import load_program, read_goal, read_programs
    from corollary.explain.plan import plan_as_json, print_plan
    from corollary.maintain.algorithms.seminaive import plan_program
    from corollary.maintain.solve import solve

    program = read_programs(programs)
    normal = load_program(program).normal
    if goal is None:
        plan = plan_program(normal, Statistics())
    else:
        plan = solve(normal, read_goal(program, goal), Statistics())
    return print_plan(plan, normal), plan_as_json(plan, normal)


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
