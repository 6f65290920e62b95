"""What commits have changed, as events of subscriptions: read from the catalog and its files.

A commit's changes are encoded once, however many subscribers get them. Whoever made the commit,
and whether that process still lives, does not matter: the catalog has it.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from itertools import chain
from typing import Any, TypeVar

from corollary.core.alerts import Alert, distinct_alerts
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.changes import json_rows
from corollary.database.feed_tables import FollowedChange, changes_by_commit
from corollary.database.history import change_tables, feeds_of, find_relation, recorded_changes
from corollary.errors import CorollaryError
from corollary.serve.answers import Event
from corollary.warehouse.catalog.grants import StoredGrants
from corollary.warehouse.catalog.outbox import alerts_of_commit
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

CHANGE_MAX_ROWS = 10_000
"""A commit that changes more rows of a relation is a reset: to read it anew is less work."""
READ_MAX_COMMITS = 64
"""How many commits are read at a time."""
READ_MAX_ROWS = 100_000
"""How many rows are read at a time, unless one commit has more."""


RECENT_MAX_COMMITS = 64
RECENT_MAX_BYTES = 8 << 20
"""How many commits, and how many bytes of them, are kept for subscribers."""

Result = TypeVar("Result")
Asked = tuple[frozenset[str], str | None]
"""The relations that somebody asks for, and whose grants hold; None if all may be seen."""


class CommitsGoneError(Exception):
    """Commits that a subscriber has not seen are no longer kept."""


@dataclass(frozen=True, slots=True)
class Interest:
    """What somebody wants to know.

    Attributes:
        relations: by name.
        is_all: whether changes of all relations are wanted, as far as they are recorded.
        alerts: whether alerts are.
    """

    relations: frozenset[str] = frozenset()
    is_all: bool = False
    alerts: bool = False

    def includes(self, other: "Interest") -> bool:
        """Return whether everything that another one wants is wanted here."""
        return (
            self.relations >= other.relations
            and self.is_all >= other.is_all
            and self.alerts >= other.alerts
        )

    @classmethod
    def union(cls, some: Iterable["Interest"]) -> "Interest":
        """Return what at least one of several wants."""
        every = tuple(some)
        return cls(
            frozenset().union(*(each.relations for each in every)),
            any(each.is_all for each in every),
            any(each.alerts for each in every),
        )


@dataclass(frozen=True, slots=True)
class EncodedChange:
    """The change of a relation in a commit, or a reset if it is not known; as JSON."""

    relation: str
    text: str
    is_reset: bool = False


@dataclass(frozen=True, slots=True)
class EncodedAlert:
    """An alert of a commit, as JSON."""

    event: str
    text: str


@dataclass(slots=True)
class CommitChanges:
    """What a commit has changed, as far as somebody is interested in it.

    The events of it are made once, for all who want and may see the same.
    """

    commit: int
    changes: dict[str, EncodedChange] = field(default_factory=dict)
    alerts: list[EncodedAlert] = field(default_factory=list)
    _events: dict[tuple[Interest, frozenset[str] | None], tuple[Event, ...]] = field(
        default_factory=dict
    )
    _made: dict[tuple[int, bool], Event] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        changes, alerts = self.changes.values(), self.alerts
        return sum(len(each.text) for each in changes) + sum(len(each.text) for each in alerts)

    def events(self, interest: Interest, granted: frozenset[str] | None) -> tuple[Event, ...]:
        """Return the events for who is interested in something and may see it.

        Args:
            interest: what is wanted.
            granted: what may be seen; everything if it is None.
        """
        found = self._events.get((interest, granted))
        if found is None:
            seen = list(self._visible(interest, granted))
            events = [self._event(each, is_last=each is seen[-1]) for each in seen]
            found = self._events[interest, granted] = tuple(events)
        return found

    def _visible(
        self, interest: Interest, granted: frozenset[str] | None
    ) -> Iterator[EncodedChange | EncodedAlert]:
        for name in sorted(self.changes):
            is_wanted = interest.is_all or name in interest.relations
            if is_wanted and (granted is None or name in granted):
                yield self.changes[name]
        if interest.alerts:
            yield from (each for each in self.alerts if granted is None or each.event in granted)

    def _event(self, each: EncodedChange | EncodedAlert, *, is_last: bool) -> Event:
        """Return what is sent of a change or an alert; the last one of a commit has its number."""
        key = id(each), is_last
        if key not in self._made:
            kind = "alert"
            if isinstance(each, EncodedChange):
                kind = "reset" if each.is_reset else "change"
            self._made[key] = Event(kind, each.text, self.commit if is_last else None)
        return self._made[key]


@dataclass(frozen=True, slots=True)
class CatalogPosition:
    """The commits that a catalog has: the oldest that is kept, the last one, its program's id."""

    oldest: int
    latest: int
    program: int | None


class FeedReader:
    """Reads the catalog of a warehouse; for one thread at a time.

    Args:
        place: a directory, or the URL of a catalog on PostgreSQL.
    """

    def __init__(self, place: str) -> None:
        self._warehouse = WarehouseCatalog.open(place, create=False)
        self._program: tuple[int, NormalProgram] | None = None

    def close(self) -> None:
        """Close the connections to the catalog."""
        self._warehouse.close()

    def position(self) -> CatalogPosition:
        """Return which commits there are."""
        latest = self._warehouse.catalog.latest_commit()
        oldest = int(self._warehouse.catalog.meta("oldest"))
        if latest is None:
            return CatalogPosition(oldest, 0, None)
        return CatalogPosition(oldest, latest.number, latest.program)

    def granted(self) -> Mapping[str, frozenset[str]]:
        """Return what each reader may see; with a bag, its counts."""
        bags = self.program().bags
        return {
            reader: frozenset(names) | {rows for bag, rows in bags.items() if bag in names}
            for reader, names in StoredGrants(self._warehouse.catalog).by_reader().items()
        }

    def program(self) -> NormalProgram:
        """Return the relations of the program in force."""
        id_ = self.position().program
        if id_ is None:
            return NormalProgram({}, (), (), {})
        if self._program is None or self._program[0] != id_:
            layout = self._warehouse.catalog.program(id_).layout
            self._program = id_, program_of_layout(layout)
        return self._program[1]

    def refused(self, asked: Iterable[Asked]) -> dict[Asked, CorollaryError]:
        """Return why relations cannot be followed: they do not exist, or a reader may not see them.

        Args:
            asked: the names of relations, each time with who asks, None who may see all.
        """
        found = {}
        for names, reader in asked:
            try:
                self._check_relations(names, reader)
            except CorollaryError as error:
                found[names, reader] = error
        return found

    def _check_relations(self, names: Iterable[str], reader: str | None) -> None:
        granted = None
        if reader is not None:
            granted = StoredGrants(self._warehouse.catalog).granted_to(reader)
        for name in names:
            find_relation(self._warehouse, name, reader, granted)

    def virtual(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of some relations whose changes are known only while they are watched."""
        program = self.program()
        return frozenset(
            name
            for name in names
            if name in program.relations
            if not program.relations[program.bags.get(name, name)].is_stored
        )

    def read(self, interest: Interest, since: int, upto: int) -> list[CommitChanges]:
        """Return what the next commits after one have changed, oldest first: some, or all.

        Raises:
            CommitsGoneError: the next commit is not kept.
            CorollaryError: the warehouse cannot be read.
        """
        if since < self.position().oldest - 1:
            raise CommitsGoneError
        last = self._end(since, upto)
        try:
            return self._read(interest, since, last)
        except CorollaryError:
            if since < self.position().oldest - 1:  # they were dropped in this moment
                raise CommitsGoneError from None
            raise

    def _end(self, since: int, upto: int) -> int:
        """Return the last commit to read at a time."""
        last, rows = min(upto, since + READ_MAX_COMMITS), 0
        for number, _, added, removed in self._warehouse.catalog.change_counts(since, last):
            rows += added + removed
            if rows > READ_MAX_ROWS:
                return max(since + 1, number - 1)
        return last

    def _read(self, interest: Interest, since: int, last: int) -> list[CommitChanges]:
        found = {number: CommitChanges(number) for number in range(since + 1, last + 1)}
        feeds = feeds_of(self._warehouse, interest.relations, since, last)
        if interest.is_all:
            every = recorded_changes(self._warehouse, None, since, last)
            feeds = chain(change_tables(self._warehouse, every), feeds)
        for fed, table in feeds:
            for each in changes_by_commit(fed, table):
                changes, name = found[each.commit].changes, fed.name
                encoded = _encode_change(each)
                if encoded is None:
                    continue
                # A second table of a relation: it has other columns from this commit on.
                is_other = name in changes and changes[name].text != encoded.text
                changes[name] = _reset_of(each, "it has other columns") if is_other else encoded
        if interest.alerts:
            for number, commit in found.items():
                alerts = distinct_alerts(alerts_of_commit(self._warehouse.catalog, number))
                commit.alerts = [_encode_alert(number, alert) for alert in alerts]
        return list(found.values())


def _encode_change(change: FollowedChange) -> EncodedChange | None:
    """Return a change as an event, a reset if it is too large or not known; None if it is empty."""
    counts = change.added.num_rows, change.removed.num_rows
    if not change.is_known:
        return _reset_of(change, "the commit has not watched it")
    if not any(counts):
        return None
    if sum(counts) > CHANGE_MAX_ROWS:
        return _reset_of(change, f"the commit has changed {sum(counts):,} tuples")
    name = change.relation.name
    added, removed = (
        json_rows(rows, change.relation, is_sorted=True) for rows in (change.added, change.removed)
    )
    text = encode_data(
        commit=change.commit, relation=name, added=added, removed=removed, counts=counts
    )
    return EncodedChange(name, text)


def _reset_of(change: FollowedChange, reason: str) -> EncodedChange:
    name = change.relation.name
    text = encode_data(commit=change.commit, relation=name, reason=reason)
    return EncodedChange(name, text, is_reset=True)


def _encode_alert(number: int, alert: Alert) -> EncodedAlert:
    return EncodedAlert(alert.event, encode_data(commit=number, **alert.as_json()))


def encode_data(**fields: Any) -> str:
    """Return the data of an event: JSON in one line."""
    return json.dumps(fields, ensure_ascii=False)


class ReaderThread:
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


class RecentCommits:
    """The changes of the last commits, each with what it was read for.

    All subscribers share them: who keeps up reads nothing from the disk.

    Attributes:
        latest: the last commit that it has seen.
    """

    def __init__(self, latest: int) -> None:
        self.latest = latest
        self._kept: dict[int, tuple[Interest, CommitChanges]] = {}
        self._bytes = 0
        self._dropped = 0

    def put(self, interest: Interest, commits: Iterable[CommitChanges]) -> None:
        """Add commits, or replace them; the oldest ones go where there are too many."""
        for each in commits:
            self._drop(each.commit)
            self._kept[each.commit] = interest, each
            self._bytes += each.size
            self.latest = max(self.latest, each.commit)
        while len(self._kept) > RECENT_MAX_COMMITS or self._bytes > RECENT_MAX_BYTES:
            self._dropped = max(self._dropped, min(self._kept))
            self._drop(self._dropped)

    def _drop(self, commit: int) -> None:
        if commit in self._kept:
            self._bytes -= self._kept.pop(commit)[1].size

    def restart(self, latest: int) -> None:
        """Begin anew after a commit."""
        self._kept.clear()
        self._bytes, self._dropped, self.latest = 0, 0, latest

    def covers(self, commit: int) -> bool:
        """Return whether those after a commit are so few that they are kept for all."""
        return commit >= max(self._dropped, self.latest - RECENT_MAX_COMMITS)

    def since(self, commit: int, interest: Interest) -> list[CommitChanges] | None:
        """Return the commits after one; None if not all of them are kept with what is asked."""
        found: list[CommitChanges] = []
        if not self.covers(commit):
            return None
        for number in range(commit + 1, self.latest + 1):
            read_for, changes = self._kept.get(number, (None, None))
            if read_for is None or changes is None or not read_for.includes(interest):
                return None
            found.append(changes)
        return found
