"""`corollary demo`."""

import json
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.options import EngineOption, FormatOptions
from corollary.cli.parameters import family
from corollary.console import TerminalConsole
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction

REGIONS, TOWNS, STREETS, HOMES, RING = 20, 50, 10, 24, 10
"""Every region has an exchange that feeds rings of towns; towns feed streets, streets homes."""

CUT = (("r3", "r3.t10"), ("r7.t2", "r7.t2.s4"), ("r11.t40.s9", "r11.t40.s9.h0"))
LAID = (("r7.t3", "r7.t2.s4"), ("r4", "r3.t18"))
"""What happens in the network: cables are cut by a digger, others are laid."""

CUT_AGAIN = (("r5", "r5.t20"),)
"""What the digger cuts when it comes back."""

MAX_TUPLES = 3
"""The maximum number of changed tuples that are printed."""


@click.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the example into this directory and leave it there.",
)
@family("options", EngineOption)
def command(keep: Path | None, options: EngineOption) -> None:
    """Run the bundled example from end to end, on Spark.

    A fibre network of a quarter of a million cables. Finds out what is fed from where, divided
    among Spark tasks, and which homes are cut off; keeps that true when cables are cut and laid,
    shows what has changed and how much quicker that was than computing everything again; reads the
    Delta table that was published; and alerts those who watch for outages.

    \b
      corollary demo
      corollary demo --keep example
      corollary demo --engine local
    """
    with FormatOptions("text").reporting() as console, tempfile.TemporaryDirectory() as temporary:
        directory = keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        _run(directory, options.engine, console)
        if keep is not None:
            click.echo(f"\nThe example is in {keep}: network.dl, cable.facts, warehouse")


def _run(directory: Path, engine: str, console: TerminalConsole) -> None:
    from corollary.database.opening import open_database

    text = files("corollary").joinpath("examples/network.dl").read_text(encoding="utf-8")
    (directory / "network.dl").write_text(text, encoding="utf-8")
    click.secho("The program", bold=True)
    click.echo(_indented(text))
    cables = network()
    _write(directory / "cable.facts", cables)
    homes = [(down, down.partition(".")[0]) for _, down in cables if ".h" in down]
    _write(directory / "region.facts", homes)
    click.secho(f"Its facts: {len(cables):,} cables, {len(homes):,} homes", bold=True)

    warehouse = directory / "warehouse"
    placement = "tasks" if engine == "spark" else "auto"
    with open_database(warehouse, engine=engine, placement=placement, console=console) as database:
        command = f"corollary run network.dl --warehouse warehouse --placement {placement}"
        click.secho(f"\n{command}", bold=True)
        _update(database, directory)

        click.secho(f"\nA digger cuts {_listed(CUT)}; others lay {_listed(LAID)}", bold=True)
        _write(directory / "cable.facts", [*(set(cables) - set(CUT)), *LAID])
        click.secho(command, bold=True)
        transaction, _ = _update(database, directory)
        for name, change in transaction.changes.items():
            for sign, rows in (("+", change.added), ("−", change.removed)):
                if change.relation.is_derived and rows.num_rows:
                    click.echo(f"    {sign} {_example_tuples(name, rows)}")
        _alert(transaction)

        click.secho("\nWhat was cut is mended", bold=True)
        _write(directory / "cable.facts", [*cables, *LAID])
        click.secho(command, bold=True)
        _, seconds = _update(database, directory)

        console.progress("computing everything again, for comparison")
        again = _recomputation_seconds(database)
        console.done()
        click.secho("\nOnly the change flowed", bold=True)
        click.echo(
            f"    maintaining both views took {seconds:.2f} s; recomputing them, in the same "
            f"place, {again:.2f} s: {again / seconds:.0f} times as long"
        )
        _show_table(warehouse / "tables" / "feeds")

        click.secho(f"\nThe digger comes back, and cuts {_listed(CUT_AGAIN)}", bold=True)
        _write(directory / "cable.facts", [*(set(cables) - set(CUT_AGAIN)), *LAID])
        click.secho(command, bold=True)
        transaction, _ = _update(database, directory)
        _alert(transaction)


def _update(database: Database, directory: Path) -> "tuple[Transaction, float]":
    """Run the pipeline; return the transaction, and how long the views took."""
    from corollary.cli.report.changes import change_lines
    from corollary.database.intake.pipeline import Inputs, run
    from corollary.database.program.loaded_program import read_programs

    began = time.monotonic()
    outcome = run(database, read_programs([directory / "network.dl"]), Inputs(directory))
    state_of(database).console.done()
    transaction = outcome.transaction
    assert transaction is not None
    for line in change_lines(transaction):
        click.echo(f"    {line}")
    seconds = time.monotonic() - began
    click.echo(f"    commit {outcome.commit}, published, in {seconds:.1f} s all in all")
    return transaction, _maintenance_seconds(transaction)


def _alert(transaction: "Transaction") -> None:
    """Print the alerts."""
    from corollary.cli.report.changes import alert_lines

    for line in alert_lines(transaction, MAX_TUPLES):
        click.secho(f"    {line}", bold=True)


def _maintenance_seconds(transaction: "Transaction") -> float:
    """Return how long the maintenance of all views took."""
    return sum(each.seconds for each in transaction.stats.values())


def _recomputation_seconds(database: Database) -> float:
    """Return how long it takes to compute the views again, for a change like those before."""
    with database.transaction(algorithm="recompute", is_dry=True) as transaction:
        transaction.delete("cable", [LAID[0]])
        transaction.insert("cable", [("r5", "r6.t0")])
    return _maintenance_seconds(transaction)


def _listed(cables: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(" → ".join(cable) for cable in cables)


def _example_tuples(name: str, rows: Any) -> str:
    from corollary.core.arrow import to_python

    listed = [json.dumps(row)[1:-1] for row in to_python(rows.slice(0, MAX_TUPLES))]
    more = f" and {rows.num_rows - MAX_TUPLES:,} more" if rows.num_rows > MAX_TUPLES else ""
    return ", ".join(f"{name}({each})" for each in listed) + more


def _show_table(place: Path) -> None:
    """Read a published table as any reader of Delta tables does."""
    from corollary.warehouse.publishing.published_table import count_rows

    version, rows = count_rows(place)
    click.secho("\nThe published table, as any reader of Delta tables sees it", bold=True)
    click.echo(f"    {place.parent.name}/{place.name}: version {version}, {rows:,} rows")


def network() -> list[tuple[str, str]]:
    """Return the cables of the example.

    >>> len(network())
    251100
    """
    return [cable for number in range(REGIONS) for cable in _region(f"r{number}")]


def _region(exchange: str) -> Iterator[tuple[str, str]]:
    for number in range(TOWNS):
        town, last = f"{exchange}.t{number}", number - number % RING
        if number == last:
            yield exchange, town
        yield town, f"{exchange}.t{last + (number + 1) % RING}"
        for street in (f"{town}.s{each}" for each in range(STREETS)):
            yield town, street
            yield from ((street, f"{street}.h{home}") for home in range(HOMES))


def _write(path: Path, rows: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
