"""`corollary erase`."""

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.warehouses import opened, warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@click.argument("tuples", metavar="TUPLE...", nargs=-1, required=True)
@options.format_
@options.quiet
def command(warehouse: str, tuples: tuple[str, ...], format: str, quiet: bool) -> None:
    """Take tuples out of the data and out of history.

    A deleted tuple is still in the history of a warehouse; an erased one is not. It is deleted,
    with all that follows from it alone; all commits until then are no longer kept, since derived
    tuples of the past may carry its values; and everything is written anew, so that none of its
    values is left in any file, unless another tuple has it. Published tables are replaced by new
    ones. Backups are not touched.

    A tuple that the program text or a source says would come back, so it must be taken out there
    first.

    \b
      corollary erase warehouse 'person("p17", "Ada")'
      corollary erase warehouse 'visit("p17", "2026-11-15")' 'visit("p17", "2026-11-16")'
    """
    console = TerminalConsole(quiet)
    with options.reported(format, console), opened(warehouse, console) as database:
        from corollary.database.upkeep.erase import erase

        erased = erase(database, tuples)
        if format == "json":
            options.print_json(erased.as_json())
            return
        click.echo(
            f"erased: {counted(erased.tuples, 'tuple')}; history begins at commit {erased.commit} "
            f"now, {counted(erased.dropped, 'commit')} and {counted(erased.files, 'file')} are gone"
        )
        if erased.alerts:
            click.echo(f"{counted(erased.alerts, 'alert')} went with it before anybody was told")
        for value, relations in erased.still.items():
            click.echo(f"other tuples still have {value}: in {', '.join(relations)}")
