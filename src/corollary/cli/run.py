"""`corollary run`."""

from pathlib import Path
from typing import Any

import click

from corollary.cli import options
from corollary.console import TerminalConsole


@click.command()
@options.programs
@options.facts
@options.outputs
@options.root
@options.engine
@options.limits
@options.output_format
@options.quiet
def command(
    programs: tuple[Path, ...],
    facts: Path,
    outputs: Path,
    root: Path | None,
    engine: str,
    output_format: str,
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
    with options.reported(output_format, console):
        from corollary.database.once import Places, run
        from corollary.database.program import read_programs

        program = read_programs(programs)
        outcome = run(program, Places(facts, outputs, root), options.limits_of(rest), console)
        if output_format == "json":
            options.print_json(
                {
                    "outputs": {
                        name: {"file": file, "tuples": tuples}
                        for name, (file, tuples) in outcome.outputs.items()
                    },
                    "sizes": outcome.sizes,
                    "seconds": round(outcome.seconds, 6),
                }
            )
            return
        for name, size in outcome.sizes.items():
            click.echo(f"{name}\t{size}")
        for name, (file, tuples) in outcome.outputs.items():
            console.note(f"{name}: {tuples:,} tuples in {file}")
