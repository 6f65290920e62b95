"""`corollary changes`."""

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import FormatOptions, ReaderOptions
from corollary.cli.output import print_json, print_rows
from corollary.cli.parameters import family, warehouse
from corollary.cli.recording import echo
from corollary.cli.served_command import ServedCommand


@click.command(cls=ServedCommand)
@warehouse
@click.argument("relation", required=False)
@click.option("--commit", type=click.IntRange(min=1), help="Only what this commit changed.")
@click.option("--since", type=click.IntRange(min=0), help="Only what later commits changed.")
@family("read", ReaderOptions)
@family("output", FormatOptions)
def command(
    warehouse: str,
    relation: str | None,
    commit: int | None,
    since: int | None,
    read: ReaderOptions,
    output: FormatOptions,
) -> None:
    """Print what commits have changed, row by row: the audit feed.

    Each row is a tuple that came or went, with the columns that change feeds of Delta and Spark
    have: _change_type (insert or delete), _commit_version and _commit_timestamp. Without --commit
    or --since, it prints all commits that are kept; without RELATION, all relations, one after the
    other.

    \b
      corollary changes warehouse link
      corollary changes warehouse --commit 7
      corollary changes warehouse link --since 7 --format json
    """
    if commit is not None and since is not None:
        raise click.UsageError("--commit asks for one commit, --since for all after one")
    with output.reporting() as console, open_catalog(warehouse) as catalog:
        from corollary.database.history import change_tables, find_relation, recorded_changes

        first = since if commit is None else commit - 1
        granted = read.granted(catalog)
        asked = None if relation is None else find_relation(catalog, relation, read.reader, granted)
        found = recorded_changes(catalog, asked, first, commit, granted)
        feeds = change_tables(catalog, found)
        if output.is_json:
            from corollary.database.changes import feed_as_json

            print_json({"changes": [feed_as_json(*each) for each in feeds]})
            return
        is_first = True
        for changed, table in feeds:
            if relation is None:
                echo(changed.name if is_first else f"\n{changed.name}")
            print_rows(table, changed)
            is_first = False
        if is_first:
            console.note("nothing has changed")
