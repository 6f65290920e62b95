"""`corollary run`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.once import Outcome


@click.command()
@options.programs
@options.facts
@options.outputs
@options.root
@options.engine
@options.limits
@options.format_
@options.quiet
def command(
    programs: tuple[Path, ...],
    facts: Path,
    outputs: Path,
    root: Path | None,
    engine: str,
    format: str,
    quiet: bool,
    **rest: Any,
) -> None:
    """Evaluate a program once: read its facts, write its outputs.

    Facts are read from the directory -F (`.input edge` reads edge.facts, tab-separated), results
    are written to -D (`.output link` writes link.csv), as Soufflé does. Nothing is written if
    anything is wrong.

    \b
      corollary run network.dl -F facts -D out
      corollary run network.dl --limit-seconds 60 --format json
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console):
        from corollary.database.once import Places, run
        from corollary.database.program import read_programs
        from corollary.warehouse.delimited import print_rows

        program = read_programs(programs)
        outcome = run(program, Places(facts, outputs, root), options.limits_of(rest), console)
        if format == "json":
            options.print_json(_as_json(outcome))
            return
        options.print_warnings(outcome.warnings, console)
        options.note_reactions(program, console)
        for directive, relation, table in outcome.printed:
            print_rows(table, sys.stdout.buffer, relation, directive)
        sys.stdout.flush()
        for name, size in outcome.sizes.items():
            click.echo(f"{name}\t{size}")
        for each in outcome.written:
            tuples = "1 tuple" if each.tuples == 1 else f"{each.tuples:,} tuples"
            console.note(f"{each.relation}: {tuples} in {each.path}")


def _as_json(outcome: "Outcome") -> dict[str, Any]:
    return {
        "outputs": [
            {"relation": each.relation, "file": str(each.path), "tuples": each.tuples}
            for each in outcome.written
        ],
        "sizes": outcome.sizes,
        "rows": {
            relation.name: options.rows_as_json(table, relation)
            for _, relation, table in outcome.printed
        },
        "warnings": [options.as_json(each) for each in outcome.warnings],
        "seconds": round(outcome.seconds, 6),
    }
