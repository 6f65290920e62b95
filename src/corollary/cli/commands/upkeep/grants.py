"""`corollary grant`, `corollary revoke` and `corollary grants`."""

from collections.abc import Iterator, Mapping, Sequence

import click

from corollary.cli.databases import open_catalog, open_warehouse
from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, functors, warehouse
from corollary.cli.report.tables import comma_separated, table

reader = click.argument("reader")
relations = click.argument("relations", metavar="RELATION...", nargs=-1, required=True)


@click.command()
@warehouse
@reader
@relations
@functors
@family("output", FormatOptions)
def grant(warehouse: str, reader: str, relations: tuple[str, ...], output: FormatOptions) -> None:
    """Let a reader see relations of a warehouse.

    A reader is a name: of a person, a team, a service. It sees what was granted to it, and needs
    no grant for what that is derived from. Event predicates can be granted, too, for their alerts.
    Grants bind those who read through `--as`, `corollary.open(…, reader=…)` or a server; whoever
    can open the files of the warehouse can read everything.

    \b
      corollary grant warehouse alice link
      corollary grant warehouse alice station connection_lost
      corollary query warehouse 'link("a", y)' --as alice
    """
    with output.reporting() as console, open_warehouse(warehouse, console) as database:
        database.grant(reader, *relations)
        _show(output, {reader: database.grants().get(reader, [])})


@click.command()
@warehouse
@reader
@relations
@functors
@family("output", FormatOptions)
def revoke(warehouse: str, reader: str, relations: tuple[str, ...], output: FormatOptions) -> None:
    """Let a reader not see relations of a warehouse any more.

    It takes effect at once, also for whoever has the warehouse open. What was not granted stays so.

    \b
      corollary revoke warehouse alice link
    """
    with output.reporting() as console, open_warehouse(warehouse, console) as database:
        database.revoke(reader, *relations)
        _show(output, {reader: database.grants().get(reader, [])})


@click.command()
@warehouse
@family("output", FormatOptions)
def grants(warehouse: str, output: FormatOptions) -> None:
    """List who may see what of a warehouse.

    \b
      corollary grants warehouse
      corollary grants warehouse --format json
    """
    with output.reporting(), open_catalog(warehouse) as catalog:
        from corollary.warehouse.catalog.grants import StoredGrants

        _show(output, StoredGrants(catalog.catalog).by_reader())


def _show(output: FormatOptions, granted: Mapping[str, Sequence[str]]) -> None:
    output.show(lambda: {"grants": granted}, _lines(granted))


def _lines(granted: Mapping[str, Sequence[str]]) -> Iterator[str]:
    rows = [[[name], comma_separated(names) or ["nothing"]] for name, names in granted.items()]
    if rows:
        yield from table(("reader", "may see"), rows)
    else:
        yield "nobody may see anything"
