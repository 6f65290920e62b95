"""`corollary verify`."""

import sys
from typing import TYPE_CHECKING

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.upkeep import kept, size
from corollary.cli.warehouses import warehouse
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.upkeep.findings import Report


@click.command()
@warehouse
@click.option("--repair", is_flag=True, help="Make derived data anew that is damaged or missing.")
@options.format_
@options.quiet
def command(warehouse: str, repair: bool, format: str, quiet: bool) -> None:
    """Compare everything that a warehouse says with everything else.

    Every file is read and compared with its checksum and number of rows; changes, snapshots and
    index files must tell the same story; every derived relation must be what its rules make of the
    base relations; published tables must show what the relations held. Prints each finding with
    the file and what to do, and exits with 1 if there is one.

    With --repair, what is derived is made anew from what is sound: index files, snapshots, derived
    relations, published tables. A damaged change of a base relation is lost, and says so.

    \b
      corollary verify warehouse
      corollary verify warehouse --repair
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console), kept(warehouse) as found:
        if repair:
            from corollary.database.upkeep.repair import repair as mend

            report = mend(found, console)
        else:
            from corollary.database.upkeep.verify import verify

            report = verify(found, console)
        if format == "json":
            options.print_json(report.as_json())
        else:
            _print(report)
        sys.exit(1 if report.findings else 0)


def _print(report: "Report") -> None:
    for mended in report.repaired:
        click.echo(f"repaired: {mended.message}")
    for finding in report.findings:
        click.echo(str(finding))
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
    click.echo(f"{verdict} {checked}; {size(report.bytes)} read in {report.seconds:.1f} s")
    if report.commits and not report.has_recomputed:
        click.echo("derived relations were not recomputed, since a base relation is damaged")
