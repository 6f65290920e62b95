"""`corollary plan`."""

from pathlib import Path

import click

from corollary.cli import options
from corollary.cli.commands.run import RunRequest, update_warehouse
from corollary.cli.parameters import COUNT, family, functors, programs
from corollary.cli.report.violations import why_option

sample_option = click.option(
    "--sample",
    type=COUNT,
    default=5,
    show_default=True,
    help="List this many rows that come, and that go, of each relation.",
)


@click.command()
@programs
@click.option("--warehouse", metavar="DIR|URL", required=True, help="Where the results are kept.")
@family("files", options.FileOptions)
@click.option(
    "--bad-rows",
    type=click.Choice(["abort", "quarantine"]),
    default="quarantine",
    show_default=True,
    help="Stop at malformed records, or set them aside.",
)
@sample_option
@why_option
@family("sources", options.SourceOptions)
@family("maintenance", options.MaintenanceOptions)
@functors
@family("output", options.ChangeOutputOptions)
def command(
    programs: tuple[Path, ...],
    warehouse: str,
    bad_rows: str,
    sample: int,
    why: bool,
    files: options.FileOptions,
    sources: options.SourceOptions,
    maintenance: options.MaintenanceOptions,
    output: options.ChangeOutputOptions,
) -> None:
    """Show what a run will do to a warehouse, before it is done.

    Lists the lines of the program that come and go; what is read of the sources; which relations
    are new, changed, rebuilt or dropped, why, with tuples before and after; some of the rows;
    published tables; alerts that would be sent, constraints that would fail (exit status 3). The
    work is done and rolled back, so all of this is exact, and nothing is changed.

    The last line has the id of the plan: a digest of the commit that it follows, the program and
    how far the sources are read. `corollary run --approve ID` does exactly this, or nothing, if
    one of these is another by then. Give `run` the same options.

    \b
      corollary plan                                       in a directory with corollary.toml
      corollary plan shop.sql -F data --warehouse wh
      corollary run shop.sql -F data --warehouse wh --approve 5b0c51d2f7a9
    """
    with output.reporting(0.0) as console:
        from corollary.cli.report.plan import PlanReport
        from corollary.database.intake.pipeline import Inputs
        from corollary.database.program.loaded_program import read_programs
        from corollary.warehouse.sources.quarantine import BadRowPolicy

        inputs = Inputs(files.facts, files.root, BadRowPolicy(bad_rows), sources.guards)
        request = RunRequest(
            read_programs(programs), inputs, None, files.today, is_dry=True, is_proved=why
        )
        report = PlanReport("corollary run", sample).report
        update_warehouse(warehouse, request, maintenance, console, report, output)
