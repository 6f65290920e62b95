"""`corollary upgrade`."""

import click

from corollary.cli.databases import open_catalog, open_warehouse
from corollary.cli.options import WorkOutputOptions
from corollary.cli.parameters import family, warehouse


@click.command()
@warehouse
@family("output", WorkOutputOptions)
def command(warehouse: str, output: WorkOutputOptions) -> None:
    """Bring a warehouse of an earlier version to the format of this one.

    The program, the data and its history, grants and tokens stay. It is one transaction of the
    catalog: the warehouse has the old format or the new one, whatever happens. Processes of the
    earlier version that have it open cannot commit to it any more. Then statements of SQL are
    compiled as this version does, and what it keeps in another way is computed anew, in a commit,
    also where the format is the same. The views whose columns or rules differ are named. A commit
    that is refused, as by an integer that does not fit its type, leaves them as they were.

    \b
      corollary upgrade warehouse
    """
    with output.reporting(0.0) as console:
        from corollary.frontends.sql.statements.kept_texts import recompile
        from corollary.warehouse.catalog.catalog import upgrade

        with open_catalog(warehouse, in_any_format=True) as opened:
            before, after = upgrade(opened.catalog)
        with open_warehouse(warehouse, console) as database, database.transaction() as transaction:
            transaction.edit(recompile)
        line = f"format {after} is current" if before == after else f"format {before} → {after}"
        if transaction.commit_number is not None:
            line += f", commit {transaction.commit_number} keeps views as this version does"
        named = {each.relation: each.reason for each in transaction.plan}
        lines = [line, *(f"{name}: {reason}" for name, reason in named.items())]
        output.show(lambda: {"before": before, "format": after, "views": named}, lines)
