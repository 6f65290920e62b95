"""The store of a durable database: its commits, snapshots and index files in a warehouse.

A database is opened from the memory-mapped index files of the last fold and the changes since. A
commit records its changes; those of payload too, as long as the recorded payload is that of the
engine. Where it is not (payload rebuilt, relations copied) the whole relation is recorded instead.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from corollary.analysis.replicas import replica_specs
from corollary.core.arrow import empty_table
from corollary.core.engine import Engine, LocalTable, TableHandle, TaskPool
from corollary.core.logic import Literal
from corollary.core.once import in_order, stored_relations
from corollary.core.plans import WORKING_SEPARATOR, watched_relation
from corollary.core.program import Relation
from corollary.core.recorder import job_group
from corollary.core.states import CHANGES, State
from corollary.database.changes import Change, Changes, virtual_changes
from corollary.database.counters import Stats
from corollary.database.engines import SparkFrames
from corollary.database.pending_commit import PendingCommit, Position, Replay
from corollary.database.program import names
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.parts import copied_base
from corollary.database.program.places import stored_program, with_places, with_sql_places
from corollary.database.program.program_edits import load_next_program
from corollary.database.state import DatabaseState
from corollary.database.store import OpenArguments
from corollary.engines.local.engine import LocalEngine
from corollary.errors import ConflictError, WarehouseError, redact_password
from corollary.frontends.datalog.parser import parse
from corollary.maintain.payload import Payload, payload_relations_of
from corollary.source import SourceFile
from corollary.warehouse.catalog.catalog_rows import (
    Commit,
    NewCommit,
    RecordedChange,
    StoredChange,
    StoredSnapshot,
)
from corollary.warehouse.catalog.grants import StoredGrants
from corollary.warehouse.catalog.outbox import CatalogOutbox, alerts_of_commit
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.catalog.query_log import QueryLog
from corollary.warehouse.consistent_read import read_consistently
from corollary.warehouse.copies import change_of_copies
from corollary.warehouse.partition_index import restore_index
from corollary.warehouse.publishing.outputs import Retries
from corollary.warehouse.sources.tasks.staged_rows import compare_counts
from corollary.warehouse.stale_snapshots import stale_snapshots
from corollary.warehouse.warehouse import ChangeHandles, RelationDelta, Warehouse

if TYPE_CHECKING:
    from corollary.database.feed_tables import RelationFeed
    from corollary.warehouse.files.places import Place
    from corollary.warehouse.publishing.outputs import Output, PublishResult

_Change: TypeAlias = "RelationDelta | ChangeHandles | pa.Table | TableHandle"
"""A recorded change: a delta, or all tuples that a relation had afterwards."""

FOLD_MAX_COMMITS = 256
"""A fold is due after this many commits: opening has to apply all changes since the last one."""

FOLD_CHANGED_FRACTION = 4
"""It is also due when more than one in this many tuples has changed since..."""

FOLD_MIN_TUPLES = 1 << 14
"""...unless fewer tuples than this have changed."""

FOLD_ENCODED_WEIGHT = 4
"""The tuples of a relation that is not in the index count so often: each opening encodes them."""

RESTORE_MIN_TUPLES = 1 << 17
"""A process that probes partitions and has no tasks restores after larger changes than this."""

ALERTS_DIRECTORY = "alerts"
"""The directory of a warehouse for the files of its alerts."""

PAYLOAD_SUFFIXES = tuple(f"{WORKING_SEPARATOR}{payload}" for payload in Payload)


class WarehouseStore:
    """Records commits in a warehouse, and restores states from it.

    Args:
        warehouse: where commits are recorded.
        engine: makes engines for restored states.
        frames: of the Spark session that the user works in.
        open_arguments: how the warehouse was opened, if other processes may have to open it too.
        has_query_log: whether goals are counted in the catalog.
    """

    is_durable = True

    def __init__(
        self,
        warehouse: Warehouse,
        engine: Callable[[], Engine] = LocalEngine,
        frames: SparkFrames | None = None,
        *,
        open_arguments: OpenArguments | None = None,
        has_query_log: bool = False,
    ) -> None:
        self.warehouse, self.check_exists = warehouse, warehouse.check_exists
        self.open_arguments = open_arguments
        self.location = redact_password(open_arguments.location if open_arguments else "")
        self._new_engine = engine
        self._frames = frames or SparkFrames()
        self._is_on_demand = False
        """Whether relations of restored states are read when they are first used."""
        self._query_log = QueryLog(warehouse.catalog) if has_query_log else None
        self._program = 0
        self._recorded: frozenset[str] = frozenset()
        """The relations whose payload in the catalog is that of the engine."""
        self._folded = 0
        """The commit of the last index."""
        self._changed = 0
        """How many tuples were added and removed since then."""
        self._retries = Retries()

    @property
    def outbox(self) -> CatalogOutbox:
        """The alerts that are not delivered yet."""
        return CatalogOutbox(self.warehouse.catalog)

    @property
    def alert_directory(self) -> Path | None:
        """The directory of the files of alerts; in an object store nothing can be appended to."""
        directory = self.warehouse.root / ALERTS_DIRECTORY
        return directory if isinstance(directory, Path) else None

    @property
    def grants(self) -> StoredGrants:
        """Which reader may see which relation."""
        return StoredGrants(self.warehouse.catalog)

    # --- restoring -------------------------------------------------------------------------

    def restore(self, state: DatabaseState, number: int | None = None) -> None:
        """Set a state to what the database held at a commit, or at the last one.

        Raises:
            WarehouseError: there is no such commit, it is no longer kept, or a file is damaged.
        """
        read_consistently(self.warehouse.catalog, lambda: self._restore(state, number))

    def _restore(self, state: DatabaseState, number: int | None) -> None:
        commit = self.warehouse.commit_at(number)
        if commit is None:
            return
        loaded = self.program_at(commit)
        payload = payload_relations_of(loaded.normal)
        every = {**loaded.normal.relations, **payload}
        stored = {
            name
            for name, each in every.items()
            if (_owner(name) in commit.payload if name in payload else each.is_stored)
        }
        engine, found = self._filled(every, stored, commit.number)
        valid = commit.payload - {_owner(name) for name in payload.keys() - found}
        state.restore(engine, loaded, commit.number, valid, commit.exact)
        self._program, self._recorded = commit.program, valid

    def restore_past(self, state: DatabaseState, number: int) -> None:
        """Set another state to what the database held at a commit, with an engine of its own.

        Each relation is read when it is first used.

        Raises:
            WarehouseError: there is no such commit, or it is no longer kept.
        """
        past = WarehouseStore(self.warehouse, self._new_engine, self._frames)
        past._is_on_demand = True
        past.restore(state, number)
        weakref.finalize(state, _close_unused, state.engine)

    def program_at(self, commit: Commit) -> LoadedProgram:
        """Return the program in force at a commit."""
        stored = self.warehouse.catalog.program(commit.program)
        program = parse(SourceFile("program", stored.text))
        program = with_sql_places(with_places(program, stored.layout))
        before = program_of_layout(stored.layout)
        loaded = load_next_program(program, before, stored.layout["definitions"])
        # What an earlier version has rewritten in another way is not there, and computed if asked.
        relations = {
            name: replace(each, is_virtual=True)
            for name, each in loaded.normal.relations.items()
            if each.is_derived and each.is_stored and name not in before.relations
        }
        if not relations:
            return loaded
        normal = replace(loaded.normal, relations={**loaded.normal.relations, **relations})
        return replace(loaded, normal=normal)

    def _filled(
        self, every: Mapping[str, Relation], stored: set[str], number: int
    ) -> tuple[Engine, set[str]]:
        """Return an engine with the relations as of a commit, and which of them are known.

        The index is derived data: if it is damaged, snapshots and changes hold the same.
        """
        self._folded, files, paths = self.warehouse.read_index(number)
        if files:
            with suppress(WarehouseError):
                return self._fill(every, stored, number, files, paths)
            self._folded = 0
        return self._fill(every, stored, number, {}, {})

    def _fill(
        self,
        every: Mapping[str, Relation],
        relations: set[str],
        number: int,
        files: "Mapping[str, pa.Buffer]",
        paths: "Mapping[str, Place]",
    ) -> tuple[Engine, set[str]]:
        """Fill some of all relations with their tuples as of a commit.

        A relation is its index or snapshot, and the changes since. What is older than its last
        full recording does not count: it may have had other columns then.
        """
        engine = self._new_engine()
        engine.declare(every)
        indexed = restore_index(engine, files, paths)
        engine.clear(indexed - relations)  # what is virtual now, or no longer valid
        snapshots, changes, known = self._recorded_files(relations, number, indexed)
        encoded = sum(each.rows for each in snapshots.values())
        changed = sum(each.added + each.removed for listed in changes.values() for each in listed)
        self._changed = changed + (FOLD_ENCODED_WEIGHT * encoded if files else 0)

        def fill(name: str) -> None:
            if name in snapshots:
                rows = self.warehouse.snapshot_rows(snapshots[name], every[name], engine.tasks)
                _fill_relation(engine, name, rows)
            for change in self._net_changes(changes.get(name, ()), every[name], engine.tasks):
                _apply(engine, name, change)

        def fill_again(name: str) -> None:
            snapshot, since, _ = self._recorded_files({name}, number, indexed)
            snapshots.pop(name, None)
            snapshots.update(snapshot)
            changes.update(since)
            fill(name)

        def fill_on_demand(name: str) -> None:
            try:
                fill(name)
            except WarehouseError:  # a fold may have removed the snapshot meanwhile
                read_consistently(self.warehouse.catalog, partial(fill_again, name))
            engine.commit([name])

        def size(name: str) -> int:
            rows = snapshots[name].rows if name in snapshots else engine.size(name)
            for each in changes.get(name, ()):
                rows = each.added if each.is_full else rows + each.added - each.removed
            return rows

        if self._is_on_demand:
            sizes = {name: size(name) for name in snapshots.keys() | changes.keys()}
            engine.fill_later(sizes, fill_on_demand)
        else:
            for name in snapshots.keys() | changes.keys():
                fill(name)
            engine.commit()
        return engine, known

    def _recorded_files(
        self, relations: set[str], number: int, indexed: set[str]
    ) -> tuple[dict[str, StoredSnapshot], dict[str, list[StoredChange]], set[str]]:
        """Return what relations are made of at a commit, and those of them that are known.

        Args:
            relations: which.
            number: of the commit.
            indexed: the relations that have the tuples of the index.

        Returns:
            The snapshots of those without an index, the changes since, and the known ones.
        """
        catalog = self.warehouse.catalog
        start = dict.fromkeys(indexed & relations, self._folded)
        full = catalog.latest_full_changes(number)
        snapshots: dict[str, StoredSnapshot] = {}
        for name, snapshot in catalog.latest_snapshots(number).items():
            if name in relations and name not in start and snapshot.commit >= full.get(name, 0):
                snapshots[name], start[name] = snapshot, snapshot.commit
        for name in relations & full.keys():
            start[name] = max(start.get(name, 0), full[name] - 1)
        known = set(start)
        lowest = min((start.get(name, self._folded) for name in relations), default=0)
        changes: dict[str, list[StoredChange]] = {}
        for commit, stored in catalog.changes(lowest, number):
            if stored.relation not in relations or commit <= start.get(stored.relation, lowest):
                continue
            # Changes of payload mean nothing without the payload that they change.
            if stored.is_full or not stored.relation.endswith(PAYLOAD_SUFFIXES):
                known.add(stored.relation)
            if stored.relation in known:
                changes.setdefault(stored.relation, []).append(stored)
        return snapshots, changes, known

    def catch_up(self, state: DatabaseState) -> None:
        """Apply to a state what other processes have committed."""
        catalog = self.warehouse.catalog
        if catalog.latest_number() in (0, state.commits):
            return
        latest = catalog.latest_commit()
        assert latest is not None  # there is a number
        if latest.program != self._program or latest.number < state.commits:
            self.restore(state)
            return
        payload = payload_relations_of(state.loaded.normal)
        found = read_consistently(catalog, lambda: self._since(state, latest.number, payload))
        if found is None:
            self.restore(state)
            return
        full = set()
        for stored, delta in found:
            if stored.relation in payload and stored.is_full:
                full.add(_owner(stored.relation))
            _apply(state.engine, stored.relation, delta)
            self._changed += stored.added + stored.removed
        state.engine.commit()
        valid = latest.payload & (self._recorded | full)
        state.advance(latest.number, valid, latest.exact)
        self._recorded = valid

    def _since(
        self, state: DatabaseState, upto: int, payload: Mapping[str, Relation]
    ) -> list[tuple[StoredChange, _Change]] | None:
        """Return the changes of relations since a state; None if it has to be restored."""
        catalog, engine = self.warehouse.catalog, state.engine

        def declared(name: str) -> Relation:
            return payload[name] if name in payload else state.loaded.normal.relations[name]

        listed = [each for _, each in catalog.changes(state.commits, upto)]
        rows = sum(each.added + each.removed for each in listed)
        is_large = engine.reads_partitions and engine.tasks is None and rows > RESTORE_MIN_TUPLES
        if is_large or state.commits < int(catalog.meta("oldest")):
            return None
        return [
            (stored, self._read_change(stored, declared(stored.relation), engine.tasks))
            for stored in listed
            if watched_relation(stored.relation) is None  # others are history only
        ]

    def _net_changes(
        self, listed: Iterable[StoredChange], relation: Relation, tasks: TaskPool | None
    ) -> Iterator[_Change]:
        """Yield consecutive changes of a relation, as few as possible: applying one is dear."""
        from corollary.warehouse.publishing.history import net_delta

        deltas: list[RelationDelta] = []
        for stored in listed:
            change = self._read_change(stored, relation, tasks)
            if isinstance(change, RelationDelta) and not change.is_full:
                deltas.append(change)
                continue
            if deltas:
                yield net_delta(deltas, relation)
            deltas = []
            yield change
        if deltas:
            yield net_delta(deltas, relation)

    def _read_change(
        self, stored: StoredChange, relation: Relation, tasks: TaskPool | None
    ) -> _Change:
        """Return a change; handles on its tuples, if they are many."""
        if stored.is_full:
            return self.warehouse.full_change_rows(stored, relation, tasks)
        large = self.warehouse.change_handles(stored, relation, tasks)
        return self.warehouse.read_change(stored) if large is None else large

    # --- recording -----------------------------------------------------------------------------

    def record(self, state: DatabaseState, pending: PendingCommit, payload: frozenset[str]) -> int:
        """Record a commit, all or nothing; return its number."""
        changes = dict(self._changes(state, pending, payload))
        rows = sum(each.rows for each in changes.values())
        state.console.progress("storing changes").advance(rows)
        after = pending.after
        is_same = after.normal is state.loaded.normal and after.program == state.program
        is_new = not is_same or not state.commits
        program = stored_program(after.program, after.normal) if is_new else None
        number = self.warehouse.commit(
            NewCommit(
                parent=state.commits,
                payload=payload,
                exact=pending.exact & payload,
                stats=pending.stats,
                program=program,
                dropped=pending.dropped,
                sources=pending.positions,
                idempotency=pending.idempotency,
                keys=pending.keys,
                digests=pending.digests,
                alerts=pending.alerts,
                delivers=pending.delivers,
                depth=pending.depth,
            ),
            changes,
        )
        self._recorded, self._changed = payload, self._changed + rows
        if self._folded:
            full = sum(each.rows for each in changes.values() if each.is_full)
            self._changed += (FOLD_ENCODED_WEIGHT - 1) * full
        if program is not None:
            latest = self.warehouse.commit_at(number)
            assert latest is not None
            self._program = latest.program
        return number

    def _changes(
        self, state: DatabaseState, pending: PendingCommit, payload: frozenset[str]
    ) -> Iterator[tuple[str, ChangeHandles]]:
        """Yield what a transaction has changed, relation by relation.

        The change of a relation that was empty is all that it holds: a snapshot, too.
        """
        engine, after, normal = state.engine, pending.after, pending.after.normal
        is_recorded = payload is self._recorded and not pending.rebuilt
        new = frozenset[str]() if is_recorded else payload - (self._recorded - pending.rebuilt)
        payloads = payload_relations_of(normal)
        published = cache(lambda: names.published_names(normal, after.program.directives))
        written = engine.changed() | pending.created
        beside = {name for name in written & payloads.keys() if _owner(name) in payload}
        if new:
            beside |= {name for name in payloads if _owner(name) in new}
        stored = written & stored_relations(normal)
        for name in (*in_order(normal, stored), *sorted(beside)):
            is_payload = name in beside
            is_new = name in pending.created or (is_payload and _owner(name) in new)
            added, removed = (engine.size(name, each) for each in CHANGES)
            if is_new or (added and not engine.size(name, State.OLD)):
                yield (
                    name,
                    ChangeHandles(
                        engine.handle(name),
                        is_full=True,
                        is_snapshot=not is_payload,
                        is_published=name in published(),
                        copy_of=copied_base(engine, normal, name, pending.created),
                    ),
                )
            elif added or removed:
                gained, lost = (engine.handle(name, each) for each in CHANGES)
                yield name, ChangeHandles(gained, lost)
        signs = state.demand(state.planned_program).signs
        for name, gained, lost in virtual_changes(engine, signs, pending.planned):
            yield name, ChangeHandles(gained, lost)

    def invalidate_payload(self, relations: Iterable[str]) -> None:
        """Note that the payload of relations in the engine is not the recorded one."""
        self._recorded -= set(relations)

    def source_positions(self) -> Mapping[str, Position]:
        """Return how far sources have been read, by the name of the source."""
        return self.warehouse.catalog.source_positions()

    def record_positions(self, state: DatabaseState, positions: Mapping[str, Position]) -> None:
        """Note how far sources have been read, where no tuple has changed."""
        if positions:
            self.warehouse.catalog.record_source_positions(positions, state.commits)

    def replay_of(self, idempotency: str) -> Replay | None:
        """Return what the commit of an idempotency key did, if there is one."""
        found = self.warehouse.catalog.find_commit_by_key(idempotency)
        if found is None:
            return None
        stats = {name: Stats.from_json(each) for name, each in found.stats.items()}
        alerts = alerts_of_commit(self.warehouse.catalog, found.number)
        digest = self.warehouse.catalog.find_key_digest(idempotency)
        return Replay(found.number, self.changes_of(found), stats, alerts, digest)

    def changes_of(self, commit: Commit, tasks: TaskPool | None = None) -> Changes:
        """Return what a commit changed; tasks read what is large, if there are any."""
        program = program_of_layout(self.warehouse.catalog.program(commit.program).layout)
        relations = program.relations
        found: dict[str, Change] = {}
        watched: set[str] = set()
        for _, stored in self.warehouse.catalog.changes(commit.number - 1, commit.number):
            relation = relations.get(watched_relation(stored.relation) or stored.relation)
            if relation is None or not relation.is_declared:
                continue
            if stored.added or stored.removed:
                kept = self._kept_change(stored, relation, tasks)
                found[relation.name] = Change(relation, *kept, self._frames, stored.is_full)
            elif not relation.is_stored:  # it was watched, and has not changed
                watched.add(relation.name)
        return Changes.of(found, program, watched, self._frames, tasks)

    def _kept_change(
        self, stored: StoredChange, relation: Relation, tasks: TaskPool | None
    ) -> tuple[TableHandle, TableHandle]:
        """Return handles on the tuples that a change has added and removed."""
        change = self._read_change(stored, relation, tasks)
        if isinstance(change, RelationDelta):
            return LocalTable(change.added), LocalTable(change.removed)
        if isinstance(change, ChangeHandles):
            assert change.removed is not None
            return change.added, change.removed
        every = LocalTable(change) if isinstance(change, pa.Table) else change
        return every, LocalTable(empty_table(relation))

    def feed_of(self, changes: Sequence[RecordedChange], tasks: TaskPool | None) -> "RelationFeed":
        """Return what commits have changed in a relation with the same columns."""
        from corollary.database.feed_tables import RelationFeed, feed_shape_of

        def kept(change: RecordedChange) -> tuple[TableHandle, TableHandle]:
            assert change.stored is not None
            recorded = change.counts or change.relation
            sides = self._kept_change(change.stored, recorded, tasks)
            if change.counts is None:
                return sides
            compare = None if tasks is None else partial(compare_counts, tasks, recorded)
            return change_of_copies(*sides, compare)

        return RelationFeed(feed_shape_of(changes), changes, self.warehouse, kept, self._frames)

    def changes_at(self, number: int, tasks: TaskPool | None = None) -> Changes:
        """Return what a commit that is kept changed."""
        commit = self.warehouse.commit_at(number)
        assert commit is not None
        return self.changes_of(commit, tasks)

    def publish(self, state: DatabaseState, last_changes: Changes | None) -> "PublishResult | None":
        """Bring all `.output` relations up to date with the last commit, wherever they go."""
        number, normal = state.commits, state.loaded.normal
        tables = names.published_relations(normal, state.program.directives)
        replicas = [
            (normal.relations[each.relation], each)
            for each in replica_specs(state.program)
            if names.is_followed(normal, each.relation)
        ]
        if not (tables or replicas) or not number:
            return None
        from corollary.core.table_options import table_options
        from corollary.warehouse.publishing.history import RecentHistory, StoredHistory
        from corollary.warehouse.publishing.outputs import publish_all
        from corollary.warehouse.publishing.publisher import Publisher

        def recent(name: str) -> ChangeHandles | None:
            each = None if last_changes is None else last_changes.get(name)
            return None if each is None else each.handles

        history = RecentHistory(
            number - (last_changes is not None),  # the commit before those that need not be read
            number,
            recent,
            state.engine.handle,
            StoredHistory(self.warehouse, state.engine.tasks),
        )
        shown = dict.fromkeys((*(each.name for each in tables), *(e.name for e, _ in replicas)))
        state.console.progress(f"publishing {', '.join(shown)}")
        root, catalog = self.warehouse.root, self.warehouse.catalog
        counts = names.relations_of_counts(normal)
        publisher = Publisher(root, catalog, counts, table_options(state.program))
        outputs: list[Output] = [*publisher.outputs(tables)]
        if replicas:
            from corollary.warehouse.publishing.replica_outputs import replica_outputs

            outputs += replica_outputs(replicas, root, catalog, counts)
        with job_group(self.location, number):
            return publish_all(outputs, number, catalog, history, self._retries)

    # --- folding -------------------------------------------------------------------------------

    def fold_if_due(self, state: DatabaseState) -> None:
        """Fold if enough has changed since the last fold; if that fails, the next commit tries."""
        tuples = sum(state.planner.statistics.rows.values())
        is_large = self._changed > max(FOLD_MIN_TUPLES, tuples // FOLD_CHANGED_FRACTION)
        if is_large or state.commits - self._folded >= FOLD_MAX_COMMITS:
            try:
                self.fold(state, is_complete=False)
            except (ConflictError, WarehouseError) as error:
                state.console.note(f"The commit was made, but the fold after it failed:\n{error}")

    def fold(self, state: DatabaseState, *, is_complete: bool = True) -> None:
        """Write a snapshot of every relation that has changed since its last one, and an index.

        If it need not be complete, large relations keep a snapshot that few changes follow.
        """
        number, normal, known = state.commits, state.loaded.normal, state.planner.payload
        if not self._folded:
            state.arrange_for_changes(normal.relations.keys())
        stored = [name for name, each in normal.relations.items() if each.is_stored]
        max_commits = 0 if is_complete else FOLD_MAX_COMMITS
        stale = stale_snapshots(self.warehouse.catalog, stored, number, max_commits)
        state.console.progress("storing snapshots and the index")
        published = names.published_names(normal, state.program.directives)

        def contents(name: str) -> ChangeHandles:
            handle = state.engine.handle(name)
            return ChangeHandles(handle, is_full=True, is_published=name in published)

        tuples = ((name, contents(name)) for name in stale)
        valid = [name for name in payload_relations_of(normal) if _owner(name) in known]
        saved = state.engine.save([*stored, *valid])
        self.warehouse.write_fold(number, tuples, saved, state.engine.tasks)
        self._folded, self._changed = number, 0

    # --- queries, the end ----------------------------------------------------------------------

    def log_query(self, goal: Literal) -> None:
        """Count a goal that was asked."""
        if self._query_log is not None:
            self._query_log.count(goal)

    def close(self) -> None:
        """Write the counted goals, and close the catalog."""
        if self._query_log is not None:
            self._query_log.flush()
        self.warehouse.close()


def _close_unused(engine: Engine) -> None:
    with suppress(Exception):  # its session may have ended before
        engine.close()


def _owner(payload: str) -> str:
    """Return the relation that payload belongs to."""
    return payload.partition(WORKING_SEPARATOR)[0]


def _apply(engine: Engine, name: str, change: _Change) -> None:
    """Apply a recorded change to a relation; all its tuples, if it is no delta."""
    if isinstance(change, RelationDelta | ChangeHandles):
        assert change.removed is not None
        engine.apply_change(name, change.added, change.removed)
    else:
        engine.clear([name])
        _fill_relation(engine, name, change)


def _fill_relation(engine: Engine, name: str, tuples: "pa.Table | TableHandle") -> None:
    """Give an empty relation tuples; those of a handle become OLD before they are changed."""
    engine.insert(name, tuples)
    if getattr(tuples, "is_distributed", False):
        engine.commit([name])
