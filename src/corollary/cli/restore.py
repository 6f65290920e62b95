"""`corollary restore`."""

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.upkeep import kept, size
from corollary.cli.warehouses import warehouse
from corollary.console import TerminalConsole


@click.command()
@click.argument("backup", metavar="FROM")
@warehouse
@options.format_
@options.quiet
def command(backup: str, warehouse: str, format: str, quiet: bool) -> None:
    """Make a warehouse of a backup.

    FROM is what `corollary backup` has made (or any warehouse); WAREHOUSE is a directory that is
    empty or does not exist, or postgresql://USER@HOST/NAME?data=DIRECTORY for a database without a
    warehouse. Nothing is overwritten: move a damaged warehouse away first. The backup stays as it
    is, and every file of it is compared with its checksum.

    \b
      mv warehouse warehouse.damaged
      corollary restore /backups/2026-11-15 warehouse
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console), kept(backup) as found:
        from corollary.database.upkeep.backup import copy

        copied = copy(found, warehouse, console)
        if format == "json":
            options.print_json(copied.as_json())
        else:
            what = f"{counted(copied.files, 'file')}, {size(copied.bytes)}"
            click.echo(f"restored: commits {copied.oldest} to {copied.commit}, {what}")
