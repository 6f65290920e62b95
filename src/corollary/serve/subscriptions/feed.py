"""What commits have changed, as events of subscriptions: read from the catalog and its files.

A commit's changes are encoded once, however many subscribers get them. Whoever made the commit,
and whether that process still lives, does not matter: the catalog has it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import Any

from corollary.core.alerts import Alert, distinct_alerts
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.changes import json_rows
from corollary.database.feed_tables import FollowedChange, changes_by_commit
from corollary.database.history import change_tables, feeds_of, find_relation, recorded_changes
from corollary.errors import CorollaryError
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
    """What a commit has changed, as far as somebody is interested in it."""

    commit: int
    changes: dict[str, EncodedChange] = field(default_factory=dict)
    alerts: list[EncodedAlert] = field(default_factory=list)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        changes, alerts = self.changes.values(), self.alerts
        return sum(len(each.text) for each in changes) + sum(len(each.text) for each in alerts)


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

    def check_relations(self, names: Iterable[str], reader: str | None) -> None:
        """Refuse relations that do not exist, or that a reader may not see.

        Raises:
            InputError: one does not exist.
            AccessError: one was not granted.
        """
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


def visible(
    changes: CommitChanges, interest: Interest, granted: frozenset[str] | None
) -> Iterator[EncodedChange | EncodedAlert]:
    """Yield what somebody is interested in, and may see, of a commit.

    Args:
        changes: those of the commit.
        interest: what is wanted.
        granted: what may be seen; everything if it is None.
    """
    for name in sorted(changes.changes):
        is_wanted = interest.is_all or name in interest.relations
        if is_wanted and (granted is None or name in granted):
            yield changes.changes[name]
    if interest.alerts:
        yield from (each for each in changes.alerts if granted is None or each.event in granted)
