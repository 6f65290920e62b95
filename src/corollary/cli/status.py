"""`corollary status`."""

import time
from typing import TYPE_CHECKING

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.upkeep import kept, lines, size
from corollary.cli.warehouses import warehouse
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.upkeep.status import Status, TableState


@click.command()
@warehouse
@options.format_
def command(warehouse: str, format: str) -> None:
    """Say what a warehouse holds, and how it is.

    Shows the commits that are kept, how old the index is (opening goes through all changes since),
    what is on the disk, the relations and their sizes, how far published tables lag behind, when
    sources were last read, alerts that wait, and who is writing. Nothing but the catalog is read.

    \b
      corollary status warehouse
      corollary status warehouse --format json
    """
    console = TerminalConsole()
    with options.reported(format, console), kept(warehouse) as found:
        from corollary.database.upkeep.status import status

        state = status(found)
        if format == "json":
            options.print_json(state.as_json())
            return
        for line in _lines(state):
            click.echo(line)


def _lines(state: "Status") -> list[str]:
    from corollary.database.upkeep.status import moment

    if state.latest is None:
        return ["no commit yet"]
    latest = f"{state.oldest} to {state.latest.number}, the last at {moment(state.latest.created)}"
    parts = ", ".join(f"{kind} {size(count)}" for kind, count in state.bytes.items() if count)
    found = [
        f"commits  {latest}",
        f"index    {_index(state)}",
        f"disk     {size(sum(state.bytes.values()))}: {parts}",
        f"outbox   {_outbox(state)}",
    ]
    for each in state.intents:
        seconds = time.time() - each.heartbeat
        found.append(f"writer   {each.writer}, since {seconds:,.0f} seconds")
    relations = [
        (each.name, each.kind, "" if each.tuples is None else f"{each.tuples:,}")
        for each in state.relations
    ]
    found += ["", *lines(("relation", "kind", "tuples"), relations)] if relations else []
    tables = [
        (
            each.relation,
            f"commit {each.commit}" if each.commit else "nothing yet",
            _lag(each),
        )
        for each in state.tables
    ]
    found += ["", *lines(("table", "shows", "lag"), tables)] if tables else []
    sources = [(each.name, moment(each.read), f"commit {each.commit}") for each in state.sources]
    found += ["", *lines(("source", "last read", "in"), sources)] if sources else []
    return found


def _outbox(state: "Status") -> str:
    from corollary.database.upkeep.status import moment

    outbox = state.outbox
    since = "" if outbox.oldest is None else f" since {moment(outbox.oldest)}"
    error = "" if outbox.error is None else f"; last error: {outbox.error}"
    return f"{counted(outbox.waiting, 'alert')} waiting{since}{error}"


def _lag(table: "TableState") -> str:
    if not table.is_output:
        return "no longer published"
    return counted(table.lag, "commit") if table.lag else "none"


def _index(state: "Status") -> str:
    index = state.index
    if not index.commit:
        return "none yet"
    if not index.commits:
        return f"of commit {index.commit}, the last one"
    since = counted(index.commits, "commit")
    return f"of commit {index.commit}; {since} and {counted(index.tuples, 'tuple')} since"
