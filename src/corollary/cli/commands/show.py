"""`corollary show`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, functors, programs

if TYPE_CHECKING:
    from corollary.analysis.lineage import ColumnSource, Lineage
    from corollary.database.program.loaded_program import LoadedProgram


@click.command()
@programs
@click.option("--written", is_flag=True, help="Only format the program as it was written.")
@click.option(
    "--as",
    "language",
    type=click.Choice(["rules", "sql", "lineage"]),
    default="rules",
    show_default=True,
    help="Print rules, tables and views in SQL, or where each column comes from.",
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
    help="With --as sql: only this relation, and what it reads; with --as lineage: only this one. "
    "May be repeated.",
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
    """Print a program in its normal form, as SQL, or the lineage of its columns.

    Disjunctions are split, aggregates have become relations of their own, negated literals are
    bound: these are the rules that are evaluated. Relations with a dot in their name were made on
    the way. With --written, prints the program as written, in the standard layout.

    With --as sql, prints CREATE TABLE and CREATE VIEW for another engine; what cannot be said there
    is a comment with the reason. With --as lineage, prints for each column of a view the columns of
    base relations that it comes from, and how; then those that decide which rows there are.

    \b
      corollary show network.dl
      corollary show network.dl --written
      corollary show network.dl --as sql --dialect duckdb --relation link
      corollary show network.dl --as lineage
    """
    if written and language != "rules":
        raise click.UsageError(f"--written prints rules: leave out --as {language}, or --written")
    if names and language == "rules":
        raise click.UsageError("--relation goes with --as sql and --as lineage")
    with output.reporting():
        from corollary.core.printer import print_functor, print_program
        from corollary.database.program.loaded_program import load_program, read_programs
        from corollary.explain.normal_form import print_normal

        program = read_programs(programs)
        if language == "lineage":
            found = _lineages(load_program(program), names)
            document = {"lineage": {name: each.as_json() for name, each in found.items()}}
            output.show(lambda: document, _lineage_lines(found))
            return
        if written:
            text = print_program(program)
        elif language == "rules":
            own = "".join(f"{print_functor(each)}\n" for each in program.functors)
            text = (f"{own}\n" if own else "") + print_normal(load_program(program).normal)
        else:
            from corollary.cli.report.sql_script import sql_script

            text = sql_script(load_program(program), dialect, names)
        output.show(lambda: {"program": text}, [text.removesuffix("\n")])


def _lineages(loaded: "LoadedProgram", names: Sequence[str] = ()) -> dict[str, "Lineage"]:
    """Return the lineage of the views of a program, or of some relations.

    Raises:
        InputError: there is no such relation.
    """
    from corollary.analysis.lineage import lineage_of
    from corollary.core.program import RelationKind
    from corollary.database.program.names import readable_relation

    program = loaded.normal
    for name in names:
        readable_relation(program, name)
    views = (
        name for name in program.declared_relations if program.kind_of(name) != RelationKind.BASE
    )
    return {name: lineage_of(program, name) for name in names or views}


def _lineage_lines(found: Mapping[str, "Lineage"]) -> Iterator[str]:
    """Yield a table for each relation: its columns, then what decides on its rows."""
    from corollary.cli.report.tables import align

    for name, lineage in found.items():
        yield name
        rows = [(f"  {column}", _print_sources(of)) for column, of in lineage.columns.items()]
        yield from align([*rows, ("  (rows)", _print_sources(lineage.rows))])


def _print_sources(found: Sequence["ColumnSource"]) -> str:
    return ", ".join(
        f"{each.relation}.{each.column}"
        + ("" if each.influence == "identity" else f" ({each.influence})")
        for each in found
    )
