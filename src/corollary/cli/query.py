"""`corollary query`."""

from pathlib import Path
from typing import Any

import click

from corollary.cli import options
from corollary.console import TerminalConsole


@click.command()
@options.programs
@click.argument("goal")
@options.facts
@options.root
@options.limits
@options.format_
@options.quiet
def command(
    programs: tuple[Path, ...],
    goal: str,
    facts: Path,
    root: Path | None,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Answer one goal, computing only what it asks for.

    Values in the goal are pushed into the rules (magic sets), so a goal about one station does not
    compute the whole network. Prints a line per answer, with the goal's variables as columns; a
    goal without variables prints yes or no.

    \b
      corollary query network.dl -F facts 'link("a", y)'
      corollary query network.dl -F facts 'link("a", "d")'
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        from corollary.core.arrow import sort, to_python
        from corollary.core.values import text_of
        from corollary.database.once import Places, query
        from corollary.database.program import read_programs

        limits = options.limits_of(rest)
        answers, table = query(
            read_programs(programs), goal, Places(facts, facts, root), limits, console
        )
        if format == "json":
            rows = options.rows_as_json(table, answers)
            options.print_json({"columns": list(answers.columns), "rows": rows})
        elif not answers.columns:
            click.echo("yes" if table.num_rows else "no")
        else:
            click.echo("\t".join(answers.columns))
            for row in to_python(sort(table)):
                texts = (
                    text_of(value, each) for value, each in zip(row, answers.types, strict=True)
                )
                click.echo("\t".join(texts))
