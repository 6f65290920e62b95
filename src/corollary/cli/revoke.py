"""`corollary revoke`."""

import click

from corollary.cli import options
from corollary.cli.grants import print_grants
from corollary.cli.warehouses import opened, warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@click.argument("reader")
@click.argument("relations", metavar="RELATION...", nargs=-1, required=True)
@options.format_
def command(warehouse: str, reader: str, relations: tuple[str, ...], format: str) -> None:
    """Let a reader not see relations of a warehouse any more.

    It counts at once, also for whoever has the warehouse open. What was not granted stays so.

    \b
      corollary revoke warehouse alice link
    """
    console = TerminalConsole()
    with options.reported(format, console), opened(warehouse, console) as database:
        database.revoke(reader, *relations)
        print_grants({reader: database.grants().get(reader, [])}, format)
