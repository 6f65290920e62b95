"""`corollary backup` and `corollary restore`."""

import click

from corollary.cli.databases import open_files
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, warehouse
from corollary.console import counted, format_bytes


@click.command()
@warehouse
@click.argument("to", metavar="TO")
@family("output", WorkOutputOptions)
def backup(warehouse: str, to: str, output: WorkOutputOptions) -> None:
    """Copy a warehouse while others use it.

    TO is a directory that is empty or does not exist; it becomes a warehouse by itself, with the
    same history, as of one moment. Every file is compared with its checksum on the way and forced
    to the disk. A warehouse whose catalog is on PostgreSQL is copied into a directory just so.
    Published tables are not copied: the next run on the copy publishes them again.

    \b
      corollary backup warehouse /backups/2026-11-15
      corollary restore /backups/2026-11-15 warehouse
    """
    _copy(warehouse, to, output, "copied")


@click.command()
@click.argument("backup", metavar="FROM")
@warehouse
@family("output", WorkOutputOptions)
def restore(backup: str, warehouse: str, output: WorkOutputOptions) -> None:
    """Make a warehouse of a backup.

    FROM is what `corollary backup` has made (or any warehouse); WAREHOUSE is a directory that is
    empty or does not exist, or postgresql://USER@HOST/NAME?data=PLACE for a database without a
    warehouse. Nothing is overwritten: move a damaged warehouse away first. The backup stays as it
    is, and every file of it is compared with its checksum.

    \b
      mv warehouse warehouse.damaged
      corollary restore /backups/2026-11-15 warehouse
    """
    _copy(backup, warehouse, output, "restored")


def _copy(source: str, target: str, output: WorkOutputOptions, verb: str) -> None:
    with output.reporting(0.0) as console, open_files(source) as warehouse:
        from corollary.database.upkeep.backup import copy

        copied = copy(warehouse, target, console)
        size = f"{counted(copied.files, 'file')}, {format_bytes(copied.bytes)}"
        line = f"{verb}: commits {copied.oldest} to {copied.commit}, {size}"
        output.show(copied.as_json, [line])
