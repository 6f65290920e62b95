"""`corollary promote`: the program of a branch comes into force where it came from."""

import click

from corollary.cli.commands.plan import sample_option
from corollary.cli.commands.run import RunRequest, update_warehouse
from corollary.cli.databases import open_catalog, open_to_read
from corollary.cli.options import ChangeOutputOptions, MaintenanceOptions
from corollary.cli.parameters import family, functors
from corollary.cli.project.project_file import named_warehouse
from corollary.cli.report.violations import why_option


@click.command()
@click.argument("branch", metavar="BRANCH")
@click.option(
    "--to", "target", metavar="ENVIRONMENT|WAREHOUSE", help="Default: what it is a branch of."
)
@click.option(
    "--approve",
    metavar="ID",
    allow_from_autoenv=False,
    help="Do it, if this is still the plan.",
)
@sample_option
@why_option
@family("maintenance", MaintenanceOptions)
@functors
@family("output", ChangeOutputOptions)
def command(
    branch: str,
    target: str | None,
    approve: str | None,
    sample: int,
    why: bool,
    maintenance: MaintenanceOptions,
    output: ChangeOutputOptions,
) -> None:
    """Put the program of a branch into force in the warehouse that it came from.

    BRANCH is an environment of corollary.toml, or a warehouse. Without --approve, this shows what
    will change, as `corollary plan` does, and an id; with the id it is done, in one transaction,
    unless something else was committed since. Rows that were changed in the branch stay there, and
    sources are not read: `corollary run` does that.

    \b
      corollary promote dev
      corollary promote dev --approve 5b0c51d2f7a9
    """
    with output.reporting(0.0) as console:
        from corollary.cli.report.changes import report_run
        from corollary.cli.report.plan import PlanReport
        from corollary.database.intake.pipeline import Inputs
        from corollary.database.upkeep.backup import origin_of

        source, named = named_warehouse(branch), "" if target is None else f" --to {target}"
        if target is None:
            with open_catalog(source) as opened:
                target = origin_of(opened.catalog)
        else:
            target = named_warehouse(target)
        with open_to_read(source, console) as database:
            program = database.program
        inputs = Inputs(relations=frozenset())
        request = RunRequest(
            program,
            inputs,
            idempotency_key=None,
            today=None,
            is_dry=approve is None,
            is_proved=why,
            approved=approve,
            creates=False,
        )
        report = PlanReport(f"corollary promote {branch}{named}", sample).report
        update_warehouse(
            target, request, maintenance, console, report if approve is None else report_run, output
        )
