"""`corollary grants`."""

from collections.abc import Mapping, Sequence

import click

from corollary.cli import options
from corollary.cli.tables import table, width
from corollary.cli.warehouses import opened, warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@options.format_
def command(warehouse: str, format: str) -> None:
    """List who may see what of a warehouse.

    \b
      corollary grants warehouse
      corollary grants warehouse --format json
    """
    console = TerminalConsole()
    with options.reported(format, console), opened(warehouse, console) as database:
        print_grants(database.grants(), format)


def print_grants(grants: Mapping[str, Sequence[str]], format_: str) -> None:
    """Print what readers may see."""
    if format_ == "json":
        options.print_json({"grants": grants})
    elif not grants:
        click.echo("nobody may see anything")
    else:
        rows = [[[reader], _listed(names)] for reader, names in grants.items()]
        for line in table(("reader", "may see"), rows, width()):
            click.echo(line)


def _listed(names: Sequence[str]) -> list[str]:
    return [*(f"{each}," for each in names[:-1]), *names[-1:]] or ["nothing"]
