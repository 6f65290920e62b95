"""`corollary status`."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_catalog
from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family, warehouse
from corollary.cli.report.tables import table
from corollary.cli.served_command import ServedCommand
from corollary.console import counted, format_bytes

if TYPE_CHECKING:
    from corollary.database.upkeep.status import ReplicaState, Status, TableState


@click.command(cls=ServedCommand)
@warehouse
@family("output", FormatOptions)
def command(warehouse: str, output: FormatOptions) -> None:
    """Show what a warehouse holds, and its condition.

    Shows the commits that are kept, how old the index is (opening goes through all changes since),
    what is on the disk, the relations and their sizes, how far published tables lag behind, and
    whether by more than their target, when sources were last read, alerts that wait, and who is
    writing. Nothing but the catalog is read.

    \b
      corollary status warehouse
      corollary status warehouse --format json
    """
    with output.reporting(), open_catalog(warehouse) as files:
        from corollary.database.upkeep.status import status

        state = status(files)
        output.show(state.as_json, _lines(state))


def _lines(state: "Status") -> Iterator[str]:
    from corollary.core.table_options import describe_options
    from corollary.database.upkeep.status import format_time

    if state.latest is None:
        yield "no commit yet"
        return
    parts = (f"{kind} {format_bytes(count)}" for kind, count in state.bytes.items() if count)
    last = f"{state.latest.number}, the last at {format_time(state.latest.created)}"
    yield f"commits  {state.oldest} to {last}"
    yield f"index    {_index(state)}"
    yield f"disk     {format_bytes(sum(state.bytes.values()))}: {', '.join(parts)}"
    yield f"outbox   {_outbox(state)}"
    for each in state.intents:
        seconds = time.time() - each.heartbeat
        yield f"writer   {each.writer}, since {seconds:,.0f} seconds"
    relations = [
        (
            each.name,
            each.kind + ", copies" * each.copies,
            "" if each.tuples is None else f"{each.tuples:,}",
        )
        for each in state.relations
    ]
    yield from _table(("relation", "kind", "tuples"), relations)
    tables = [
        (
            each.relation,
            _shown(each.commit),
            _lag(each),
            describe_options(each.options),
        )
        for each in state.tables
    ]
    header = ("table", "shows", "lag", "options")
    columns = 4 if any(each.options for each in state.tables) else 3
    yield from _table(header[:columns], [each[:columns] for each in tables])
    replicas = [
        (each.relation, each.replica, _shown(each.commit), _lag(each), each.error or "")
        for each in state.replicas
    ]
    titles = ("replica of", "in", "shows", "lag", "last error")
    width = 5 if any(each.error for each in state.replicas) else 4
    yield from _table(titles[:width], [each[:width] for each in replicas])
    sources = [
        (
            each.name,
            format_time(each.read),
            f"commit {each.commit}",
            "" if each.events is None else f"{each.events:,}",
            "" if each.lag is None else f"{each.lag:,}" if each.lag else "none",
        )
        for each in state.sources
    ]
    names = ("source", "last read", "in", "events", "lag")
    columns = 5 if any(each.events is not None for each in state.sources) else 3
    yield from _table(names[:columns], [each[:columns] for each in sources])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield from table(header, rows)


def _outbox(state: "Status") -> str:
    from corollary.database.upkeep.status import format_time

    outbox = state.outbox
    since = "" if outbox.oldest is None else f" since {format_time(outbox.oldest)}"
    error = "" if outbox.error is None else f"; last error: {outbox.error}"
    return f"{counted(outbox.queued, 'alert')} waiting{since}{error}"


def _shown(commit: int) -> str:
    return f"commit {commit}" if commit else "nothing yet"


def _lag(table: "TableState | ReplicaState") -> str:
    if not table.is_output:
        return "no longer published"
    since = "" if table.seconds is None else f", {table.seconds:,.0f} s"
    late = ", late" if getattr(table, "is_late", False) else ""
    return f"{counted(table.lag, 'commit')}{since}{late}" if table.lag else "none"


def _index(state: "Status") -> str:
    index = state.index
    if not index.commit:
        return "none yet"
    if not index.commits:
        return f"of commit {index.commit}, the last one"
    since = counted(index.commits, "commit")
    return f"of commit {index.commit}; {since} and {counted(index.tuples, 'tuple')} since"
