"""An inventory of the catalog at one moment, and sizes and states without reading data files."""

import json
from collections import defaultdict

from corollary.data_class import dataclass
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_reader import stored_snapshot
from corollary.warehouse.catalog.catalog_rows import StoredIndex, StoredSnapshot


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a catalog holds.

    Attributes:
        oldest: the first commit that is kept.
        fold: up to this commit there are only snapshots; 0 if no history was dropped.
        programs: the program of every commit, by its number.
        parents: the parent of every commit, by its number.
        changed_relations: the relations that have changes.
        snapshots: the snapshots of each relation, oldest first.
        indexes: the files of each index, by its commit, oldest first.
    """

    oldest: int
    fold: int
    programs: dict[int, int]
    parents: dict[int, int]
    changed_relations: tuple[str, ...]
    snapshots: dict[str, list[StoredSnapshot]]
    indexes: dict[int, list[StoredIndex]]

    @property
    def latest(self) -> int:
        """The last commit; 0 if there is none."""
        return max(self.programs, default=0)


def read_inventory(catalog: Catalog) -> Inventory:
    """Return what a catalog holds now, read in one transaction."""
    with catalog.read_transaction() as connection:
        meta = dict(connection.rows("SELECT name, value FROM corollary_meta"))
        made = connection.rows(
            "SELECT number, parent, program FROM corollary_commits ORDER BY number"
        )
        changed = connection.column(
            "SELECT DISTINCT relation FROM corollary_changes ORDER BY relation"
        )
        taken: dict[str, list[StoredSnapshot]] = defaultdict(list)
        for row in connection.rows("SELECT * FROM corollary_snapshots ORDER BY commit_number"):
            taken[row.relation].append(stored_snapshot(row))
        files: dict[int, list[StoredIndex]] = defaultdict(list)
        for row in connection.rows("SELECT * FROM corollary_indexes ORDER BY commit_number, path"):
            files[row.commit_number].append(StoredIndex(row.path, row.checksum))
        return Inventory(
            int(meta["oldest"]),
            int(meta.get("fold", 0)),
            {row.number: row.program for row in made},
            {row.number: row.parent for row in made},
            tuple(changed),
            dict(taken),
            dict(files),
        )


# --- sizes ---------------------------------------------------------------------------------------


def relation_sizes(catalog: Catalog, upto: int | None = None) -> dict[str, int]:
    """Return how many tuples each relation has at a commit, by default the last one."""
    last = 2**62 if upto is None else upto
    events: list[tuple[int, int, str, int]] = []
    wholes: set[tuple[int, str]] = set()
    with catalog.read_transaction() as connection:
        for row in connection.rows(
            "SELECT commit_number, relation, added, removed, is_full FROM corollary_changes"
            " WHERE commit_number <= ?",
            last,
        ):
            events.append((row.commit_number, 0, row.relation, row.added - row.removed))
            if row.is_full:
                wholes.add((row.commit_number, row.relation))
        events += connection.rows(
            "SELECT commit_number, 1, relation, rows FROM corollary_snapshots"
            " WHERE commit_number <= ?",
            last,
        )
    found: dict[str, int] = defaultdict(int)
    # A snapshot sorts after the change of the same commit, which it includes.
    for commit, is_snapshot, relation, count in sorted(events):
        if is_snapshot or (commit, relation) in wholes:
            found[relation] = count
        else:
            found[relation] += count
    return dict(found)


# --- states and checks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceState:
    """The commit and the time at which a source was last read.

    Attributes:
        lag: how many events of a stream were left then; None for other sources.
        events: how many of them have been read.
    """

    name: str
    relation: str
    commit: int
    read: float
    lag: int | None = None
    events: int | None = None


def source_states(catalog: Catalog) -> list[SourceState]:
    """Return when each source was last read, except those that are no longer read."""
    with catalog.read_transaction() as connection:
        rows = connection.rows("SELECT * FROM corollary_sources ORDER BY source")
    positions = [(row, json.loads(row.position)) for row in rows]
    return [
        SourceState(
            row.source,
            row.relation,
            row.commit_number,
            row.read,
            position.get("lag"),
            position.get("events"),
        )
        for row, position in positions
        if position is not None
    ]


def count_tuples_changed_since(catalog: Catalog, number: int) -> int:
    """Return how many tuples were added and removed after a commit."""
    query = "SELECT sum(added + removed) FROM corollary_changes WHERE commit_number > ?"
    with catalog.read_transaction() as connection:
        return int(connection.scalar(query, number) or 0)


def integrity_problems(catalog: Catalog) -> list[str]:
    """Return what SQLite finds wrong with its file; a server is trusted."""
    if not catalog.is_file:
        return []
    with catalog.read_transaction() as connection:
        found = connection.column("PRAGMA integrity_check(20)")
        lost = connection.column("PRAGMA foreign_key_check")
    problems = [str(each) for each in found if each != "ok"]
    return problems + [f"a row of {table} refers to nothing" for table in lost]
