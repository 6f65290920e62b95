"""`corollary demo`: a fibre network, first in this process, then on Spark."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.options import FormatOptions
from corollary.console import TerminalConsole
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction

SIGHTS = (
    ("Map", "what is computed from what; a commit runs up its floors"),
    ("Relations", "dark, then any home, then `why`: the proof that no cable leads there"),
    ("the line below", "drag it to commit 2: everything is as the digger left it"),
    ("Console", 'feeds("r4", y), region(y, "r3")'),
    ("Commits", "commit 4: what it did, in which order, and where its time went"),
    ("Alerts", "homes cut off from r5: 2400; `why` says which cable it was"),
    ("Change", 'insert cable("r5", "r5.t20"), as a dry run first: 2,400 homes have light again'),
)


def show_page(warehouse: Path, is_kept: bool) -> None:
    """Print the command that opens the page, and what is to be seen there."""
    say("\nThe page")
    options = f"serve {warehouse}" if is_kept else "demo --serve"
    click.echo(f"    {_program()} {options}")
    say("opens it. What to look at:")
    for line in sight_lines():
        click.echo(f"    {line}")


def sight_lines() -> list[str]:
    """Return what to look at, a line each.

    >>> sight_lines()[0]
    'Map             what is computed from what; a commit runs up its floors'
    """
    width = max(len(place) for place, _ in SIGHTS)
    return [f"{place:<{width}}  {text}" for place, text in SIGHTS]


def _program() -> str:
    """Return how this program is called here."""
    own = Path(sys.argv[0])
    found = shutil.which("corollary")
    if own.name != "corollary" or (found and Path(found).resolve() == own.resolve()):
        return "corollary"
    return os.path.relpath(own)


REGIONS, TOWNS, STREETS, HOMES, RING = 20, 50, 10, 24, 10
"""Every region has an exchange that feeds rings of towns; towns feed streets, streets homes."""

Cable = tuple[str, str]

CUT: tuple[Cable, ...] = (("r3", "r3.t10"), ("r7.t2", "r7.t2.s4"), ("r11.t40.s9", "r11.t40.s9.h0"))
LAID: tuple[Cable, ...] = (("r7.t3", "r7.t2.s4"), ("r4", "r3.t18"))
"""Cables that a digger cuts, and others that are laid."""

CUT_AGAIN: tuple[Cable, ...] = (("r5", "r5.t20"),)
"""What the digger cuts when it comes back."""


def network(regions: int = REGIONS) -> list[Cable]:
    """Return the cables of the example.

    >>> len(network())
    251100
    """
    return [cable for number in range(regions) for cable in _region(f"r{number}")]


def _region(exchange: str) -> Iterator[Cable]:
    for number in range(TOWNS):
        town, last = f"{exchange}.t{number}", number - number % RING
        if number == last:
            yield exchange, town
        yield town, f"{exchange}.t{last + (number + 1) % RING}"
        for street in (f"{town}.s{each}" for each in range(STREETS)):
            yield town, street
            yield from ((street, f"{street}.h{home}") for home in range(HOMES))


def homes_of(cables: Iterable[Cable]) -> list[tuple[str, str]]:
    """Return every home with the exchange of its region.

    >>> homes_of([("r1.t2.s3", "r1.t2.s3.h4"), ("r1", "r1.t2")])
    [('r1.t2.s3.h4', 'r1')]
    """
    return [(down, down.partition(".")[0]) for _, down in cables if ".h" in down]


def program_text() -> str:
    """Return the program."""
    return files("corollary").joinpath("examples/network.dl").read_text(encoding="utf-8")


def write_example(directory: Path, cables: list[Cable]) -> int:
    """Write the program and its facts into a directory; return the number of homes."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "network.dl").write_text(program_text(), encoding="utf-8")
    homes = homes_of(cables)
    write_cables(directory, cables)
    _write(directory / "region.facts", homes)
    return len(homes)


def write_cables(directory: Path, cables: Iterable[Cable]) -> None:
    """Write the cables that there are now."""
    _write(directory / "cable.facts", cables)


def _write(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{two}\n" for one, two in rows), encoding="utf-8")


MAX_TUPLES = 3
"""The maximum number of changed tuples that are printed."""


def say(heading: str) -> None:
    """Print what comes next."""
    click.secho(heading, bold=True)


def update(database: Database, directory: Path) -> "tuple[Transaction, float]":
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
    return transaction, maintenance_seconds(transaction)


def show_derived(transaction: "Transaction") -> None:
    """Print some of the tuples of views that came or went."""
    for name, change in transaction.changes.items():
        for sign, rows in (("+", change.added), ("−", change.removed)):
            if change.relation.is_derived and rows.num_rows:
                click.echo(f"    {sign} {_example_tuples(name, rows)}")


def show_alerts(transaction: "Transaction") -> None:
    """Print the alerts."""
    from corollary.cli.report.changes import alert_lines

    for line in alert_lines(transaction, MAX_TUPLES):
        say(f"    {line}")


def maintenance_seconds(transaction: "Transaction") -> float:
    """Return how long the maintenance of all views took."""
    return sum(each.seconds for each in transaction.stats.values())


def listed(cables: tuple[Cable, ...]) -> str:
    """Return cables as text."""
    return ", ".join(" → ".join(cable) for cable in cables)


def _example_tuples(name: str, rows: Any) -> str:
    from corollary.core.arrow import to_python

    shown = [json.dumps(row)[1:-1] for row in to_python(rows.slice(0, MAX_TUPLES))]
    more = f" and {rows.num_rows - MAX_TUPLES:,} more" if rows.num_rows > MAX_TUPLES else ""
    return ", ".join(f"{name}({each})" for each in shown) + more


LOCAL_COMMAND = "corollary run network.dl --warehouse warehouse --engine local"


def run_local_part(directory: Path, console: TerminalConsole) -> None:
    """Make the warehouse of the example in a directory, and let cables be cut and laid."""
    from corollary.database.opening import open_database

    say("The program")
    click.echo("".join(f"    {line}\n" for line in program_text().splitlines()))
    cables = network()
    homes = write_example(directory, cables)
    say(f"Its facts: {len(cables):,} cables, {homes:,} homes")

    warehouse = directory / "warehouse"
    with open_database(warehouse, engine="local", console=console) as database:
        say(f"\n{LOCAL_COMMAND}")
        update(database, directory)

        say(f"\nA digger cuts {listed(CUT)}; others lay {listed(LAID)}")
        write_cables(directory, [*(set(cables) - set(CUT)), *LAID])
        say(LOCAL_COMMAND)
        transaction, _ = update(database, directory)
        show_derived(transaction)
        show_alerts(transaction)

        say("\nWhat was cut is repaired")
        write_cables(directory, [*cables, *LAID])
        say(LOCAL_COMMAND)
        _, seconds = update(database, directory)

        console.progress("computing everything again, for comparison")
        again = _recomputation_seconds(database)
        console.done()
        say("\nOnly the change flowed")
        click.echo(
            f"    maintaining the views took {seconds:.2f} s; recomputing them, in the same "
            f"place, {again:.2f} s: {again / seconds:.0f} times as long"
        )
        _show_table(warehouse / "tables" / "feeds")

        say(f"\nThe digger comes back, and cuts {listed(CUT_AGAIN)}")
        write_cables(directory, [*(set(cables) - set(CUT_AGAIN)), *LAID])
        say(LOCAL_COMMAND)
        transaction, _ = update(database, directory)
        show_alerts(transaction)


def _recomputation_seconds(database: Database) -> float:
    """Return how long it takes to compute the views again, for a change like those before."""
    with database.transaction(algorithm="recompute", is_dry=True) as transaction:
        transaction.delete("cable", [LAID[0]])
        transaction.insert("cable", [("r5", "r6.t0")])
    return maintenance_seconds(transaction)


def _show_table(place: Path) -> None:
    """Read a published table as any reader of Delta tables does."""
    from corollary.warehouse.publishing.published_table import count_rows

    version, rows = count_rows(place)
    say("\nThe published table, as any reader of Delta tables sees it")
    click.echo(f"    {place.parent.name}/{place.name}: version {version}, {rows:,} rows")


SPARK_REGIONS = 4
"""A fifth of the network: most of the time goes into the start of a session."""
CUT_HERE = CUT[:1]
SPARK_COMMAND = "corollary run network.dl --warehouse on_spark --placement partitions"


def run_spark_part(directory: Path, console: TerminalConsole) -> None:
    """Make a warehouse on Spark in a directory of its own, and cut a cable."""
    say("\nThe same program on Spark")
    if find_spec("pyspark") is None:
        click.echo("    left out: pyspark is not installed (pip install 'corollary[spark]')")
        return
    from corollary.database.opening import open_database

    cables = network(SPARK_REGIONS)
    homes = write_example(directory, cables)
    click.echo(
        f"    {len(cables):,} cables, {homes:,} homes. What does not fit into one process is "
        "divided among\n    the tasks of a session: each keeps a part of `feeds`, and maintains it."
    )
    with open_database(
        directory / "on_spark", engine="spark", placement="partitions", console=console
    ) as database:
        say(SPARK_COMMAND)
        update(database, directory)
        say(f"The digger cuts {listed(CUT_HERE)}")
        write_cables(directory, set(cables) - set(CUT_HERE))
        say(SPARK_COMMAND)
        transaction, _ = update(database, directory)
        show_alerts(transaction)


@click.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the example into this directory and leave it there.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    help="Run one part only: the first one, in this process, or the second one, on Spark.",
)
@click.option("--serve", "is_served", is_flag=True, help="Open the page on the first part.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Where the page is; 0 takes any port that is free.",
)
def command(keep: Path | None, engine: str | None, is_served: bool, port: int) -> None:
    """Run the bundled example from end to end.

    A fibre network of a quarter of a million cables. The first part finds out what is fed from
    where and which homes are cut off; keeps that true when cables are cut and laid, shows what has
    changed and how much quicker that was than computing everything again; reads the Delta table
    that was published; and alerts those who watch for outages. The second part does the same with a
    fifth of the network on Spark, divided among its tasks.

    With `--serve` the first part ends with the page on its warehouse; one that `--keep` has left is
    opened as it is.

    \b
      corollary demo
      corollary demo --keep example
      corollary demo --serve
      corollary demo --engine spark
    """
    if is_served and engine == "spark":
        raise click.UsageError("The page is on the first part: leave out `--engine spark`.")
    is_there = keep is not None and (keep / "warehouse").exists()
    if is_there and not is_served:
        raise click.UsageError(
            f"There is a warehouse in `{keep}` already: open its page with `--serve`, or take "
            "another directory."
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        directory = keep or Path(temporary)
        with FormatOptions("text").reporting() as console:
            if engine != "spark" and not is_there:
                run_local_part(directory, console)
            if is_served:
                _serve(directory / "warehouse", port)
            else:
                _finish(directory, keep, engine, console)


def _finish(
    directory: Path, keep: Path | None, engine: str | None, console: TerminalConsole
) -> None:
    """Run the second part, and say what is left and how to look at it."""
    if engine != "local":
        run_spark_part(directory / "spark", console)
    if keep is not None:
        click.echo(f"\nThe example is in {keep}: network.dl, cable.facts, warehouse")
    if engine != "spark":
        show_page(directory / "warehouse", is_kept=keep is not None)


def _serve(warehouse: Path, port: int) -> None:
    """Open the page on a warehouse; end with Ctrl-C."""
    from corollary.cli.commands.serve import command as serve

    say("\nThe page: what to look at")
    for line in sight_lines():
        click.echo(f"    {line}")
    click.echo()
    serve.main([str(warehouse), "--port", str(port)], standalone_mode=False)
