"""`corollary backup`."""

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.upkeep import kept, size
from corollary.cli.warehouses import warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@click.argument("to", metavar="TO")
@options.format_
@options.quiet
def command(warehouse: str, to: str, format: str, quiet: bool) -> None:
    """Copy a warehouse while others use it.

    TO is a directory that is empty or does not exist; it becomes a warehouse by itself, with the
    same history, as of one moment. Every file is compared with its checksum on the way and forced
    to the disk. A warehouse whose catalog is on PostgreSQL is copied into a directory just so.
    Published tables are not copied: they are made anew by the next run on the copy.

    \b
      corollary backup warehouse /backups/2026-11-15
      corollary restore /backups/2026-11-15 warehouse
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console), kept(warehouse) as found:
        from corollary.database.upkeep.backup import copy

        copied = copy(found, to, console)
        if format == "json":
            options.print_json(copied.as_json())
        else:
            what = f"{counted(copied.files, 'file')}, {size(copied.bytes)}"
            click.echo(f"copied: commits {copied.oldest} to {copied.commit}, {what}")
