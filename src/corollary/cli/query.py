"""`corollary query`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.warehouses import is_warehouse, opened, seen_by
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.engine import Limits
    from corollary.core.program import Relation


@click.command()
@click.argument("places", metavar="WAREHOUSE|PROGRAM...", nargs=-1, required=True)
@click.argument("goal")
@options.at
@options.as_reader
@click.option(
    "--log/--no-log",
    default=True,
    show_default=True,
    help="Count the goal, without its values, in the query log of the warehouse.",
)
@options.facts
@options.root
@options.limits
@options.format_
@options.quiet
def command(
    places: tuple[str, ...],
    goal: str,
    at: int | None,
    reader: str | None,
    log: bool,
    facts: Path,
    root: Path | None,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Answer one goal, computing only what it asks for.

    Of a warehouse (a directory, or a postgresql:// URL) stored relations are looked up, and virtual
    ones computed as far as the goal needs them; --at asks an earlier commit. Of a program the facts
    are read first, and values in the goal are pushed into the rules (magic sets), so a goal about
    one station does not compute the whole network.

    Prints a line per answer, with the goal's variables as columns; a goal without variables prints
    yes or no.

    \b
      corollary query warehouse 'link("a", y)'
      corollary query warehouse 'link("a", y)' --at 3
      corollary query warehouse 'link("a", y)' --as alice
      corollary query network.dl -F facts 'link("a", "d")'
    """
    of_warehouse = is_warehouse(places[0])
    if of_warehouse:
        _refuse_misfits(places)
    elif at is not None:
        raise click.UsageError("--at asks an earlier commit, and only a warehouse has commits")
    elif reader is not None:
        raise click.UsageError("--as asks as a reader, and only a warehouse has grants")
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        limits = options.limits_of(rest)
        if of_warehouse:
            answers, table = _ask(places[0], goal, at, reader, limits, console, log=log)
        else:
            from corollary.database.once import Places, query
            from corollary.database.program import read_programs

            program = read_programs([Path(each) for each in places])
            answers, table = query(program, goal, Places(facts, facts, root), limits, console)
        _print(answers, table, format)


def _refuse_misfits(places: tuple[str, ...]) -> None:
    """Raise if something is said that makes no sense for a warehouse."""
    if len(places) > 1:
        raise click.UsageError(f"'{places[0]}' is a warehouse, so the goal comes next, and no more")
    for option in ("facts", "root"):
        if options.is_given(option):
            raise click.UsageError(f"'{places[0]}' is a warehouse: it has its facts, leave out -F")


def _ask(
    place: str,
    goal: str,
    at: int | None,
    reader: str | None,
    limits: "Limits",
    console: TerminalConsole,
    *,
    log: bool,
) -> "tuple[Relation, pa.Table]":
    with opened(place, console, limits=limits, log_queries=log) as database:
        seen = seen_by(database, reader)
        return (seen if at is None else seen.at(at)).answers(goal)


def _print(answers: "Relation", table: "pa.Table", format_: str) -> None:
    from corollary.core.arrow import sort
    from corollary.database.changes import json_rows

    if format_ == "json":
        rows = json_rows(table, answers)
        options.print_json({"columns": list(answers.columns), "rows": rows})
    elif not answers.columns:
        click.echo("yes" if table.num_rows else "no")
    else:
        options.print_rows(sort(table), answers)
