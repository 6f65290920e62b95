"""`corollary show`."""

from pathlib import Path

import click

from corollary.cli import options
from corollary.console import TerminalConsole


@click.command()
@options.programs
@click.option("--written", is_flag=True, help="Only format the program as it was written.")
@options.format_
def command(programs: tuple[Path, ...], written: bool, format: str) -> None:
    """Print a program in its normal form.

    Disjunctions are split, aggregates have become relations of their own, negated literals are
    bound: these are the rules that are evaluated. Relations with a dot in their name were made on
    the way. With --written, prints the program as written, in the standard layout.

    \b
      corollary show network.dl
      corollary show network.dl --written
    """
    console = TerminalConsole()
    with options.reported(format, console):
        from corollary.core.printer import print_normal, print_program
        from corollary.database.program import load, read_programs

        program = read_programs(programs)
        text = print_program(program) if written else print_normal(load(program).normal)
        if format == "json":
            options.print_json({"program": text})
        else:
            click.echo(text, nl=not text.endswith("\n"))
