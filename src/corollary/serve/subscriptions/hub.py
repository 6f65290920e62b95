"""Subscriptions of one server: who gets which events, and when.

    commit -> notify() or the next look -> feed is read once -> recent commits -> every subscriber

A subscriber is an iterator that is asked for its next event when the one before has been sent, so
a slow one has no queue of its own: it takes commits from those that are kept for all, and once it
is too far behind for these, reads the feed at its own pace. The resume token is the number of a
commit. Where the feed does not know what has changed, there is a `reset`, and the client reads the
relation anew.

There may be ten thousand of them, so what is done for each commit and subscriber is to wake it up:
events are encoded once, the time of signs of life is the same for all, and those who come together,
as after a restart, share the looks at the catalog, and the commits that they have missed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.errors import CorollaryError, InputError
from corollary.serve.answers import Event, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.requests import EventsRequest
from corollary.serve.service import ServiceMetrics
from corollary.serve.subscriptions.feed import (
    Asked,
    CatalogPosition,
    CommitChanges,
    CommitsGoneError,
    FeedReader,
    Interest,
    ReaderThread,
    RecentCommits,
    encode_data,
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
WAKE_AT_ONCE = 100
"""How many subscribers are woken up before other work gets its turn."""

LOG = logging.getLogger("corollary.serve")
Result = TypeVar("Result")


@dataclass(eq=False, slots=True)
class _Subscriber:
    """A subscription, and the last commit that it has got."""

    who: Principal
    interest: Interest
    commit: int = 0
    epoch: int = 0
    beat: int = 0
    hidden: frozenset[str] = frozenset()
    """The relations that were asked for and may not be seen any more."""
    _waiting: "asyncio.Future[None] | None" = None

    @property
    def reader(self) -> str | None:
        """The name by which relations are granted to it; None if it may see all of them."""
        return self.who.name if self.who.role is AccessRole.READ else None

    async def wait(self) -> None:
        """Wait until it is woken up."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def wake(self) -> None:
        """Let it look again, if it waits."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class SubscriptionHub:
    """The subscriptions of a server.

    Args:
        place: the warehouse.
        watch: lets the process that commits watch these virtual relations, and no others.
        metrics: where subscribers are counted.
        subscribers_max: how many subscriptions there may be at the same time.
    """

    def __init__(
        self,
        place: str,
        watch: Callable[[frozenset[str]], Awaitable[None]],
        metrics: ServiceMetrics,
        subscribers_max: int = 1000,
    ) -> None:
        self._place = place
        self._watch = watch
        self._metrics = metrics
        self._subscribers_max = subscribers_max
        self._subscribers: set[_Subscriber] = set()
        self._interests: Counter[Interest] = Counter()
        self._recent: RecentCommits | None = None
        self._tail: asyncio.Task[None] | None = None
        self._commit_made = asyncio.Event()
        self._all_gone = asyncio.Event()
        self._is_closing = False
        self._epoch = 0  # how often the history has turned out to be another one
        self._beat = 0  # how often it was time for a sign of life
        self._next_beat = 0.0
        self._tail_thread = ReaderThread(place, "feed")
        self._history_thread = ReaderThread(place, "feed-history")
        self._grants = _SharedLook(self._look_up_grants)
        self._beginnings = _SharedLook(self._look_up_beginnings)
        self._missed = _SharedLook(self._read_missed)
        self._asked: dict[Asked, None] = {}
        self._lingering: dict[str, float] = {}
        self._watch_lock = asyncio.Lock()
        self.watched: frozenset[str] = frozenset()

    @property
    def _interest(self) -> Interest:
        """What at least one subscriber wants to know."""
        return Interest.union(self._interests)

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
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._subscribers:
                    self._all_gone.clear()
                    await self._all_gone.wait()
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
        self._interests[subscriber.interest] += 1
        self._metrics.subscribers = len(self._subscribers)
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
            self._forget(subscriber)

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
        asked = subscriber.interest.relations, subscriber.reader
        self._asked[asked] = None
        refused, position = await self._beginnings()
        if asked in refused:
            raise refused[asked]
        if self._recent is None:
            self._recent = RecentCommits(position.latest)
        if self._tail is None:
            self._next_beat = asyncio.get_running_loop().time() + KEEPALIVE_SECONDS
            self._tail = asyncio.create_task(self._follow(), name="subscriptions")
        subscriber.epoch, subscriber.beat = self._epoch, self._beat
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
            if subscriber.beat == self._beat:
                await subscriber.wait()
            else:
                subscriber.beat = self._beat
                yield Event("", "", subscriber.commit)
            return
        try:
            commits = await self._commits_after(subscriber, recent)
        except CommitsGoneError:
            reason = "commits that followed are not kept"
            for event in _resets(subscriber, recent.latest, reason):
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

    async def _commits_after(
        self, subscriber: _Subscriber, recent: RecentCommits
    ) -> Sequence[CommitChanges]:
        """Return the next commits for a subscriber: those that are kept for all, or its own read.

        Raises:
            CommitsGoneError: they are not there any more.
            CorollaryError: the warehouse cannot be read.
        """
        commit, interest = subscriber.commit, subscriber.interest
        commits = recent.since(commit, interest)
        if commits is None and recent.covers(commit):
            await self._missed()
            commits = recent.since(commit, interest)
        if commits is not None:
            return commits
        read = partial(FeedReader.read, interest=interest, since=commit, upto=recent.latest)
        return await self._history_thread.run(read)

    async def _read_missed(self) -> None:
        """Read the last commits again, for all who have come since they were read."""
        assert self._recent is not None
        recent, epoch, interest = self._recent, self._epoch, self._interest
        upto = recent.latest
        wanted = [each.commit for each in self._subscribers if recent.covers(each.commit)]
        since = min(wanted, default=upto)
        while since < upto:
            read = partial(FeedReader.read, interest=interest, since=since, upto=upto)
            commits = await self._history_thread.run(read)
            if epoch != self._epoch:
                return
            recent.put(interest, commits)
            since = commits[-1].commit

    async def _events(self, subscriber: _Subscriber, commit: CommitChanges) -> Sequence[Event]:
        """Return the events of a commit, as far as they may be seen at this moment."""
        interest, reader = subscriber.interest, subscriber.reader
        found = commit.events(interest, None)
        if not found or reader is None:
            return found
        granted = (await self._grants()).get(reader, frozenset())
        found = commit.events(interest, granted)
        hidden = interest.relations - granted
        if hidden == subscriber.hidden:
            return found
        changed, subscriber.hidden = sorted(hidden ^ subscriber.hidden), hidden
        why = {True: "it is not granted any more", False: "it is granted again"}
        reasons = [(name, why[name in hidden]) for name in changed]
        return [*_reset_events(commit.commit, reasons, has_more=bool(found)), *found]

    async def _look_up_grants(self) -> Mapping[str, frozenset[str]]:
        return await self._tail_thread.run(FeedReader.granted)

    async def _look_up_beginnings(
        self,
    ) -> tuple[Mapping[Asked, CorollaryError], CatalogPosition]:
        """Return which of those who begin are refused, and the commits that there are."""
        asked, self._asked = tuple(self._asked), {}
        refused = await self._history_thread.run(lambda feed: feed.refused(asked))
        await self._update_watched()  # from here on: commits before it may be gaps
        return refused, await self._history_thread.run(FeedReader.position)

    def _forget(self, subscriber: _Subscriber) -> None:
        """Let a subscriber go; what it has watched stays a while, as it may come back."""
        self._subscribers.discard(subscriber)
        self._interests[subscriber.interest] -= 1
        if not self._interests[subscriber.interest]:
            del self._interests[subscriber.interest]
        end = asyncio.get_running_loop().time() + LINGER_SECONDS
        self._lingering |= dict.fromkeys(subscriber.interest.relations & self.watched, end)
        self._metrics.subscribers = len(self._subscribers)
        if not self._subscribers:
            self._all_gone.set()

    async def _wake(self) -> None:
        """Let all subscribers look at what there is, some at a time."""
        for at, each in enumerate(tuple(self._subscribers), 1):
            each.wake()
            if at % WAKE_AT_ONCE == 0:
                await asyncio.sleep(0)

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
            self._note_lag()
            await self._beat_if_due()

    async def _beat_if_due(self) -> None:
        """Let all subscribers give a sign of life from time to time."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_beat:
            self._beat += 1
            self._next_beat = now + KEEPALIVE_SECONDS
            await self._wake()

    async def _advance(self, latest: int) -> None:
        assert self._recent is not None
        recent = self._recent
        while recent.latest < latest:
            interest = self._interest
            read = partial(FeedReader.read, interest=interest, since=recent.latest, upto=latest)
            try:
                commits = await self._tail_thread.run(read)
            except CommitsGoneError:
                recent.restart(latest)
            else:
                recent.put(interest, commits)
            self._note_lag()
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
            names = self._interest.relations | self._lingering.keys()
            virtual = await self._history_thread.run(lambda feed: feed.virtual(names))
            if virtual != self.watched:
                await self._watch(virtual)
                self.watched = virtual

    def _refuse_too_many(self) -> None:
        if len(self._subscribers) >= self._subscribers_max:
            raise ServiceError.of(
                503,
                "C1640",
                f"There are {self._subscribers_max:,} subscriptions already.",
                "end one that is not needed, or try again later; `--limit-subscribers` of the "
                "server allows more",
                retry_after=5,
            )

    def _note_lag(self) -> None:
        """Count how many commits the slowest subscriber is behind."""
        latest = 0 if self._recent is None else self._recent.latest
        first = min((each.commit for each in self._subscribers if each.commit), default=latest)
        self._metrics.subscriber_lag = max(0, latest - first)


class _SharedLook(Generic[Result]):
    """Work whose result is shared by all who ask for it before it begins.

    Who asks while it runs gets the next one, which begins when this one has ended.
    """

    def __init__(self, work: Callable[[], Awaitable[Result]]) -> None:
        self._work = work
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[Result] | None = None

    async def __call__(self) -> Result:
        if self._next is None:
            self._next = asyncio.ensure_future(self._run())
        return await asyncio.shield(self._next)

    async def _run(self) -> Result:
        await asyncio.sleep(0)  # all who are ready to ask do so before it begins
        async with self._lock:
            self._next = None
            return await self._work()


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
    return _reset_events(commit, [(name, reason) for name in names])


def _reset_events(
    commit: int, reasons: Iterable[tuple[str | None, str]], *, has_more: bool = False
) -> list[Event]:
    """Return events that say which relations are to be read anew, and why.

    Args:
        commit: the commit.
        reasons: by relation; None stands for all of them.
        has_more: whether other events of the commit follow.
    """
    found = [
        Event("reset", encode_data(commit=commit, relation=name, reason=reason))
        for name, reason in reasons
    ]
    if not has_more:
        found[-1] = replace(found[-1], id=commit)
    return found
