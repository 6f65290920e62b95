"""`corollary show`."""

from pathlib import Path

import click

from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, programs


@click.command()
@programs
@click.option("--written", is_flag=True, help="Only format the program as it was written.")
@family("output", FormatOptions)
def command(programs: tuple[Path, ...], written: bool, output: FormatOptions) -> None:
    """Print a program in its normal form.

    Disjunctions are split, aggregates have become relations of their own, negated literals are
    bound: these are the rules that are evaluated. Relations with a dot in their name were made on
    the way. With --written, prints the program as written, in the standard layout.

    \b
      corollary show network.dl
      corollary show network.dl --written
    """
    with output.reporting():
        from corollary.core.printer import print_normal, print_program
        from corollary.database.program.loaded_program import load_program, read_programs

        program = read_programs(programs)
        text = print_program(program) if written else print_normal(load_program(program).normal)
        output.show(lambda: {"program": text}, [text.removesuffix("\n")])
