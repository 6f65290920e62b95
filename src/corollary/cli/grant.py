"""`corollary grant`."""

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
    """Let a reader see relations of a warehouse.

    A reader is a name: of a person, a team, a service. It sees what was granted to it, and needs
    no grant for what that is derived from. Event predicates can be granted, too, for their alerts.
    Grants bind those who read through `--as`, `corollary.open(…, reader=…)` or a server; whoever
    can open the files of the warehouse can read everything.

    \b
      corollary grant warehouse alice link
      corollary grant warehouse alice station connection_lost
      corollary query warehouse 'link("a", y)' --as alice
    """
    console = TerminalConsole()
    with options.reported(format, console), opened(warehouse, console) as database:
        database.grant(reader, *relations)
        print_grants({reader: database.grants().get(reader, [])}, format)
