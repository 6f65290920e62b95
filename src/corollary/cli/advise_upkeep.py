"""`corollary advise --revert` and `--drop`: what becomes of views that are stored."""

from typing import Any

import click

from corollary.advisor.applying import revert
from corollary.advisor.dropping import accounts
from corollary.advisor.observing import (
    queries_by_default,
    queries_logged,
    queries_named,
    sizes_of,
    update_rates,
)
from corollary.advisor.reading import read_scheme
from corollary.advisor.reporting import amount, size
from corollary.advisor.scheme import Options
from corollary.cli import options
from corollary.cli.amounts import as_rates
from corollary.database.database import Database, state_of


def take_back(database: Database, format_: str) -> None:
    """Take back the advice that was applied last, and tell so."""
    applied, transaction = revert(database)
    database.publish(transaction)
    if format_ == "json":
        options.print_json({"commit": transaction.commit_number, "reverted": applied.as_note()})
        return
    click.echo(f"commit {transaction.commit_number}: dropped {', '.join(applied.views)}")
    for texts in applied.originals.values():
        for text in texts:
            click.echo(f"  {text}")


def weigh(database: Database, format_: str, rest: dict[str, Any]) -> None:
    """Tell of every stored view whether it pays."""
    loaded = state_of(database).loaded
    frequencies = as_rates(rest["frequency"], "--frequency")
    queries = queries_by_default(loaded.normal, queries_logged(database), frequencies)
    if rest["queries"]:
        queries = queries_named(rest["queries"], loaded.normal, frequencies)
    updates = {**update_rates(database), **as_rates(rest["updates"], "--updates")}
    scheme = read_scheme(loaded.program, loaded.checked, queries)
    found = list(accounts(scheme, loaded.program, sizes_of(database), Options(updates=updates)))
    if format_ == "json":
        told = [
            {
                "view": each.view,
                "saved_per_hour": round(each.saved),
                "upkeep_per_hour": round(each.upkeep),
                "bytes": round(each.bytes),
                "drop": not each.is_paying,
            }
            for each in found
        ]
        options.print_json({"views": told})
        return
    for each in found:
        verdict = "keep" if each.is_paying else "drop"
        click.echo(
            f"{verdict}  {each.view}: saves {amount(each.saved)} row-ops an hour, upkeep "
            f"{amount(each.upkeep)}, {size(each.bytes)}"
        )
    if not found:
        click.echo("no view is stored for the sake of queries alone")
