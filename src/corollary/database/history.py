"""The history of a warehouse: its commits, and what they have changed as a feed of rows.

Only the catalog is read, and the changes themselves where rows of a feed are asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from corollary.core.plans import watched_name, watched_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import DATE, TIMESTAMP
from corollary.core.values import format_value, parse_value, quote_text
from corollary.data_class import dataclass
from corollary.database.access.grants import require_grant, unknown_relation
from corollary.database.program.names import readable_relation
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog_rows import Commit, RecordedChange, StoredChange
from corollary.warehouse.catalog.idempotency_keys import given_key
from corollary.warehouse.catalog.inventory import relation_sizes
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

if TYPE_CHECKING:
    import pyarrow as pa


PIPELINE_REPORT = "pipeline report"
"""The name under which a warehouse keeps what the last run of a pipeline has done."""

PointInHistory = int | date
"""A commit's number, a day (its end, in UTC) or a point in time (a `datetime`)."""


def read_point(point: object) -> PointInHistory:
    """Return a point in history; a text of digits is a commit, others are dates or timestamps.

    >>> read_point("7"), read_point("2026-11-15")
    (7, datetime.date(2026, 11, 15))

    Raises:
        InputError: it is none.
    """
    if isinstance(point, int | date) and not isinstance(point, bool):
        is_naive = isinstance(point, datetime) and point.tzinfo is None
        return point.replace(tzinfo=UTC) if is_naive and isinstance(point, datetime) else point
    text = point.strip() if isinstance(point, str) else ""
    if text.isascii() and text.isdecimal():
        return int(text)
    for type_ in (DATE, TIMESTAMP):
        with suppress(ValueError):
            found = parse_value(text, type_)
            assert isinstance(found, date)
            return found
    raise InputError.of(
        "C0907",
        f"{quote_text(str(point))} is neither a commit nor a point in time.",
        None,
        "write the number of a commit, a date such as `2026-11-15` (its end, UTC), or a timestamp "
        "such as `2026-11-15T08:00:00Z`",
    )


def commit_number(warehouse: WarehouseCatalog, point: PointInHistory) -> int:
    """Return the last commit that is not after a point in history.

    Raises:
        WarehouseError: there is none, or it is no longer kept.
    """
    if isinstance(point, int):
        return point
    try:
        if isinstance(point, datetime):
            end, asked = point + timedelta(microseconds=1), format_value(point, TIMESTAMP)
        else:
            midnight = datetime.combine(point, time(), UTC)
            end, asked = midnight + timedelta(days=1), f"the end of {point.isoformat()}"
    except OverflowError:  # the end of time
        end, asked = datetime.max.replace(tzinfo=UTC), str(point)
    return warehouse.commit_before(end, asked).number


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """A commit as the log shows it.

    Attributes:
        at: when it was made.
        changes: for each relation that it changed, how many tuples were inserted and deleted.
        has_new_program: whether it put another program into force.
        idempotency: its idempotency key, if any.
    """

    number: int
    at: datetime
    changes: Mapping[str, tuple[int, int]]
    has_new_program: bool
    idempotency: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the commit as `log` prints it."""
        return {
            "commit": self.number,
            "timestamp": format_value(self.at, TIMESTAMP),
            "changes": {
                name: {"added": added, "removed": removed}
                for name, (added, removed) in self.changes.items()
            },
            "new_program": self.has_new_program,
            "idempotency_key": self.idempotency,
        }


def commit_log(
    warehouse: WarehouseCatalog, limit: int | None = None, granted: frozenset[str] | None = None
) -> list[CommitSummary]:
    """Return the commits that are kept, newest first.

    Args:
        warehouse: the warehouse.
        limit: the maximum number of commits.
        granted: the relations that a reader may see, who sees no idempotency keys then; all if it
            is not given.
    """
    return _summaries(warehouse, warehouse.commits(limit), granted)


def commit_summary(
    warehouse: WarehouseCatalog, number: int, granted: frozenset[str] | None = None
) -> CommitSummary:
    """Return one commit as the log shows it; see `commit_log`.

    Raises:
        WarehouseError: it does not exist, or is no longer kept.
    """
    commit = warehouse.commit_at(number)
    assert commit is not None  # only without a number there may be none
    return _summaries(warehouse, [commit], granted)[0]


def pipeline_report(warehouse: WarehouseCatalog, number: int) -> list[dict[str, Any]]:
    """Return what a run of a pipeline did to each dataset, if it made a commit and is the last."""
    _, report = warehouse.catalog.source_positions().get(PIPELINE_REPORT, ("", None))
    found: list[dict[str, Any]] = report["datasets"] if report is not None else []
    return found if report is not None and report["commit"] == number else []


def _summaries(
    warehouse: WarehouseCatalog, commits: Sequence[Commit], granted: frozenset[str] | None
) -> list[CommitSummary]:
    """Return commits that follow one another, newest first, as the log shows them."""
    if not commits:
        return []
    programs = _Programs(warehouse)
    oldest, newest = commits[-1], commits[0]
    changes: dict[int, dict[str, tuple[int, int]]] = {each.number: {} for each in commits}
    by_number = {each.number: each for each in commits}
    for number, name, added, removed in warehouse.catalog.change_counts(
        oldest.number - 1, newest.number
    ):
        commit = by_number.get(number)
        shown = programs.bag_of(commit, name) or name
        is_granted = granted is None or shown in granted
        if is_granted and programs.declared(commit, name) is not None:
            changes[number][shown] = added, removed
    parents = [*commits[1:], warehouse.catalog.find_commit(oldest.number - 1)]
    by_number |= {each.number: each for each in parents if each is not None}
    sizes = cache(lambda number: relation_sizes(warehouse.catalog, number))
    numbers = range(oldest.number - 1, newest.number)
    for name, emptied in _emptied(programs, by_number, numbers, (), shows_counts=False):
        shown, number = emptied.relation.name, emptied.commit.number
        if number in changes and (granted is None or shown in granted):
            added, removed = changes[number].get(shown, (0, 0))
            gone = sizes(number - 1).get(name, 0)
            if added or removed or gone:
                changes[number][shown] = added, removed + gone

    def is_new(commit: Commit, parent: Commit | None) -> bool:
        if parent is None:  # it was the first one, or its parent is no longer kept
            return commit.number == 1
        return programs.text(parent.program) != programs.text(commit.program)

    return [
        CommitSummary(
            each.number,
            each.time,
            changes[each.number],
            is_new(each, parent),
            given_key(each.idempotency) if granted is None else None,
        )
        for each, parent in zip(commits, parents, strict=True)
    ]


def find_relation(
    warehouse: WarehouseCatalog, name: str, reader: str | None, granted: frozenset[str] | None
) -> Relation:
    """Return a relation of the program in force, or of the last one that has it, for a reader.

    Raises:
        InputError: there is no such relation.
        AccessError: it was not granted to the reader.
    """
    latest = warehouse.catalog.latest_commit()
    program = NormalProgram({}, (), (), {})
    if latest is not None:
        program = program_of_layout(warehouse.catalog.program(latest.program).layout)
    if reader is not None and granted is not None:
        granted |= {rows for bag, rows in program.bags.items() if bag in granted}
        require_grant(reader, name, granted)
        if name not in program.relations:
            raise unknown_relation(reader, name, granted)
    if name not in program.relations:
        dropped = dropped_relation(warehouse, name)
        if dropped is not None:
            return dropped
    return readable_relation(program, name)


def dropped_relation(warehouse: WarehouseCatalog, name: str) -> Relation | None:
    """Return a relation as the last program of the commits that are kept declares it."""
    programs = _Programs(warehouse)
    found = (programs.declared_in(each, name) for each in programs.kept())
    return next((each for each in found if each is not None), None)


def recorded_changes(
    warehouse: WarehouseCatalog,
    relation: Relation | None,
    since: int | None,
    upto: int | None,
    granted: frozenset[str] | None = None,
    *,
    must_be_watched: bool = True,
) -> Iterator[list[RecordedChange]]:
    """Return what commits have changed, relation by relation, unread: those with equal columns.

    See `ReadAccess.feed`; `granted` are the relations that a reader may see, and
    `must_be_watched` is whether a virtual relation is refused that no commit has watched.

    Raises:
        InputError: the changes of the relation are not kept.
        WarehouseError: not all these commits are kept.
    """
    oldest, latest = int(warehouse.catalog.meta("oldest")), warehouse.catalog.latest_commit()
    last = 0 if latest is None else latest.number
    names: tuple[str, ...] = ()
    programs = _Programs(warehouse)
    if relation is not None:
        names = programs.recorded_names(relation.name)
    if (
        must_be_watched
        and relation is not None
        and not (programs.counts_of(relation.name) or relation).is_stored
        and not any(
            warehouse.catalog.changes(oldest - 1, last, recorded)
            for name in names
            for recorded in (name, watched_name(name))
        )
    ):
        raise InputError.of(
            "C0975",
            f"`{relation.name}` is virtual, and no commit that is kept has watched it.",
            None,
            "watch it (`db.watch`, or active rules on what it gains and loses), declare it without "
            "`virtual`, or look at the relations it is derived from",
        )
    for bound in (upto, since):
        if bound is not None and not oldest - 1 <= bound <= last:
            warehouse.commit_at(bound)  # raises the error
    if since is not None and upto is not None and since > upto:
        raise InputError.of(
            "C0924",
            f"There is no commit after {since} that is not after {upto}.",
            None,
            f"let `since` be less than `upto`, such as since={upto} and upto={since}",
        )
    first = oldest - 1 if since is None else since
    last = last if upto is None else upto
    shows_counts = relation is not None and programs.has_counts(relation.name)
    return _recorded(warehouse, range(first, last), names, granted, shows_counts=shows_counts)


def feeds_of(
    warehouse: WarehouseCatalog, relations: Iterable[str], since: int, upto: int
) -> "Iterator[tuple[Relation, pa.Table]]":
    """Yield what commits that are kept have changed in some relations, as tables.

    The commits that have not watched a virtual one of them are `unwatched` in its feed.
    """
    programs = _Programs(warehouse)
    names: dict[bool, list[str]] = {True: [], False: []}
    for each in relations:
        names[programs.has_counts(each)] += programs.recorded_names(each)
    for shows_counts, some in names.items():
        if some:
            recorded = tuple(dict.fromkeys(some))
            found = _recorded(
                warehouse, range(since, upto), recorded, None, shows_counts=shows_counts
            )
            yield from change_tables(warehouse, found)


def change_tables(
    warehouse: WarehouseCatalog, found: Iterable[list[RecordedChange]]
) -> "Iterator[tuple[Relation, pa.Table]]":
    """Yield the rows of changes; each list is of a relation, with the same columns."""
    for changes in found:
        # Arrow is imported here, since there are rows to show.
        from corollary.database.feed_tables import feed_shape_of, feed_table

        yield feed_shape_of(changes), feed_table(warehouse, changes)


def _recorded(
    warehouse: WarehouseCatalog,
    before: range,
    names: tuple[str, ...],
    granted: frozenset[str] | None,
    *,
    shows_counts: bool,
) -> Iterator[list[RecordedChange]]:
    """Yield the changes of what is recorded under some names; without names, all of them.

    Args:
        warehouse: the warehouse.
        before: the numbers of the commits before those to show.
        names: under which changes are recorded.
        granted: the relations that a reader may see.
        shows_counts: whether the counts of a bag are shown as they are, and not as copies.
    """
    programs = _Programs(warehouse)
    oldest = int(warehouse.catalog.meta("oldest"))
    # With the one before them, to see which have another program.
    kept = warehouse.catalog.commits(max(oldest, before.start) - 1, upto=before.stop)
    commits = {each.number: each for each in kept}
    found: dict[str, list[RecordedChange]] = {}
    # Marked even if none of these commits has watched it.
    watching: dict[str, set[int]] = {name: set() for name in names}
    recorded = [each for name in names for each in (name, watched_name(name))]
    every_change = [
        each
        for name in recorded or (None,)
        for each in warehouse.catalog.changes(before.start, before.stop, name)
    ]
    for number, stored in sorted(every_change, key=lambda each: each[0]):
        watched = watched_relation(stored.relation)
        name = watched or stored.relation
        change = programs.change(commits.get(number), name, stored, shows_counts=shows_counts)
        is_granted = granted is None or (change and {name, change.relation.name} & granted)
        is_shown = stored.added or stored.removed or watched is not None
        if change is not None and is_granted and is_shown:
            found.setdefault(change.relation.name, []).append(change)
            if watched is not None:
                watching.setdefault(name, set()).add(number)
    for name, entry in _emptied(programs, commits, before, names, shows_counts=shows_counts):
        is_granted = granted is None or {name, entry.relation.name} & granted
        sizes = relation_sizes(warehouse.catalog, entry.commit.number - 1)
        if is_granted and sizes.get(name) and entry.commit.number not in watching.get(name, ()):
            found.setdefault(entry.relation.name, []).append(entry)
    for name, numbers in watching.items():
        for number in (each + 1 for each in before):
            commit = commits.get(number)
            declared = programs.declared(commit, name)
            earlier = programs.declared(commits.get(number - 1), name)
            is_other = earlier is not None and declared and _columns(earlier) != _columns(declared)
            is_known = number in numbers and not is_other
            if declared and not declared.is_stored and not is_known:
                gap = programs.change(commit, name, None, shows_counts=shows_counts)
                if gap is not None:
                    found.setdefault(gap.relation.name, []).append(gap)
    for every in found.values():
        every.sort(key=lambda each: (each.commit.number, each.stored is not None))
        for _, alike in groupby(every, lambda each: _columns(each.relation)):
            yield list(alike)


def _emptied(
    programs: "_Programs",
    commits: Mapping[int, Commit],
    before: range,
    only: tuple[str, ...],
    *,
    shows_counts: bool,
) -> Iterator[tuple[str, RecordedChange]]:
    """Yield the stored relations that have other columns after a commit, are virtual or gone."""
    for number in (each + 1 for each in before):
        earlier, commit = commits.get(number - 1), commits.get(number)
        if earlier is None or commit is None or earlier.program == commit.program:
            continue
        for name in only or programs.names(earlier):
            was, now = programs.declared(earlier, name), programs.declared(commit, name)
            is_kept = was is not None and now is not None and _columns(was) == _columns(now)
            if was is not None and was.is_stored and not (is_kept and now and now.is_stored):
                change = programs.change(earlier, name, None, shows_counts=shows_counts)
                if change is not None:
                    yield name, replace(change, commit=commit, emptied=(was, earlier.number))


def _columns(relation: Relation) -> tuple[object, object]:
    return relation.columns, relation.types


class _Programs:
    """The programs of commits, each read once."""

    def __init__(self, warehouse: WarehouseCatalog) -> None:
        self._warehouse = warehouse
        self._stored = cache(warehouse.catalog.program)
        self._normal = cache(lambda id_: program_of_layout(self._stored(id_).layout))
        self._kept: list[int] | None = None

    def kept(self) -> list[int]:
        """Return the programs of the commits that are kept, the last one first."""
        if self._kept is None:
            catalog = self._warehouse.catalog
            self._kept = catalog.program_ids(int(catalog.meta("oldest")) - 1)
        return self._kept

    def text(self, id_: int) -> str:
        """Return the text of a program."""
        return self._stored(id_).text

    def names(self, commit: Commit) -> Iterable[str]:
        """Return the relations of a commit's program."""
        return self._normal(commit.program).relations

    def declared(self, commit: Commit | None, name: str) -> Relation | None:
        """Return a relation as a commit's program declares it."""
        return None if commit is None else self.declared_in(commit.program, name)

    def declared_in(self, id_: int, name: str) -> Relation | None:
        """Return a relation as a program declares it."""
        relation = self._normal(id_).relations.get(name)
        return relation if relation is not None and relation.is_declared else None

    def bag_of(self, commit: Commit | None, name: str) -> str | None:
        """Return the bag of a relation of counts."""
        bags = {} if commit is None else self._normal(commit.program).bags
        return next((bag for bag, rows in bags.items() if rows == name), None)

    def recorded_names(self, name: str) -> tuple[str, ...]:
        """Return under which names changes of a relation are recorded: its own, that of counts."""
        counts = (bags[name] for bags in self._bags() if name in bags)
        return tuple(dict.fromkeys((name, *counts)))

    def has_counts(self, name: str) -> bool:
        """Return whether a relation has the counts of a bag."""
        return any(name in bags.values() for bags in self._bags())

    def _bags(self) -> Iterator[Mapping[str, str]]:
        """Yield the bags of all programs that are kept."""
        for id_ in self.kept():
            yield self._normal(id_).bags

    def counts_of(self, name: str) -> Relation | None:
        """Return the relation of a bag's counts, by the last program that has the bag."""
        for id_ in self.kept():
            normal = self._normal(id_)
            if name in normal.relations:
                return normal.relations[normal.bags[name]] if name in normal.bags else None
        return None

    def change(
        self, commit: Commit | None, name: str, stored: StoredChange | None, *, shows_counts: bool
    ) -> RecordedChange | None:
        """Return a change of what is recorded under a name; None if it is not shown."""
        if commit is None or name in self._normal(commit.program).bags:  # the set of its rows
            return None
        bag = None if shows_counts else self.bag_of(commit, name)
        relation = self.declared(commit, bag or name)
        if relation is None:
            return None
        counts = None if bag is None else self._normal(commit.program).relations[name]
        return RecordedChange(relation, commit, stored, counts)
