"""`corollary log`."""

from typing import TYPE_CHECKING, Any

import click

from corollary.cli import options
from corollary.cli.tables import signed, table, width
from corollary.cli.warehouses import opened, seen_by, warehouse
from corollary.console import TerminalConsole
from corollary.core.types import TIMESTAMP
from corollary.core.values import text_of

if TYPE_CHECKING:
    from corollary.database.history import Logged


@click.command()
@warehouse
@click.option("--limit", type=click.IntRange(min=1), help="Show so many commits. Default: all.")
@options.as_reader
@options.format_
def command(warehouse: str, limit: int | None, reader: str | None, format: str) -> None:
    """List the commits of a warehouse, newest first.

    For each one: its number, when it was made (UTC), how many tuples came to each relation and how
    many went, whether the program changed, and the key it was made under. What exactly changed is
    told by `corollary changes`; `--at` of `query` and `export` goes back to a commit.

    \b
      corollary log warehouse
      corollary log warehouse --limit 10 --format json
    """
    console = TerminalConsole()
    with options.reported(format, console):
        with opened(warehouse, console) as database:
            commits = seen_by(database, reader).log(limit)
        if format == "json":
            options.print_json({"commits": [_as_json(each) for each in commits]})
        elif not commits:
            click.echo("no commit yet")
        else:
            rows = [_cells(each) for each in commits]
            for line in table(("commit", "when", "changes", ""), rows, width()):
                click.echo(line)


def _cells(commit: "Logged") -> list[list[str]]:
    changes = [f"{name} {' '.join(signed(counts))}" for name, counts in commit.changes.items()]
    remarks = ["new program"] if commit.has_new_program else []
    remarks += [f"key {commit.idempotency}"] if commit.idempotency else []
    when = text_of(commit.at.replace(microsecond=0), TIMESTAMP)
    listed = [f"{each}," for each in changes[:-1]] + changes[-1:]
    return [[str(commit.number)], [when], listed or ["no tuple"], [", ".join(remarks)]]


def _as_json(commit: "Logged") -> dict[str, Any]:
    return {
        "commit": commit.number,
        "timestamp": text_of(commit.at, TIMESTAMP),
        "changes": {
            name: {"added": added, "removed": removed}
            for name, (added, removed) in commit.changes.items()
        },
        "new_program": commit.has_new_program,
        "idempotency_key": commit.idempotency,
    }
