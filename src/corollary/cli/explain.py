"""`corollary explain`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.databases import Wanted, filled
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corollary.core.program import NormalProgram
    from corollary.core.states import State


SHARES = 2
"""How many there are in an explanation, for which Spark is not asked."""


@click.command()
@options.programs
@click.option("--goal", help="Explain how this goal is answered, instead of a full evaluation.")
@click.option(
    "--added",
    metavar="RELATION[=N]",
    multiple=True,
    help="Explain what happens when this base relation gains N tuples (1 if not given).",
)
@click.option(
    "--removed",
    metavar="RELATION[=N]",
    multiple=True,
    help="Explain what happens when it loses some.",
)
@options.placement
@options.algorithm
@options.by_relation
@options.watch
@options.without
@click.option(
    "-F",
    "--facts",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the facts files, to measure sizes; without it they are guessed.",
)
@options.root
@options.limits
@options.format_
def command(
    programs: tuple[Path, ...],
    goal: str | None,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    placement: str,
    algorithm: str,
    relations: tuple[str, ...],
    watch: tuple[str, ...],
    without: tuple[str, ...],
    facts: Path | None,
    root: Path | None,
    format: str,
    **rest: Any,
) -> None:
    """Show how a program will be evaluated, or maintained.

    Prints the strata in order; for each one whether it is recursive, stored or virtual, by which
    column its work could be divided (pivot), and its rules as pipelines: the literals in the order
    of their probes, with the columns that are bound (b) and free (f), and the column orders that
    the probes need.

    With --added or --removed, shows how a change would be met instead: which relations may change
    and which are asked for, what maintains each stratum and why, the delta pipelines and the plan;
    with active rules also what they watch, and the copies of views that are watched for constants.

    \b
      corollary explain network.dl
      corollary explain network.dl --goal 'link("a", y)'
      corollary explain network.dl --removed direct_link
      corollary explain network.dl --added direct_link=1000 -F facts
    """
    if goal is not None and (added or removed):
        raise click.UsageError("--goal explains a query, --added and --removed explain a change")
    console = TerminalConsole()
    with options.reported(format, console):
        wanted = Wanted(options.algorithms_of(algorithm, relations), watch)
        limits = options.limits_of(rest)
        if not (added or removed):
            text, document = _evaluation(programs, goal)
        else:
            from corollary.core.optimisations import optimisations
            from corollary.database.engines import SPARK, made
            from corollary.database.forecast import forecast_guessed, forecast_measured
            from corollary.database.program import load, read_programs
            from corollary.explain.forecast import forecast_as_json, print_forecast

            normal = load(read_programs(programs)).normal
            changes = _changes(normal, added, removed)
            wanted.check(normal)
            if facts is None:
                engine = made(SPARK, placement=placement, shares=SHARES)
                forecast = forecast_guessed(
                    normal,
                    changes,
                    wanted.algorithms,
                    wanted.watched(normal),
                    engine=engine,
                    without=optimisations(without),
                )
            else:
                database = filled(
                    programs, facts, root, wanted, limits, console, placement, without
                )
                forecast = forecast_measured(database, changes)
            text, document = print_forecast(forecast), forecast_as_json(forecast)
        if format == "json":
            options.print_json(document)
        else:
            click.echo(text)


def _evaluation(programs: tuple[Path, ...], goal: str | None) -> tuple[str, dict[str, Any]]:
    """Return the plan of an evaluation, or of a query, as text and as JSON."""
    from corollary.core.statistics import Statistics
    from corollary.database.program import load, read_goal, read_programs
    from corollary.explain.plan import plan_as_json, print_plan
    from corollary.maintain.seminaive import evaluate
    from corollary.maintain.solve import solve

    program = read_programs(programs)
    normal = load(program).normal
    if goal is None:
        plan = evaluate(normal, Statistics())
    else:
        plan = solve(normal, read_goal(program, goal), Statistics())
    return print_plan(plan, normal), plan_as_json(plan, normal)


def _changes(
    program: "NormalProgram", added: tuple[str, ...], removed: tuple[str, ...]
) -> "Mapping[str, Mapping[State, int]]":
    """Return how many tuples base relations gain and lose, from the options."""
    from corollary.core.states import State
    from corollary.database.names import writable

    found: dict[str, dict[State, int]] = {}
    for sign, options_ in ((State.ADDED, added), (State.REMOVED, removed)):
        for option in options_:
            name, equals, count = option.partition("=")
            if equals and not (count.isdecimal() and int(count)):
                raise click.BadParameter(
                    f"'{count}' is not a number of tuples; write {name}=100",
                    param_hint=f"'--{sign}'",
                )
            writable(program, name)
            found.setdefault(name, {})[sign] = int(count or 1)
    return found
