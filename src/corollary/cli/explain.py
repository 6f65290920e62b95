"""`corollary explain`."""

from pathlib import Path

import click

from corollary.cli import options
from corollary.console import TerminalConsole


@click.command()
@options.programs
@click.option("--goal", help="Explain how this goal is answered, instead of a full evaluation.")
@options.format_
def command(programs: tuple[Path, ...], goal: str | None, format: str) -> None:
    """Show how a program will be evaluated.

    Prints the strata in order; for each one whether it is recursive, stored or virtual, by which
    column its work could be divided (pivot), and its rules as pipelines: the literals in the order
    of their probes, with the columns that are bound (b) and free (f), and the column orders that
    the probes need.

    \b
      corollary explain network.dl
      corollary explain network.dl --goal 'link("a", y)'
    """
    console = TerminalConsole()
    with options.reported(format, console):
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
        if format == "json":
            options.print_json(plan_as_json(plan, normal))
        else:
            click.echo(print_plan(plan, normal))
