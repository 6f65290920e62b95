"""The first part: a warehouse on the local engine, in this process."""

from pathlib import Path

import click

from corollary.cli.commands.demo.network import (
    CUT,
    CUT_AGAIN,
    LAID,
    network,
    program_text,
    write_cables,
    write_example,
)
from corollary.cli.commands.demo.steps import (
    listed,
    maintenance_seconds,
    say,
    show_alerts,
    show_derived,
    update,
)
from corollary.console import TerminalConsole
from corollary.database.database import Database

COMMAND = "corollary run network.dl --warehouse warehouse --engine local"


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
        say(f"\n{COMMAND}")
        update(database, directory)

        say(f"\nA digger cuts {listed(CUT)}; others lay {listed(LAID)}")
        write_cables(directory, [*(set(cables) - set(CUT)), *LAID])
        say(COMMAND)
        transaction, _ = update(database, directory)
        show_derived(transaction)
        show_alerts(transaction)

        say("\nWhat was cut is mended")
        write_cables(directory, [*cables, *LAID])
        say(COMMAND)
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
        say(COMMAND)
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
