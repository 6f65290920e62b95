"""`corollary graph`."""

from pathlib import Path

import click

from corollary.cli.options import FormatOptions
from corollary.cli.parameters import programs


@click.command()
@programs
@click.option(
    "--to",
    type=click.Choice(["svg", "dot"]),
    default="dot",
    show_default=True,
    help="A picture, or text for Graphviz.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file."
)
def command(programs: tuple[Path, ...], to: str, output: Path | None) -> None:
    """Draw which relation is computed from which.

    Relations that depend on each other share a box; dashed arrows are negation, dotted ones
    aggregates; base relations are drawn with square corners.

    \b
      corollary graph network.dl --to svg -o network.svg
    """
    with FormatOptions("text").reporting():
        from corollary.database.program.loaded_program import load_program, read_programs
        from corollary.explain.dependency_graph import graph_as_dot, graph_as_svg

        normal = load_program(read_programs(programs)).normal
        text = graph_as_svg(normal) if to == "svg" else graph_as_dot(normal)
        if output is None:
            click.echo(text)
        else:
            output.write_text(text + "\n", encoding="utf-8")
