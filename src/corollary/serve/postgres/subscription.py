"""SUBSCRIBE: what each commit changes in a relation or in the answer to a query, in its order.

The columns are those of Materialize: `mz_timestamp` is the commit, `mz_diff` how many copies of the
row have come, or gone if it is negative. The events of the server say which commits matter. Those
of a relation have its rows; the rows of a query are asked for at each such commit, and compared.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from corollary.core.arrow import group_rows, schema_of
from corollary.core.program import Relation
from corollary.database.access.principals import Principal
from corollary.serve.answers import Event
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import FetchStatement, SubscribeStatement
from corollary.serve.postgres.translation import TranslatedStatement, is_whole_relation, tables_of
from corollary.serve.requests import EventsRequest, SqlRequest
from corollary.serve.service import Service
from corollary.warehouse.formats.typed_values import convert_columns, from_json

STREAMS_MAX = 16
"""How many subscriptions a client may have."""
FETCH_MAX_ROWS = 100_000
"""How many changes FETCH ALL gives at a time."""
QUERY_MAX_ROWS = 100_000
"""The maximum number of rows of a query that is followed; they are kept to be compared."""
TIMESTAMP, PROGRESSED, DIFFERENCE = "mz_timestamp", "mz_progressed", "mz_diff"


class Subscription:
    """The changes of one query.

    Args:
        asker: what answers, and who has asked.
        statement: what was asked for.
        query: what is followed.
        names: the relations that it reads.
        relation: the one whose rows it has as they are, if it is only that.

    Attributes:
        empty: a table of changes without rows, once it is open.
    """

    def __init__(
        self,
        asker: tuple[Service, Principal],
        statement: SubscribeStatement,
        query: TranslatedStatement,
        names: Sequence[str],
        *,
        relation: Relation | None,
    ) -> None:
        (service, who), self._query = asker, query
        self._service, self._who = service, who
        self._relation, self._statement = relation, statement
        request = EventsRequest(tuple(names), since=statement.since)
        self._events = service.subscribe(who, request)
        self._commit = 0
        self._rows = pa.table({})
        self._changes = self._follow()
        self._waiting: asyncio.Future[pa.Table] | None = None
        self.empty = self._rows

    async def open(self) -> None:
        """Find out where it begins.

        Raises:
            ServiceError: a relation does not exist, or was not granted.
            PgError: it cannot begin there.
        """
        first = await anext(self._events)
        if first.event or first.id is None:
            raise PgError("22023", f"SUBSCRIBE cannot begin there: {first.json['reason']}.")
        self._commit = first.id
        if self._relation is None or self._statement.has_snapshot:
            self._rows = await self._rows_at(self._commit)
        else:
            self._rows = schema_of(self._relation).empty_table()
        self.empty = self._table(self._rows.slice(0, 0), pa.array([], pa.int64()), 0)

    async def next(self, seconds: float | None = None) -> pa.Table | None:
        """Return the next changes; None if none come within some seconds."""
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(anext(self._changes))
        done, _ = await asyncio.wait({self._waiting}, timeout=seconds)
        if not done:
            return None
        waiting, self._waiting = self._waiting, None
        return waiting.result()

    async def close(self) -> None:
        """End it."""
        if self._waiting is not None:
            self._waiting.cancel()
            with suppress(BaseException):
                await self._waiting
        await self._changes.aclose()
        await self._events.aclose()

    async def _follow(self) -> AsyncGenerator[pa.Table, None]:
        statement = self._statement
        if statement.has_progress:
            yield self._progress(self._commit)
        if statement.has_snapshot:
            yield self._difference(self._rows.slice(0, 0), self._rows, self._commit)
        if self._relation is not None:
            self._rows = self._rows.slice(0, 0)
        if statement.has_progress:
            yield self._progress(self._commit + 1)
        events: list[Event] = []
        async for event in self._events:
            if event.event == "bye":
                raise PgError("57P01", "The server stops.", "connect again", is_fatal=True)
            if event.event:
                events.append(event)
            if event.id is None:
                continue  # more of this commit follows
            if events:
                yield await self._changed(events, event.id)
            self._commit, events = max(event.id, self._commit), []
            yield self._progress(self._commit + 1) if statement.has_progress else self.empty

    async def _changed(self, events: Sequence[Event], commit: int) -> pa.Table:
        """Return what a commit has changed."""
        if self._relation is not None and all(each.event == "change" for each in events):
            data = [each.json for each in events]
            gone, come = ([row for each in data for row in each[sign]]
                          for sign in ("removed", "added"))  # fmt: skip
            columns = list(zip(*gone, *come, strict=True))
            rows, failures = convert_columns(columns, self._relation, from_json)
            assert not failures, "rows of events are rows"
            signs = pa.array([-1] * len(gone) + [1] * len(come), pa.int64())
            return self._consolidated(rows, signs, commit)
        before = self._rows if self._relation is None else await self._rows_at(self._commit)
        after = await self._rows_at(commit)
        if self._relation is None:
            self._rows = after
        return self._difference(before, after, commit)

    async def _rows_at(self, commit: int) -> pa.Table:
        query = self._query
        request = SqlRequest(query.sql, query.parameters, at=commit, arrow=True, min_commit=commit)
        rows = (await self._service.call(self._who, request)).table
        assert rows is not None
        if self._relation is None and rows.num_rows > QUERY_MAX_ROWS:
            text = f"A query that is followed has at most {QUERY_MAX_ROWS:,} rows."
            raise PgError("54000", text, "subscribe to a relation, such as a materialized view")
        return rows

    def _difference(self, before: pa.Table, after: pa.Table, commit: int) -> pa.Table:
        signs = pa.array([-1] * before.num_rows + [1] * after.num_rows, pa.int64())
        names = [str(at) for at in range(after.num_columns)]
        both = [before.rename_columns(names), after.rename_columns(names)]
        rows = pa.concat_tables(both).rename_columns(after.column_names)
        return self._consolidated(rows, signs, commit)

    def _consolidated(self, rows: pa.Table, signs: pa.Array, commit: int) -> pa.Table:
        """Return each row once, with its difference; those that go come first."""
        names = [str(at) for at in range(rows.num_columns)]
        found = rows.rename_columns(names).append_column(DIFFERENCE, signs)
        found = group_rows(found, names, [(DIFFERENCE, "sum")])
        differences = found.column(f"{DIFFERENCE}_sum")
        found = found.filter(pc.not_equal(differences, 0)).sort_by(f"{DIFFERENCE}_sum")
        kept = found.select(names).rename_columns(rows.column_names)
        return self._table(kept, found.column(f"{DIFFERENCE}_sum"), commit)

    def _progress(self, commit: int) -> pa.Table:
        """Return that no change before a commit will come any more."""
        nulls = [pa.nulls(1, each.type) for each in self._rows.schema]
        rows = pa.table(nulls, self._rows.column_names)
        return self._table(rows, pa.nulls(1, pa.int64()), commit, is_progress=True)

    def _table(
        self, rows: pa.Table, differences: pa.Array, commit: int, *, is_progress: bool = False
    ) -> pa.Table:
        added = added_columns(self._statement)
        values = {
            TIMESTAMP: pa.repeat(pa.scalar(commit, pa.uint64()), rows.num_rows),
            PROGRESSED: pa.repeat(is_progress, rows.num_rows),
            DIFFERENCE: differences,
        }
        columns = [*(values[each] for each in added.column_names), *rows.columns]
        return pa.table(columns, [*added.column_names, *rows.column_names])


def added_columns(statement: SubscribeStatement) -> pa.Table:
    """Return the columns, without rows, that stand before those of a query."""
    types = {TIMESTAMP: pa.uint64(), PROGRESSED: pa.bool_(), DIFFERENCE: pa.int64()}
    if not statement.has_progress:
        del types[PROGRESSED]
    return pa.schema(types.items()).empty_table()


class Subscriptions:
    """Those of one client."""

    def __init__(self) -> None:
        self._open: set[Subscription] = set()

    def begin(
        self,
        asker: tuple[Service, Principal],
        statement: SubscribeStatement,
        query: TranslatedStatement,
        tree: exp.Expr,
        *,
        relations: VisibleRelations,
    ) -> Subscription:
        """Return a new one, which is to be opened.

        Raises:
            PgError: there are too many.
        """
        if len(self._open) >= STREAMS_MAX:
            raise PgError("53400", f"There are {STREAMS_MAX} subscriptions of this connection.")
        read = {each.name.lower(): each.name for each in tables_of(tree)}
        names = [relations[key].name if key in relations else read[key] for key in sorted(read)]
        relation = None
        if is_whole_relation(tree) and names[0] in relations:
            columns = relations[names[0]].columns
            named, types = tuple(e.name for e in columns), tuple(e.type for e in columns)
            relation = Relation(names[0], named, types, is_derived=False)
        found = Subscription(asker, statement, query, names, relation=relation)
        self._open.add(found)
        return found

    async def end(self, one: Subscription) -> None:
        """End one of them."""
        self._open.discard(one)
        await one.close()

    async def keep(self, used: Collection[Subscription | None]) -> None:
        """End all others."""
        for each in self._open.difference(used):
            await self.end(each)


async def collect_changes(
    waiting: pa.Table,
    statement: FetchStatement,
    ask: Callable[[float | None], Awaitable[pa.Table | None]],
) -> pa.Table:
    """Return the changes that wait, with those that come while a FETCH waits for more.

    Args:
        waiting: changes that have come already.
        statement: how many it wants, and how long it waits.
        ask: returns the next changes, or None if none come within some seconds.
    """
    end = time.monotonic() + (statement.seconds or 0.0)
    most = FETCH_MAX_ROWS if statement.count is None else statement.count
    while waiting.num_rows < most:
        is_first = statement.seconds is None and not waiting.num_rows
        found = await ask(None if is_first else max(0.0, end - time.monotonic()))
        if found is None:
            break
        waiting = pa.concat_tables([waiting, found])
    return waiting
