"""`corollary demo`."""

import random
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import click

from corollary.cli import options
from corollary.console import TerminalConsole

LINES, STOPS, SHORTCUTS = 400, 60, 20
START = "line7.stop0"
TRAFFIC = (
    ("delete", [("line300.stop30", "line300.stop31")]),
    ("insert", [("line300.stop30", "line300.stop31")]),
    ("delete", [("line200.stop10", "line200.stop11")]),
    ("insert", [("line200.stop10", "line200.stop12")]),
)
"""What happens in the network: what is called, with which links."""


@click.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the example into this directory and leave it there.",
)
def command(keep: Path | None) -> None:
    """Run the bundled example from end to end.

    A railway network of some twenty thousand links: evaluates which stations can be reached from
    which, counts them, answers one question by computing only what it needs, and keeps everything
    true while links close and open.

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
    _maintain(program_file, directory, outcome.seconds)


def _maintain(program_file: Path, directory: Path, evaluation: float) -> None:
    """Close and open links in a database that keeps every view true."""
    from corollary.database.database import open_database

    database = open_database(None, engine="local")
    database.load(program_file, facts=directory)
    click.secho("\nLinks close and open: each is one transaction (Python)", bold=True)
    for operation, links in TRAFFIC:
        began = time.monotonic()
        with database.transaction() as transaction:
            getattr(transaction, operation)("direct_link", links)
        milliseconds = 1000 * (time.monotonic() - began)
        click.echo(f'    tx.{operation}("direct_link", {links})')
        changes = "  ".join(
            f"{name}{f' +{added:,}' if added else ''}{f' −{removed:,}' if removed else ''}"
            for name, change in transaction.changes.items()
            for added, removed in [change.counts]
            if change.relation.is_derived
        )
        click.echo(f"        {changes}  in {milliseconds:.0f} ms")
    click.echo(f"    The evaluation took {1000 * evaluation:,.0f} ms; the first transaction of its")
    click.echo("    kind includes planning and sorting, later ones do not.")


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
