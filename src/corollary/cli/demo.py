"""`corollary demo`."""

import random
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import click

from corollary.cli import options
from corollary.console import TerminalConsole

LINES, STOPS, SHORTCUTS = 400, 60, 40
START = "line7.stop0"


@click.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the example into this directory and leave it there.",
)
def command(keep: Path | None) -> None:
    """Run the bundled example from end to end.

    A railway network of some twenty thousand links: evaluates which stations can be reached from
    which, counts them, and answers one question by computing only what it needs.

    \b
      corollary demo
      corollary demo --keep example
    """
    console = TerminalConsole()
    with options.reported("text", console), tempfile.TemporaryDirectory() as temporary:
        directory = keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        _run(directory, console)
        if keep is not None:
            click.echo(f"\nThe example is in {keep}: network.dl, direct_link.facts, reach.csv")


def _run(directory: Path, console: TerminalConsole) -> None:
    from corollary.core.engine import Limits
    from corollary.database.once import Places, query, run
    from corollary.database.program import read_programs

    text = files("corollary").joinpath("examples/network.dl").read_text(encoding="utf-8")
    program_file = directory / "network.dl"
    program_file.write_text(text, encoding="utf-8")
    click.secho("The program", bold=True)
    click.echo(_indented(text))
    links = network()
    rows = "".join(f"{one}\t{two}\n" for one, two in links)
    (directory / "direct_link.facts").write_text(rows, encoding="utf-8")
    click.secho(f"Its facts: {len(links):,} direct links, such as", bold=True)
    click.echo(_indented(rows[: rows.index("\n")].replace("\t", " → ")))

    program = read_programs([program_file])
    places = Places(directory, directory)
    click.secho("\ncorollary run network.dl", bold=True)
    outcome = run(program, places, Limits(), console)
    for name, size in outcome.sizes.items():
        click.echo(f"    {name}: {size:,} tuples")
    for each in outcome.written:
        click.echo(f"    {each.relation}: {each.tuples:,} tuples, written to {each.path.name}")
    click.echo(f"    {outcome.seconds:.2f} s")

    goal = f'link("{START}", y)'
    click.secho(f"\ncorollary query network.dl '{goal}'", bold=True)
    began = time.monotonic()
    _, table = query(program, goal, places, Limits(), console)
    seconds = time.monotonic() - began
    click.echo(f"    {table.num_rows:,} stations, in {seconds:.2f} s: only what the goal asks for")
    click.echo(f"    was computed, {table.num_rows:,} of {outcome.sizes['link']:,} links")


def network() -> list[tuple[str, str]]:
    """Return the links of the example: lines of stops, and a few changes between lines.

    >>> len(network()) == LINES * (STOPS - 1) + SHORTCUTS
    True
    """
    chance = random.Random(7)  # noqa: S311 - an example, not a secret
    links = [
        (f"line{line}.stop{stop}", f"line{line}.stop{stop + 1}")
        for line in range(LINES)
        for stop in range(STOPS - 1)
    ]
    return links + [
        (f"line{line}.stop{STOPS - 1}", f"line{line + 1}.stop{chance.randrange(STOPS)}")
        for line in range(SHORTCUTS)
    ]


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
