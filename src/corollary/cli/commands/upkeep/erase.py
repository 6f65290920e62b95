"""`corollary erase`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, functors, warehouse
from corollary.console import counted

if TYPE_CHECKING:
    from corollary.database.upkeep.erase import EraseResult


@click.command()
@warehouse
@click.argument("tuples", metavar="TUPLE...", nargs=-1, required=True)
@functors
@family("output", WorkOutputOptions)
def command(warehouse: str, tuples: tuple[str, ...], output: WorkOutputOptions) -> None:
    """Remove tuples from the data and from history.

    A deleted tuple is still in the history of a warehouse; an erased one is not. It is deleted,
    with all that follows from it alone; all commits until then are no longer kept, since derived
    tuples of the past may carry its values; and everything is written again, so that none of its
    values is left in any file, unless another tuple has it. Published tables are replaced by new
    ones. Backups are not touched.

    A tuple that the program text or a source asserts would come back, so remove it there first.

    \b
      corollary erase warehouse 'person("p17", "Ada")'
      corollary erase warehouse 'visit("p17", "2026-11-15")' 'visit("p17", "2026-11-16")'
    """
    with output.reporting(0.0) as console, open_warehouse(warehouse, console) as database:
        from corollary.database.upkeep.erase import erase

        erased = erase(database, tuples)
        output.show(erased.as_json, _lines(erased))


def _lines(erased: "EraseResult") -> Iterator[str]:
    yield (
        f"erased: {counted(erased.tuples, 'tuple')}; history begins at commit {erased.commit} "
        f"now, {counted(erased.dropped, 'commit')} and {counted(erased.files, 'file')} are gone"
    )
    if erased.alerts:
        yield f"{counted(erased.alerts, 'alert')} went with it before anybody was told"
    for value, relations in erased.remaining.items():
        yield f"other tuples still have {value}: in {', '.join(relations)}"
