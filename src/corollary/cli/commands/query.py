"""`corollary query` and `corollary sql`: one goal, or one question in SQL."""

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.databases import is_warehouse, open_to_read
from corollary.cli.options import FileOptions, LimitOptions, SnapshotOptions, WorkOutputOptions
from corollary.cli.output import print_json, print_rows
from corollary.cli.parameters import COUNT, Pair, family, functors, is_given, pair
from corollary.cli.recording import echo
from corollary.cli.served_command import ServedCommand
from corollary.console import LONG_SECONDS, TerminalConsole
from corollary.data_class import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.core.program import Relation
    from corollary.database.intake.evaluate_once import QueriedProgram
    from corollary.database.reading.answer import SqlAnswer

places_argument = click.argument("places", metavar="WAREHOUSE|PROGRAM...", nargs=-1, required=True)


@dataclass(frozen=True)
class QuestionOptions(SnapshotOptions, FileOptions, LimitOptions, WorkOutputOptions):
    """Of what a question is asked, within which bounds, and how its answer is printed."""

    def of_warehouse(self, places: tuple[str, ...], what: str) -> bool:
        """Whether a warehouse is asked, and not a program.

        Args:
            places: the arguments before the question.
            what: what the question is called.

        Raises:
            click.UsageError: other arguments and options do not go with it.
        """
        if not is_warehouse(places[0]):
            if self.at is not None:
                raise click.UsageError(
                    "--at asks an earlier commit, and only a warehouse has commits"
                )
            if self.reader is not None:
                raise click.UsageError("--as asks as a reader, and only a warehouse has grants")
            return False
        named = f"'{places[0]}' is a warehouse"
        if len(places) > 1:
            raise click.UsageError(f"{named}, so the {what} comes next, and no more")
        if is_given("today"):
            raise click.UsageError(
                f"{named}, which has its day: set it with corollary apply --today"
            )
        if is_given("facts") or is_given("root"):
            raise click.UsageError(f"{named}: it has its facts, leave out -F")
        return True

    def open_program(self, places: tuple[str, ...], console: TerminalConsole) -> "QueriedProgram":
        """Return the program that is asked."""
        from corollary.database.intake.evaluate_once import QueriedProgram
        from corollary.database.program.loaded_program import read_programs
        from corollary.database.writing.inputs import FileLocations

        program = read_programs([Path(each) for each in places])
        located = FileLocations(self.facts, root=self.root)
        return QueriedProgram(program, located, self.limits, console, today=self.today)


@click.command(cls=ServedCommand)
@places_argument
@click.argument("goal")
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
@functors
@family("options", QuestionOptions)
def command(
    places: tuple[str, ...],
    goal: str,
    log: bool,
    order: tuple[str, ...],
    limit: int | None,
    options: QuestionOptions,
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
    of_warehouse = options.of_warehouse(places, "goal")
    with options.reporting(LONG_SECONDS) as console:
        if of_warehouse:
            with open_to_read(places[0], console, options.limits, log_queries=log) as database:
                answers, table = options.view(database).answers(goal)
        else:
            with options.open_program(places, console) as program:
                answers, table = program.answers(goal)
        from corollary.database.program.goals import arrange

        print_answers(answers, arrange(table, order, limit), is_json=options.is_json)


def print_answers(answers: "Relation", table: "pa.Table", *, is_json: bool) -> None:
    """Print the answers of a goal, in their order."""
    from corollary.database.changes import json_rows

    if is_json:
        rows = json_rows(table, answers, is_sorted=True)
        print_json({"columns": list(answers.columns), "rows": rows})
    elif not answers.columns:
        echo("yes" if table.num_rows else "no")
    else:
        print_rows(table, answers)


@click.command(cls=ServedCommand)
@places_argument
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
@functors
@family("options", QuestionOptions)
def sql(
    places: tuple[str, ...], question: str, parameters: tuple[Pair, ...], options: QuestionOptions
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
    of_warehouse = options.of_warehouse(places, "question")
    values = {name: _value(text) for name, text in parameters}
    with options.reporting(LONG_SECONDS) as console:
        if of_warehouse:
            with open_to_read(places[0], console, options.limits) as database:
                answer = options.view(database).ask(question, None, values)
        else:
            with options.open_program(places, console) as program:
                answer = program.ask(question, None, values)
        print_answer(answer, is_json=options.is_json)


def print_answer(answer: "SqlAnswer", *, is_json: bool) -> None:
    """Print the rows of an answer in SQL, in their order, or sorted if they have none."""
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
