"""`corollary init`."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from corollary.cli.options import FormatOptions
from corollary.cli.parameters import DIRECTORY, family
from corollary.console import counted

TEMPLATES = ("sql-shop", "network", "access-rights", "spark-pipeline")


@click.command()
@click.argument("directory", required=False, default=Path(), type=DIRECTORY)
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    default=TEMPLATES[0],
    show_default=True,
    help="What the project is about.",
)
@family("output", FormatOptions)
def command(directory: Path, template: str, output: FormatOptions) -> None:
    """Write a small project that works: program, data, tests of changes, corollary.toml.

    \b
      sql-shop        customers, orders, revenue: tables and views in SQL
      network         who reaches whom over cables: recursion, an alert, a constraint, in Datalog
      access-rights   groups within groups, folders, bans: who may read what, and why
      spark-pipeline  a folder of events that grows, cleaned and summed up, on Spark

    Files that are there are never overwritten: if one of the project's is, nothing is written.

    \b
      corollary init shop
      cd shop
      corollary test
      corollary run
    """
    with output.reporting() as console:
        from corollary.errors import InputError

        found = dict(_files(files("corollary").joinpath("examples/projects", template)))
        taken = [name for name in found if (directory / name).exists()]
        if taken:
            listed = ", ".join(f"`{directory / name}`" for name in taken)
            is_one = len(taken) == 1
            raise InputError.of(
                "C1906",
                f"{listed} {'is' if is_one else 'are'} there already; nothing was written.",
                None,
                "name a directory that is empty or does not exist yet",
            )
        for name, text in found.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        output.show(lambda: {"template": template, "files": list(found)}, found)
        if not output.is_json:
            where = "" if directory == Path() else f"cd {directory} && "
            console.note(
                f"{counted(len(found), 'file')} written; next: {where}corollary test && "
                "corollary run"
            )


def _files(place: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the files of a template by their paths, with their text."""
    for each in sorted(place.iterdir(), key=lambda found: found.name):
        name = f"{above}{each.name}"
        if each.is_dir():
            yield from _files(each, f"{name}/")
        else:
            yield name, each.read_text(encoding="utf-8")
