"""`corollary log`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import FormatOptions, ReaderOptions
from corollary.cli.parameters import family, warehouse
from corollary.cli.report.tables import Cell, comma_separated, signed, table
from corollary.cli.served_command import ServedCommand
from corollary.core.types import TIMESTAMP
from corollary.core.values import format_value

if TYPE_CHECKING:
    from corollary.database.history import CommitSummary


@click.command(cls=ServedCommand)
@warehouse
@click.option("--limit", type=click.IntRange(min=1), help="Show this many commits. Default: all.")
@family("read", ReaderOptions)
@family("output", FormatOptions)
def command(warehouse: str, limit: int | None, read: ReaderOptions, output: FormatOptions) -> None:
    """List the commits of a warehouse, newest first.

    For each one: its number, when it was made (UTC), how many tuples came to each relation and how
    many went, whether the program changed, and the key it was made under. `corollary
    changes` prints what exactly changed; `--at` of `query` and `export` goes back to a commit.

    \b
      corollary log warehouse
      corollary log warehouse --limit 10 --format json
    """
    with output.reporting():
        from corollary.database.history import commit_log

        with open_catalog(warehouse) as catalog:
            commits = commit_log(catalog, limit, read.granted(catalog))
        output.show(lambda: {"commits": [each.as_json() for each in commits]}, _lines(commits))


def _lines(commits: "Sequence[CommitSummary]") -> Iterator[str]:
    header = ("commit", "when", "changes", "")
    if commits:
        yield from table(header, [_cells(each) for each in commits])
    else:
        yield "no commit yet"


def _cells(commit: "CommitSummary") -> "list[Cell]":
    changes = [f"{name} {signed(counts)}" for name, counts in commit.changes.items()]
    remarks = ["new program"] if commit.has_new_program else []
    remarks += [f"key {commit.idempotency}"] if commit.idempotency else []
    when = format_value(commit.at.replace(microsecond=0), TIMESTAMP)
    listed = comma_separated(changes) or ["no tuple"]
    return [str(commit.number), [when], listed, [", ".join(remarks)]]
