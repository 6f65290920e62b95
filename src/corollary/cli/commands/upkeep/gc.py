"""`corollary gc`."""

from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_files
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, warehouse
from corollary.console import counted, format_bytes

if TYPE_CHECKING:
    from corollary.database.upkeep.retention import RetentionResult


@click.command()
@warehouse
@click.option(
    "--keep-commits", type=click.IntRange(min=1), help="Keep this many of the last commits."
)
@click.option(
    "--keep-days", type=click.FloatRange(min=0), help="Keep the commits of this many days."
)
@click.option(
    "--keep-intents",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    help="Take a writer for dead after this long without a sign of life.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would go.")
@family("output", WorkOutputOptions)
def command(
    warehouse: str,
    keep_commits: int | None,
    keep_days: float | None,
    keep_intents: float,
    dry_run: bool,
    output: WorkOutputOptions,
) -> None:
    """Drop old history, dead writers, and files that nobody needs.

    Without --keep-commits and --keep-days all commits stay, and only what was left behind goes.
    With both, a commit is kept if either says so; the last one always is. Commits before are no
    longer kept: `query --at` and `changes` say so. The data itself stays as it is, and so do the
    keys of transactions, so that none is done twice.

    Versions of published tables are kept for an hour, or as long as their options say.

    A writer that was taken for dead cannot commit any more, should it wake up. Others may read and
    commit meanwhile. Run it once a day, say, from a timer.

    \b
      corollary gc warehouse --dry-run --keep-days 30
      corollary gc warehouse --keep-days 30 --keep-commits 100
    """
    with output.reporting(0.0) as console, open_files(warehouse) as files:
        from corollary.database.upkeep.retention import Retention, collect

        retention = Retention(keep_commits, keep_days, keep_intents)
        collected = collect(files, retention, is_dry=dry_run, console=console)
        output.show(collected.as_json, _lines(collected))


def _lines(collected: "RetentionResult") -> list[str]:
    verb = "would be " if collected.is_dry else ""
    lines = [f"{verb}given up: the writer {writer}" for writer in collected.expired]
    dropped = collected.dropped
    if dropped is not None:
        lines.append(
            f"{verb}no longer kept: {counted(dropped.commits, 'commit')} before commit "
            f"{collected.oldest}, with {counted(dropped.changes, 'change')}, "
            f"{counted(dropped.snapshots, 'snapshot')} and "
            f"{counted(dropped.indexes, 'index file')}"
        )
    if collected.has_folded:
        lines.append(f"{verb}written first: snapshots of commit {collected.oldest}")
    if collected.files:
        what = f"{counted(collected.files, 'file')}, {format_bytes(collected.file_bytes)}"
        lines.append(f"{verb}removed: {what}")
    if collected.table_files:
        lines.append(f"removed: {counted(collected.table_files, 'file')} of published tables")
    if collected.catalog_bytes:
        lines.append(f"the catalog is {format_bytes(collected.catalog_bytes)} smaller")
    return lines or ["nothing to do"]
