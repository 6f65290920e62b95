"""Subscriptions of one server: who gets which events, and when.

    commit -> notify() or the next look -> feed is read once -> recent commits -> every subscriber

A subscriber is an iterator that is asked for its next event when the one before has been sent, so
a slow one has no queue of its own: it takes commits from those that are kept for all, and once it
is too far behind for these, reads the feed at its own pace. The resume token is the number of a
commit. Where the feed does not know what has changed, there is a `reset`, and the client reads the
relation anew.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.errors import CorollaryError, InputError
from corollary.serve.answers import Event, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.requests import EventsRequest
from corollary.serve.service import ServiceMetrics
from corollary.serve.subscriptions.feed import (
    CommitChanges,
    CommitsGoneError,
    EncodedAlert,
    FeedReader,
    Interest,
    encode_data,
    visible,
)

ALL_RELATIONS = "*"
"""Stands for all relations that may be seen."""
POLL_SECONDS = 0.2
"""The time between two looks at the catalog: other processes commit, too."""
KEEPALIVE_SECONDS = 15.0
"""The time after which a subscriber gets at least the number of the last commit."""
LINGER_SECONDS = 30.0
"""How long a virtual relation is watched after its last subscriber has gone, and may come back."""
RETRY_SECONDS = 1.0
"""The time until a catalog that cannot be read is tried again."""
CLOSE_SECONDS = 2.0
"""The maximum time that subscribers have to take their `bye`."""
SUBSCRIBERS_MAX = 1000
"""How many subscriptions a server has at the same time."""

LOG = logging.getLogger("corollary.serve")
Result = TypeVar("Result")

RECENT_MAX_COMMITS = 64
RECENT_MAX_BYTES = 8 << 20
"""How many commits, and how many bytes of them, are kept for subscribers."""


@dataclass(eq=False, slots=True)
class _Subscriber:
    """A subscription, and the last commit that it has got."""

    who: Principal
    interest: Interest
    commit: int = 0
    epoch: int = 0
    hidden: frozenset[str] = frozenset()
    """The relations that were asked for and may not be seen any more."""


class SubscriptionHub:
    """The subscriptions of a server.

    Args:
        place: the warehouse.
        watch: lets the process that commits watch these virtual relations, and no others.
        metrics: where subscribers are counted.
    """

    def __init__(
        self,
        place: str,
        watch: Callable[[frozenset[str]], Awaitable[None]],
        metrics: ServiceMetrics,
    ) -> None:
        self._place = place
        self._watch = watch
        self._metrics = metrics
        self._subscribers: set[_Subscriber] = set()
        self._recent: RecentCommits | None = None
        self._tail: asyncio.Task[None] | None = None
        self._commit_made = asyncio.Event()
        self._progress = asyncio.Condition()
        self._is_closing = False
        self._epoch = 0  # how often the history has turned out to be another one
        self._tail_thread = _ReaderThread(place, "feed")
        self._history_thread = _ReaderThread(place, "feed-history")
        self._grants: asyncio.Task[Mapping[str, frozenset[str]]] | None = None
        self._lingering: dict[str, float] = {}
        self._watch_lock = asyncio.Lock()
        self.watched: frozenset[str] = frozenset()

    # --- for the service -----------------------------------------------------------------------

    def notify(self) -> None:
        """Say that a commit was made, so that nobody has to wait for the next look."""
        self._commit_made.set()

    async def close(self) -> None:
        """Say `bye` to all subscribers, and end."""
        if self._is_closing:
            return
        self._is_closing = True
        await self._wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS), self._progress:
                await self._progress.wait_for(lambda: not self._subscribers)
        if self._tail is not None:
            self._tail.cancel()
            with suppress(asyncio.CancelledError):
                await self._tail
        for thread in (self._tail_thread, self._history_thread):
            await thread.close()

    async def subscribe(
        self, who: Principal, request: EventsRequest
    ) -> AsyncGenerator[Event, None]:
        """Yield events, first the commit that they begin after; at last `bye` if the server stops.

        Raises:
            ServiceError: a relation does not exist or may not be seen, or there are too many
                subscriptions.
        """
        subscriber = _Subscriber(who, _interest_of(request))
        self._refuse_too_many()
        self._subscribers.add(subscriber)
        self._count()
        try:
            try:
                resets = await self._begin(subscriber, request.since)
            except CorollaryError as error:
                raise service_error(error) from None
            for event in resets:
                yield event
            yield Event("", "", subscriber.commit)
            while not self._is_closing:
                async for event in self._next(subscriber):
                    yield event
            yield Event("bye", encode_data(commit=subscriber.commit))
        finally:
            self._subscribers.discard(subscriber)
            end = asyncio.get_running_loop().time() + LINGER_SECONDS
            self._lingering |= dict.fromkeys(subscriber.interest.relations & self.watched, end)
            self._count()
            await self._wake()

    # --- a subscriber --------------------------------------------------------------------------

    async def _begin(self, subscriber: _Subscriber, since: int | None) -> list[Event]:
        """Find out after which commit a subscription begins; return resets if it cannot resume."""
        if since is not None and since < 0:
            raise InputError.of(
                "C1606",
                f"`since` is {since}, and commits have numbers from 1 on.",
                None,
                "give the last commit that is known already, 0 for all of them; or leave it out",
            )
        relations, who = subscriber.interest.relations, subscriber.who
        reader = who.name if who.role is AccessRole.READ else None
        await self._history_thread.run(lambda feed: feed.check_relations(relations, reader))
        await self._update_watched()  # from here on: commits before it may be gaps
        position = await self._history_thread.run(FeedReader.position)
        if self._recent is None:
            self._recent = RecentCommits(position.latest)
        if self._tail is None:
            self._tail = asyncio.create_task(self._follow(), name="subscriptions")
        subscriber.epoch = self._epoch
        subscriber.commit = position.latest if since is None else since
        if since is None or position.oldest - 1 <= since <= position.latest:
            return []
        reason = f"commit {since} does not exist"
        if since < position.latest:
            reason = f"commits before {position.oldest} are no longer kept"
        return _resets(subscriber, position.latest, reason)

    async def _next(self, subscriber: _Subscriber) -> AsyncIterator[Event]:
        """Yield the events of the next commits; wait for them if there are none."""
        assert self._recent is not None
        recent = self._recent
        if subscriber.epoch != self._epoch:
            subscriber.epoch = self._epoch
            for event in _resets(subscriber, recent.latest, "the warehouse was restored"):
                yield event
            return
        if subscriber.commit >= recent.latest:
            is_idle = not await self._wait(
                lambda: recent.latest > subscriber.commit or subscriber.epoch != self._epoch
            )
            if is_idle and not self._is_closing:
                yield Event("", "", subscriber.commit)
            return
        commits = recent.since(subscriber.commit, subscriber.interest)
        if commits is None:
            first, last, interest = subscriber.commit, recent.latest, subscriber.interest
            try:
                commits = await self._history_thread.run(
                    lambda feed: feed.read(interest, first, last)
                )
            except CommitsGoneError:
                for event in _resets(subscriber, last, "commits that followed are not kept"):
                    yield event
                return
            except CorollaryError as error:
                raise service_error(error) from None
        for each in commits:
            for event in await self._events(subscriber, each):
                yield event
            subscriber.commit = each.commit
            if self._is_closing:
                return

    async def _events(self, subscriber: _Subscriber, commit: CommitChanges) -> list[Event]:
        """Return the events of a commit, as far as they may be seen at this moment."""
        granted = None
        events: list[Event] = []
        wanted = list(visible(commit, subscriber.interest, None))
        if wanted and subscriber.who.role is AccessRole.READ:
            granted = (await self._granted()).get(subscriber.who.name, frozenset())
            hidden = subscriber.interest.relations - granted
            for name in sorted(hidden ^ subscriber.hidden):
                reason = "it is not granted any more" if name in hidden else "it is granted again"
                text = encode_data(commit=commit.commit, relation=name, reason=reason)
                events.append(Event("reset", text))
            subscriber.hidden = hidden
            wanted = list(visible(commit, subscriber.interest, granted))
        for each in wanted:
            if isinstance(each, EncodedAlert):
                events.append(Event("alert", each.text))
            else:
                events.append(Event("reset" if each.is_reset else "change", each.text))
        if events:
            last = events[-1]
            events[-1] = Event(last.event, last.data, commit.commit)
        return events

    async def _granted(self) -> Mapping[str, frozenset[str]]:
        """Return the grants as they are after this call; those who ask together share a look."""
        if self._grants is None or self._grants.done():
            self._grants = asyncio.ensure_future(self._look_up_grants())
        return await asyncio.shield(self._grants)

    async def _look_up_grants(self) -> Mapping[str, frozenset[str]]:
        await asyncio.sleep(0)  # all who are ready to ask do so before the look begins
        self._grants = None  # who asks from now on needs a later one
        return await self._tail_thread.run(FeedReader.granted)

    async def _wait(self, is_there: Callable[[], bool]) -> bool:
        """Wait until something is there; return whether it came before the next sign of life."""
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEPALIVE_SECONDS), self._progress:
                await self._progress.wait_for(lambda: is_there() or self._is_closing)
        return is_there()

    async def _wake(self) -> None:
        async with self._progress:
            self._progress.notify_all()

    # --- the end of the feed -------------------------------------------------------------------

    async def _follow(self) -> None:
        """Read what is committed, once for all subscribers."""
        assert self._recent is not None
        program: int | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._commit_made.wait()
            self._commit_made.clear()
            try:
                position = await self._tail_thread.run(FeedReader.position)
                if position.program != program or self._lingering:
                    program = position.program
                    await self._update_watched()
                await self._advance(position.latest)
            except Exception:  # whatever it is, subscribers wait for the next look
                LOG.exception("subscriptions cannot read the warehouse, and try again")
                await asyncio.sleep(RETRY_SECONDS)
            self._count()

    async def _advance(self, latest: int) -> None:
        assert self._recent is not None
        recent = self._recent
        while recent.latest < latest:
            interest = Interest.union(each.interest for each in self._subscribers)
            read = partial(FeedReader.read, interest=interest, since=recent.latest, upto=latest)
            try:
                commits = await self._tail_thread.run(read)
            except CommitsGoneError:
                recent.restart(latest)
            else:
                recent.add(interest, commits)
            await self._wake()
        if recent.latest > latest:  # the warehouse was restored from a backup
            self._epoch += 1
            recent.restart(latest)
            await self._wake()

    async def _update_watched(self) -> None:
        """Let the process that commits watch the virtual relations of subscribers."""
        async with self._watch_lock:
            now = asyncio.get_running_loop().time()
            self._lingering = {
                name: since
                for name, since in self._lingering.items()
                if now < since + LINGER_SECONDS
            }
            names = Interest.union(each.interest for each in self._subscribers).relations
            names |= self._lingering.keys()
            virtual = await self._history_thread.run(lambda feed: feed.virtual(names))
            if virtual != self.watched:
                await self._watch(virtual)
                self.watched = virtual

    def _refuse_too_many(self) -> None:
        if len(self._subscribers) >= SUBSCRIBERS_MAX:
            raise ServiceError.of(
                503,
                "C1640",
                f"There are {SUBSCRIBERS_MAX:,} subscriptions already.",
                "end one that is not needed, or try again later",
                retry_after=5,
            )

    def _count(self) -> None:
        self._metrics.subscribers = len(self._subscribers)
        latest = 0 if self._recent is None else self._recent.latest
        lags = (latest - each.commit for each in self._subscribers if each.commit)
        self._metrics.subscriber_lag = max(0, max(lags, default=0))


class _ReaderThread:
    """A thread that reads the catalog, with connections of its own."""

    def __init__(self, place: str, name: str) -> None:
        self._place = place
        self._executor = ThreadPoolExecutor(1, name)
        self._feed: FeedReader | None = None

    async def run(self, function: Callable[[FeedReader], Result]) -> Result:
        """Return what a function makes of the catalog."""

        def call() -> Result:
            if self._feed is None:
                self._feed = FeedReader(self._place)
            return function(self._feed)

        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        """Close the connections, then the thread."""
        if self._feed is not None:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._feed.close)
        self._executor.shutdown()


def _interest_of(request: EventsRequest) -> Interest:
    """Return what a request is interested in; if it names nothing, all relations."""
    names = frozenset(request.relations)
    is_all = ALL_RELATIONS in names or not (names or request.alerts)
    return Interest(names - {ALL_RELATIONS}, is_all, request.alerts)


def _resets(subscriber: _Subscriber, commit: int, reason: str) -> list[Event]:
    """Let a subscriber begin anew after a commit; return the events that say so."""
    subscriber.commit = commit
    names: list[str | None] = sorted(subscriber.interest.relations)  # type: ignore[assignment]
    if subscriber.interest.is_all or not names:
        names = [None]
    texts = [encode_data(commit=commit, relation=name, reason=reason) for name in names]
    return [
        Event("reset", text, commit if at == len(texts) - 1 else None)
        for at, text in enumerate(texts)
    ]


class RecentCommits:
    """The changes of the last commits, each with what it was read for.

    All subscribers share them: who keeps up reads nothing from the disk.

    Attributes:
        latest: the last commit that it has seen.
    """

    def __init__(self, latest: int) -> None:
        self.latest = latest
        self._kept: deque[tuple[Interest, CommitChanges]] = deque()
        self._bytes = 0

    def add(self, interest: Interest, commits: Iterable[CommitChanges]) -> None:
        """Add the next commits; the oldest ones go where there are too many."""
        for each in commits:
            assert each.commit == self.latest + 1, "commits come one after the other"
            self._kept.append((interest, each))
            self._bytes += each.size
            self.latest = each.commit
        while len(self._kept) > RECENT_MAX_COMMITS or self._bytes > RECENT_MAX_BYTES:
            self._bytes -= self._kept.popleft()[1].size

    def restart(self, latest: int) -> None:
        """Begin anew after a commit."""
        self._kept.clear()
        self._bytes, self.latest = 0, latest

    def since(self, commit: int, interest: Interest) -> list[CommitChanges] | None:
        """Return the commits after one; None if not all of them are kept with what is asked."""
        count = self.latest - commit
        if count > len(self._kept):
            return None
        found = [self._kept[at] for at in range(len(self._kept) - count, len(self._kept))]
        if not all(read_for.includes(interest) for read_for, _ in found):
            return None
        return [each for _, each in found]
