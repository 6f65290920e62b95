"""`corollary changes`."""

import click

from corollary.cli import options
from corollary.cli.warehouses import opened, seen_by, warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@click.argument("relation", required=False)
@click.option("--commit", type=click.IntRange(min=1), help="Only what this commit changed.")
@click.option("--since", type=click.IntRange(min=0), help="Only what later commits changed.")
@options.as_reader
@options.format_
def command(
    warehouse: str,
    relation: str | None,
    commit: int | None,
    since: int | None,
    reader: str | None,
    format: str,
) -> None:
    """Print what commits have changed, row by row: the audit feed.

    Each row is a tuple that came or went, with the columns that change feeds of Delta and Spark
    have: _change_type (insert or delete), _commit_version and _commit_timestamp. Without --commit
    or --since, all commits that are kept are told; without RELATION, all relations, one after the
    other.

    \b
      corollary changes warehouse link
      corollary changes warehouse --commit 7
      corollary changes warehouse link --since 7 --format json
    """
    if commit is not None and since is not None:
        raise click.UsageError("--commit asks for one commit, --since for all after one")
    console = TerminalConsole()
    with options.reported(format, console), opened(warehouse, console) as database:
        from corollary.database.changes import json_rows

        first = since if commit is None else commit - 1
        feeds = seen_by(database, reader).feed(relation, since=first, upto=commit)
        if format == "json":
            feed = [
                {
                    "relation": told.name,
                    "columns": list(told.columns),
                    "rows": json_rows(table, told, is_ordered=True),
                }
                for told, table in feeds
            ]
            options.print_json({"changes": feed})
            return
        is_first = True
        for told, table in feeds:
            if relation is None:
                click.echo(told.name if is_first else f"\n{told.name}")
            options.print_rows(table, told)
            is_first = False
        if is_first:
            console.note("nothing has changed")
