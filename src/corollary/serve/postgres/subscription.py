"""SUBSCRIBE: what each commit changes in a relation or in the answer to a query, in its order.

The columns are those of Materialize: `mz_timestamp` is the commit, `mz_diff` how many copies of the
row have come, or gone if it is negative. The events of the server say which commits matter, and
`followed_queries` what they change: rows of a relation as they are, or what two answers differ in.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress

import pyarrow as pa
from sqlglot import exp

from corollary.core.arrow import schema_of
from corollary.database.access.principals import Principal
from corollary.serve.answers import Event
from corollary.serve.postgres.followed_queries import (
    CommittedAnswer,
    FollowedAnswers,
    FollowedQuery,
    analyse_query,
    consolidate,
    difference,
)
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import FetchStatement, SubscribeStatement
from corollary.serve.postgres.translation import TranslatedStatement
from corollary.serve.requests import EventsRequest
from corollary.warehouse.formats.typed_values import convert_columns, from_json

STREAMS_MAX = 16
"""How many subscriptions a client may have."""
FETCH_MAX_ROWS = 100_000
"""How many changes FETCH ALL gives at a time."""
QUERY_MAX_ROWS = 100_000
"""The maximum number of rows of a query whose answers are kept to be compared."""
TIMESTAMP, PROGRESSED, DIFFERENCE = "mz_timestamp", "mz_progressed", "mz_diff"


class Subscription:
    """The changes of one query.

    Args:
        asker: what answers, and who has asked.
        statement: what was asked for.
        query: what is followed.
        followed: which changes matter to it.

    Attributes:
        empty: a table of changes without rows, once it is open.
    """

    def __init__(
        self,
        asker: tuple[FollowedAnswers, Principal],
        statement: SubscribeStatement,
        query: TranslatedStatement,
        followed: FollowedQuery,
    ) -> None:
        (self._answers, self._who), self._followed = asker, followed
        self._statement, self._query = statement, query
        request = EventsRequest(followed.names, since=statement.since)
        self._events = self._answers.service.subscribe(self._who, request)
        self._commit = 0
        self._answer: CommittedAnswer | None = None
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
        if self._followed.relation is None or self._statement.has_snapshot:
            self._answer = await self._ask_at(self._commit)
            self._rows = self._answer.rows.slice(0, 0)
        else:
            self._rows = schema_of(self._followed.relation).empty_table()
        none = self._rows.append_column(DIFFERENCE, pa.array([], pa.int64()))
        self.empty = self._table(none, 0)

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
            assert self._answer is not None
            snapshot = difference(self._rows, self._answer.rows, DIFFERENCE)
            yield self._table(snapshot, self._commit)
        if self._followed.relation is not None:
            self._answer = None
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
        followed, is_known = self._followed, all(each.event == "change" for each in events)
        if is_known and not followed.is_affected(events):
            return self.empty
        if followed.relation is not None and is_known:
            gone, come = (followed.changed_rows(events, sign) for sign in ("removed", "added"))
            columns = list(zip(*gone, *come, strict=True))
            rows, failures = convert_columns(columns, followed.relation, from_json)
            assert not failures, "rows of events are rows"
            rows = rows.rename_columns(self._rows.column_names)
            signs = pa.array([-1] * len(gone) + [1] * len(come), pa.int64())
            return self._table(consolidate(rows, signs, DIFFERENCE), commit)
        before = self._answer
        if before is None:
            before = await self._ask_at(self._commit)
        after = await self._ask_at(commit, is_shared=is_known)
        if followed.relation is None:
            self._answer = after
        return self._table(after.since(before, DIFFERENCE), commit)

    async def _ask_at(self, commit: int, *, is_shared: bool = True) -> CommittedAnswer:
        is_bounded = self._followed.relation is None
        found = await self._answers.at(self._who, self._query, commit, is_shared=is_shared)
        if is_bounded and found.rows.num_rows > QUERY_MAX_ROWS:
            text = f"A query that is followed has at most {QUERY_MAX_ROWS:,} rows."
            raise PgError("54000", text, "subscribe to a relation, such as a materialized view")
        return found

    def _progress(self, commit: int) -> pa.Table:
        """Return that no change before a commit will come any more."""
        nulls = [pa.nulls(1, each.type) for each in self._rows.schema]
        names = [*self._rows.column_names, DIFFERENCE]
        rows = pa.table([*nulls, pa.nulls(1, pa.int64())], names)
        return self._table(rows, commit, is_progress=True)

    def _table(self, found: pa.Table, commit: int, *, is_progress: bool = False) -> pa.Table:
        """Return rows, whose last column has their differences, with all columns that are sent."""
        added = added_columns(self._statement)
        *columns, differences = found.columns
        values = {
            TIMESTAMP: pa.repeat(pa.scalar(commit, pa.uint64()), found.num_rows),
            PROGRESSED: pa.repeat(is_progress, found.num_rows),
            DIFFERENCE: differences,
        }
        names = [*added.column_names, *found.column_names[:-1]]
        return pa.table([*(values[each] for each in added.column_names), *columns], names)


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
        asker: tuple[FollowedAnswers, Principal],
        statement: SubscribeStatement,
        query: TranslatedStatement,
        followed: tuple[exp.Expr, Sequence[ParameterValue]],
        *,
        relations: VisibleRelations,
    ) -> Subscription:
        """Return a new one, which is to be opened.

        Args:
            asker: what answers, and who has asked.
            statement: what was asked for.
            query: what is followed.
            followed: the same as a tree, and the values of its parameters.
            relations: what can be read.

        Raises:
            PgError: there are too many.
        """
        if len(self._open) >= STREAMS_MAX:
            raise PgError("53400", f"There are {STREAMS_MAX} subscriptions of this connection.")
        found = Subscription(asker, statement, query, analyse_query(*followed, relations))
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
