"""The history of a warehouse: its commits, and what they have changed as a feed of rows.

The feed has the columns of the change feeds of Delta and Spark:

| column              | holds                                              |
|---------------------|----------------------------------------------------|
| those of the tuples | a tuple that was inserted or deleted               |
| `_change_type`      | `insert` or `delete`                               |
| `_commit_version`   | the number of the commit                           |
| `_commit_timestamp` | when it was made, in UTC                           |
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import groupby

import pyarrow as pa

from corollary.core.arrow import arrow_type, sort_rows
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL, TIMESTAMP
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog_rows import Commit, StoredChange
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, DELETE, INSERT
from corollary.warehouse.warehouse import Warehouse

COMMIT_COLUMNS = {CHANGE_COLUMN: SYMBOL, "_commit_version": NUMBER, "_commit_timestamp": TIMESTAMP}
"""The columns of a feed that follow those of the tuples."""


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


def commit_log(warehouse: Warehouse, limit: int | None = None) -> list[CommitSummary]:
    """Return the commits that are kept, newest first."""
    commits = warehouse.commits(limit)
    if not commits:
        return []
    programs = _Programs(warehouse)
    oldest, newest = commits[-1], commits[0]
    changes: dict[int, dict[str, tuple[int, int]]] = {each.number: {} for each in commits}
    by_number = {each.number: each for each in commits}
    for number, name, added, removed in warehouse.catalog.change_counts(
        oldest.number - 1, newest.number
    ):
        if number in by_number and programs.declared(by_number[number], name) is not None:
            changes[number][name] = added, removed
    parents = [*commits[1:], warehouse.catalog.find_commit(oldest.number - 1)]

    def is_new(commit: Commit, parent: Commit | None) -> bool:
        if parent is None:  # it was the first one, or its parent is no longer kept
            return commit.number == 1
        return programs.text(parent.program) != programs.text(commit.program)

    return [
        CommitSummary(
            each.number,
            commit_time(each),
            changes[each.number],
            is_new(each, parent),
            each.idempotency,
        )
        for each, parent in zip(commits, parents, strict=True)
    ]


def change_feed(
    warehouse: Warehouse, relation: Relation | None, since: int | None, upto: int | None
) -> Iterator[tuple[Relation, pa.Table]]:
    """Return what commits have changed, relation by relation; one table for each set of columns.

    See `ReadAccess.feed`.

    Raises:
        InputError: the changes of the relation are not kept.
        WarehouseError: not all these commits are kept.
    """
    if relation is not None and relation.is_derived and relation.is_virtual:
        raise InputError.of(
            "C0975",
            f"`{relation.name}` is virtual, so its changes are not stored.",
            None,
            "declare it without `virtual`, or look at the relations it is derived from",
        )
    oldest, latest = int(warehouse.catalog.meta("oldest")), warehouse.catalog.latest_commit()
    last = 0 if latest is None else latest.number
    for bound in (upto, since):
        if bound is not None and not oldest - 1 <= bound <= last:
            warehouse.commit_at(bound)  # raises the error
    first = oldest - 1 if since is None else since
    name = None if relation is None else relation.name
    return _feeds(warehouse, first, last if upto is None else upto, name)


def _feeds(
    warehouse: Warehouse, first: int, last: int, relation: str | None
) -> Iterator[tuple[Relation, pa.Table]]:
    programs = _Programs(warehouse)
    commits = {each.number: each for each in warehouse.commits()}
    found: dict[str, list[tuple[Relation, Commit, StoredChange]]] = {}
    for number, stored in warehouse.catalog.changes(first, last, relation):
        commit = commits.get(number)
        declared = commit and programs.declared(commit, stored.relation)
        if commit and declared and (stored.added or stored.removed):
            found.setdefault(stored.relation, []).append((declared, commit, stored))
    for every in found.values():
        for shape, alike in groupby(every, lambda each: (each[0].columns, each[0].types)):
            columns = (*shape[0], *COMMIT_COLUMNS)
            types = (*shape[1], *COMMIT_COLUMNS.values())
            tables = [
                table for _, commit, stored in alike for table in _rows(warehouse, commit, stored)
            ]
            yield replace(every[0][0], columns=columns, types=types), pa.concat_tables(tables)


def _rows(warehouse: Warehouse, commit: Commit, stored: StoredChange) -> Iterator[pa.Table]:
    """Yield the rows of one change: deleted tuples, then inserted ones."""
    delta = warehouse.read_change(stored)
    for kind, tuples in ((DELETE, delta.removed), (INSERT, delta.added)):
        rows = sort_rows(tuples)
        for value, (name, type_) in zip(
            (kind, commit.number, commit_time(commit)), COMMIT_COLUMNS.items(), strict=True
        ):
            column = pa.repeat(pa.scalar(value, arrow_type(type_)), tuples.num_rows)
            rows = (
                rows.append_column(name, column) if rows.num_columns else pa.table({name: column})
            )
        yield rows


def commit_time(commit: Commit) -> datetime:
    """Return when a commit was made."""
    return datetime.fromtimestamp(commit.created, UTC)


class _Programs:
    """The programs of commits, each read once."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._stored = cache(warehouse.catalog.program)
        self._relations = cache(lambda id_: program_of_layout(self._stored(id_).layout).relations)

    def text(self, id_: int) -> str:
        """Return the text of a program."""
        return self._stored(id_).text

    def declared(self, commit: Commit, name: str) -> Relation | None:
        """Return a relation as a commit's program declares it."""
        relation = self._relations(commit.program).get(name)
        return relation if relation is not None and relation.is_declared else None
