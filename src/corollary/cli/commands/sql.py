"""`corollary sql`."""

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.databases import is_warehouse, open_to_read
from corollary.cli.options import FileOptions, LimitOptions, SnapshotOptions, WorkOutputOptions
from corollary.cli.output import print_json, print_rows
from corollary.cli.parameters import Pair, family, functors, is_given, pair
from corollary.cli.served_command import ServedCommand
from corollary.console import LONG_SECONDS

if TYPE_CHECKING:
    from corollary.database.sql.answer import SqlAnswer


@click.command(cls=ServedCommand)
@click.argument("places", metavar="WAREHOUSE|PROGRAM...", nargs=-1, required=True)
@click.argument("question")
@click.option(
    "--set",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    type=pair("is not a parameter and its value; write k=5"),
    allow_from_autoenv=False,
    help="The value of the parameter :NAME, a number or a text. May be repeated.",
)
@family("read", SnapshotOptions)
@family("files", FileOptions)
@family("limits", LimitOptions)
@functors
@family("output", WorkOutputOptions)
def command(
    places: tuple[str, ...],
    question: str,
    parameters: tuple[Pair, ...],
    read: SnapshotOptions,
    files: FileOptions,
    limits: LimitOptions,
    output: WorkOutputOptions,
) -> None:
    r"""Answer one question in SQL: SELECT, WITH or VALUES.

    The dialect is Spark's, over stored and virtual relations, whether SQL or Datalog defines them.
    Of a warehouse, stored relations are looked up, and virtual ones computed as far as the question
    needs them; --at, or VERSION AS OF and TIMESTAMP AS OF, ask an earlier commit. Of a program, the
    facts are read first. The text is never changed: values come by parameters, with --set.

    This command only reads. Data is changed with `corollary apply` and in `corollary shell`.

    \b
      corollary sql warehouse 'SELECT y FROM link WHERE x = :x ORDER BY y LIMIT 10' --set x=a
      corollary sql warehouse 'SELECT x, COUNT(*) AS n FROM link GROUP BY x' --format json
      corollary sql warehouse 'SELECT * FROM link VERSION AS OF 3'
      corollary sql warehouse 'SELECT * FROM link' --at 2026-11-15 --as alice
      corollary sql shop.sql -F data 'SELECT * FROM open_orders'
    """
    of_warehouse = is_warehouse(places[0])
    if of_warehouse:
        _check_usage(places)
    elif read.at is not None:
        raise click.UsageError("--at asks an earlier commit, and only a warehouse has commits")
    elif read.reader is not None:
        raise click.UsageError("--as asks as a reader, and only a warehouse has grants")
    values = {name: _value(text) for name, text in parameters}
    with output.reporting(LONG_SECONDS) as console:
        if of_warehouse:
            with open_to_read(places[0], console, limits=limits.limits) as database:
                answer = read.view(database).ask(question, None, values)
        else:
            from corollary.database.intake.evaluate_once import FileLocations
            from corollary.database.program.loaded_program import read_programs
            from corollary.database.sql.once import ask_once

            program = read_programs([Path(each) for each in places])
            source = FileLocations(files.facts, root=files.root)
            answer = ask_once(
                program,
                question,
                values,
                source,
                limits=limits.limits,
                console=console,
                today=files.today,
            )
        print_answer(answer, is_json=output.is_json)


def print_answer(answer: "SqlAnswer", *, is_json: bool) -> None:
    """Print the rows of an answer, in their order, or sorted if they have none."""
    from corollary.core.arrow import sort_rows
    from corollary.database.changes import json_rows

    table = answer.arrow() if answer.is_ordered else sort_rows(answer.arrow())
    if is_json:
        rows = json_rows(table, answer.shape, is_sorted=True)
        print_json({"columns": list(answer.columns), "rows": rows})
    else:
        print_rows(table, answer.shape)


def _value(text: str) -> Any:
    """Return the value of a parameter: a number if it looks like one, else the text."""
    if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?[0-9]+\.[0-9]+", text, re.ASCII):
        return Decimal(text)
    return text


def _check_usage(places: tuple[str, ...]) -> None:
    """Raise if arguments do not go with a warehouse."""
    if len(places) > 1:
        raise click.UsageError(
            f"'{places[0]}' is a warehouse, so the question comes next, and no more"
        )
    if is_given("today"):
        raise click.UsageError(
            f"'{places[0]}' is a warehouse, which has its day: set it with corollary apply --today"
        )
    for option in ("facts", "root"):
        if is_given(option):
            raise click.UsageError(f"'{places[0]}' is a warehouse: it has its facts, leave out -F")
