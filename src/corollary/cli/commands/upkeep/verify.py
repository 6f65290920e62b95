"""`corollary verify`."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_files
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, functors, warehouse
from corollary.console import counted, format_bytes

if TYPE_CHECKING:
    from corollary.database.upkeep.checked_reads import VerifyReport


@click.command()
@warehouse
@click.option("--repair", is_flag=True, help="Derive data again that is damaged or missing.")
@functors
@family("output", WorkOutputOptions)
def command(warehouse: str, repair: bool, output: WorkOutputOptions) -> None:
    """Check a warehouse: its files, histories, relations and tables.

    Every file is read and compared with its checksum and number of rows; changes, snapshots and
    index files must agree; every derived relation must be what its rules make of the
    base relations; published tables must show what the relations held. Prints each finding with
    the file and what to do, and exits with 1 if there is one.

    With --repair, derived data is made again from what is sound: index files, snapshots, derived
    relations, published tables. A damaged change of a base relation is lost, and reported.

    \b
      corollary verify warehouse
      corollary verify warehouse --repair
    """
    with output.reporting(0.0) as console, open_files(warehouse) as files:
        if repair:
            from corollary.database.upkeep.verify import repair as run_repair

            report = run_repair(files, console)
        else:
            from corollary.database.upkeep.verify import verify

            report = verify(files, console)
        output.show(report.as_json, _lines(report))
        sys.exit(1 if report.findings else 0)


def _lines(report: "VerifyReport") -> Iterator[str]:
    for repaired in report.repaired:
        yield f"repaired: {repaired.message}"
    yield from map(str, report.findings)
    checked = ", ".join(
        (
            counted(report.commits, "commit"),
            counted(report.changes, "change"),
            counted(report.snapshots, "snapshot"),
            counted(report.index_files, "index file"),
            f"{counted(report.tuples, 'tuple')} in {counted(report.relations, 'relation')}",
            counted(report.tables, "published table"),
        )
    )
    verdict = f"{counted(len(report.findings), 'finding')} in" if report.findings else "sound:"
    yield f"{verdict} {checked}; {format_bytes(report.bytes)} read in {report.seconds:.1f} s"
    if report.commits and not report.has_recomputed:
        yield "derived relations were not recomputed, since a base relation is damaged"
