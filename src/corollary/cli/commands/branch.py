"""`corollary branch`: a warehouse that shares the files of another."""

import click

from corollary.cli.databases import open_files
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family
from corollary.cli.project.project_file import named_warehouse, read_project
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
def command(new: str, origin: str | None, output: WorkOutputOptions) -> None:
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
        source = (
            named_warehouse(origin) if origin else None if project is None else project.warehouse
        )
        if source is None:
            raise InputError.of(
                "C1909",
                "It is not said which warehouse gets a branch.",
                None,
                "name it with `--from`, or in `corollary.toml`",
            )
        place = named_warehouse(new)
        with open_files(source) as warehouse:
            made = make_branch(warehouse, place, console)
        line = (
            f"{place}: a branch of {source} at commit {made.commit}, "
            f"{counted(made.files, 'file')} shared"
        )
        output.show(lambda: {"warehouse": place, "from": source, "commit": made.commit}, [line])
