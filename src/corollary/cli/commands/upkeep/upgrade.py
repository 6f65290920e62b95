"""`corollary upgrade`."""

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, warehouse


@click.command()
@warehouse
@family("output", WorkOutputOptions)
def command(warehouse: str, output: WorkOutputOptions) -> None:
    """Bring a warehouse of an earlier version to the format of this one.

    The program, the data and its history, grants and tokens stay. It is one transaction of the
    catalog: the warehouse has the old format or the new one, whatever happens. Processes of the
    earlier version that have it open cannot commit to it any more.

    \b
      corollary upgrade warehouse
    """
    with output.reporting(0.0), open_catalog(warehouse, in_any_format=True) as opened:
        from corollary.warehouse.catalog.upgrade import upgrade

        before, after = upgrade(opened.catalog)
        line = f"format {after} is current" if before == after else f"format {before} → {after}"
        output.show(lambda: {"before": before, "format": after}, [line])
