"""Steps that the parts of the example share: run the pipeline, print what it did."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corollary.cli.commands.demo.network import Cable
from corollary.database.database import Database, state_of

if TYPE_CHECKING:
    from corollary.database.transaction import Transaction

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
