"""`corollary query`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import is_warehouse, open_to_read
from corollary.cli.options import FileOptions, LimitOptions, SnapshotOptions, WorkOutputOptions
from corollary.cli.output import print_json, print_rows
from corollary.cli.parameters import COUNT, family, functors, is_given
from corollary.cli.recording import echo
from corollary.cli.served_command import ServedCommand
from corollary.console import LONG_SECONDS

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.program import Relation


@click.command(cls=ServedCommand)
@click.argument("places", metavar="WAREHOUSE|PROGRAM...", nargs=-1, required=True)
@click.argument("goal")
@family("read", SnapshotOptions)
@click.option(
    "--log/--no-log",
    default=True,
    show_default=True,
    help="Count the goal, without its values, in the query log of the warehouse.",
)
@click.option(
    "--order",
    metavar="COLUMN[ desc]",
    multiple=True,
    help="Order answers by this column. May be repeated; the first one counts most.",
)
@click.option("--limit", type=COUNT, help="Print at most this many answers, the first ones.")
@family("files", FileOptions)
@family("limits", LimitOptions)
@functors
@family("output", WorkOutputOptions)
def command(
    places: tuple[str, ...],
    goal: str,
    log: bool,
    order: tuple[str, ...],
    limit: int | None,
    read: SnapshotOptions,
    files: FileOptions,
    limits: LimitOptions,
    output: WorkOutputOptions,
) -> None:
    """Answer one goal, computing only what it asks for.

    Of a warehouse (a directory, or a postgresql:// URL) stored relations are looked up, and virtual
    ones computed as far as the goal needs them; --at asks an earlier commit. Of a program the facts
    are read first, and values in the goal are pushed into the rules (magic sets), so a goal about
    one station does not compute the whole network.

    A goal is what the body of a rule can be: atoms, conditions, negation, aggregates. Prints a line
    per answer, with the goal's variables as columns; a goal without variables prints yes or no.

    \b
      corollary query warehouse 'link("a", y)'
      corollary query warehouse 'link("a", y), y != "b", !blocked(y)'
      corollary query warehouse 'n = count : { link(x, _) }, station(x)' --order 'n desc' --limit 3
      corollary query warehouse 'link("a", y)' --at 3
      corollary query warehouse 'link("a", y)' --at 2026-11-15
      corollary query warehouse 'link("a", y)' --as alice
      corollary query network.dl -F facts 'link("a", "d")'
    """
    of_warehouse = is_warehouse(places[0])
    if of_warehouse:
        _check_usage(places)
    elif read.at is not None:
        raise click.UsageError("--at asks an earlier commit, and only a warehouse has commits")
    elif read.reader is not None:
        raise click.UsageError("--as asks as a reader, and only a warehouse has grants")
    with output.reporting(LONG_SECONDS) as console:
        if of_warehouse:
            with open_to_read(
                places[0], console, limits=limits.limits, log_queries=log
            ) as database:
                answers, table = read.view(database).answers(goal)
        else:
            from corollary.database.intake.evaluate_once import FileLocations, query_once
            from corollary.database.program.loaded_program import read_programs

            program = read_programs([Path(each) for each in places])
            source = FileLocations(files.facts, root=files.root)
            answers, table = query_once(
                program, goal, source, limits.limits, console, today=files.today
            )
        from corollary.database.program.goals import arrange

        _print(answers, arrange(table, order, limit), is_json=output.is_json)


def _check_usage(places: tuple[str, ...]) -> None:
    """Raise if arguments do not go with a warehouse."""
    if len(places) > 1:
        raise click.UsageError(f"'{places[0]}' is a warehouse, so the goal comes next, and no more")
    if is_given("today"):
        raise click.UsageError(
            f"'{places[0]}' is a warehouse, which has its day: set it with corollary apply --today"
        )
    for option in ("facts", "root"):
        if is_given(option):
            raise click.UsageError(f"'{places[0]}' is a warehouse: it has its facts, leave out -F")


def _print(answers: "Relation", table: "pa.Table", *, is_json: bool) -> None:
    from corollary.database.changes import json_rows

    if is_json:
        rows = json_rows(table, answers, is_sorted=True)
        print_json({"columns": list(answers.columns), "rows": rows})
    elif not answers.columns:
        echo("yes" if table.num_rows else "no")
    else:
        print_rows(table, answers)
