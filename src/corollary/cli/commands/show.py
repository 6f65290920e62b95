"""`corollary show`."""

from pathlib import Path

import click

from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, functors, programs


@click.command()
@programs
@click.option("--written", is_flag=True, help="Only format the program as it was written.")
@click.option(
    "--as",
    "language",
    type=click.Choice(["rules", "sql"]),
    default="rules",
    show_default=True,
    help="Print rules, or tables and views in SQL.",
)
@click.option(
    "--dialect",
    type=click.Choice(["spark", "duckdb"]),
    default="spark",
    show_default=True,
    help="The engine that SQL is for.",
)
@click.option(
    "--relation",
    "names",
    metavar="NAME",
    multiple=True,
    help="With --as sql: only this relation, and what it reads. May be repeated.",
)
@functors
@family("output", FormatOptions)
def command(
    programs: tuple[Path, ...],
    written: bool,
    language: str,
    dialect: str,
    names: tuple[str, ...],
    output: FormatOptions,
) -> None:
    """Print a program in its normal form, or as SQL.

    Disjunctions are split, aggregates have become relations of their own, negated literals are
    bound: these are the rules that are evaluated. Relations with a dot in their name were made on
    the way. With --written, prints the program as written, in the standard layout.

    With --as sql, prints CREATE TABLE and CREATE VIEW for another engine; what cannot be said there
    is a comment with the reason.

    \b
      corollary show network.dl
      corollary show network.dl --written
      corollary show network.dl --as sql --dialect duckdb --relation link
    """
    if written and language == "sql":
        raise click.UsageError("--written prints rules: leave out --as sql, or --written")
    if names and language != "sql":
        raise click.UsageError("--relation goes with --as sql")
    with output.reporting():
        from corollary.core.printer import print_functor, print_program
        from corollary.database.program.loaded_program import load_program, read_programs
        from corollary.explain.normal_form import print_normal

        program = read_programs(programs)
        if written:
            text = print_program(program)
        elif language == "rules":
            own = "".join(f"{print_functor(each)}\n" for each in program.functors)
            text = (f"{own}\n" if own else "") + print_normal(load_program(program).normal)
        else:
            from corollary.cli.report.sql_script import sql_script

            text = sql_script(load_program(program), dialect, names)
        output.show(lambda: {"program": text}, [text.removesuffix("\n")])
