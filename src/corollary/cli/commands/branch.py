"""`corollary branch` and `corollary promote`."""

import click

from corollary.cli.commands.plan import sample_option
from corollary.cli.commands.run import RunRequest, update_warehouse
from corollary.cli.databases import open_catalog, open_files, open_to_read
from corollary.cli.options import ChangeOutputOptions, MaintenanceOptions, WorkOutputOptions
from corollary.cli.parameters import family, functors
from corollary.cli.project.project_file import read_project
from corollary.cli.report.violations import why_option
from corollary.console import counted


@click.command()
@click.argument("new", metavar="NEW")
@click.option(
    "--from",
    "origin",
    metavar="ENVIRONMENT|WAREHOUSE",
    help="What it is a branch of. Default: the warehouse of the project.",
)
@family("output", WorkOutputOptions)
def branch(new: str, origin: str | None, output: WorkOutputOptions) -> None:
    """Make a warehouse that shares the files of another, to try things out.

    NEW is an environment of corollary.toml, or a directory that is empty or does not exist, on the
    same file system. It has the history, the program and the rows of the other one, and shares its
    data and index files: no row is copied, so it takes no longer for a large warehouse. From then
    on each goes its own way. `gc`, `erase` or the removal of one leave the other as it is. Alerts
    that wait are delivered by the original only.

    \b
      corollary branch dev
      corollary run --environment dev
      corollary promote dev
    """
    with output.reporting(0.0) as console:
        from corollary.database.upkeep.backup import branch as make_branch
        from corollary.errors import InputError

        project = read_project()
        source = _place(origin) if origin else None if project is None else project.warehouse
        if source is None:
            raise InputError.of(
                "C1909",
                "It is not said which warehouse gets a branch.",
                None,
                "name it with `--from`, or in `corollary.toml`",
            )
        place = _place(new)
        with open_files(source) as warehouse:
            made = make_branch(warehouse, place, console)
        line = (
            f"{place}: a branch of {source} at commit {made.commit}, "
            f"{counted(made.files, 'file')} shared"
        )
        output.show(lambda: {"warehouse": place, "from": source, "commit": made.commit}, [line])


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
def promote(
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

        source, named = _place(branch), "" if target is None else f" --to {target}"
        if target is None:
            with open_catalog(source) as opened:
                target = origin_of(opened.catalog)
        else:
            target = _place(target)
        with open_to_read(source, console) as database:
            program = database.program
        inputs = Inputs(relations=frozenset())
        request = RunRequest(
            program, inputs, None, None, is_dry=approve is None, is_proved=why, approved=approve
        )
        report = PlanReport(f"corollary promote {branch}{named}", sample).report
        update_warehouse(
            target, request, maintenance, console, report if approve is None else report_run, output
        )


def _place(name: str) -> str:
    """Return the warehouse of an environment of that name; else it is one itself."""
    project = read_project()
    found = None if project is None else project.environments.get(name)
    return found or name
