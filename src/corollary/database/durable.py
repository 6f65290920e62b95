"""A database that lasts: what a warehouse keeps of it, and how it comes back.

Opened, a database is the index files of the last fold, mapped, and the changes since. A commit
records its changes; of payload too, as long as the catalog has it as the engine has it. Where that
is not so (payload made anew, relations copied) the whole relation is recorded in its place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from corollary.core.engine import Engine, Held, Kept
from corollary.core.plan import WORKING
from corollary.core.printer import print_program
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.database.changes import Change, Changes
from corollary.database.counters import Stats
from corollary.database.frames import Frames
from corollary.database.journal import Attempt, Journal, Position, Told
from corollary.database.names import published
from corollary.database.program import Loaded
from corollary.database.rules import load_after
from corollary.engines.local.engine import LocalEngine
from corollary.errors import ConflictError, WarehouseError
from corollary.frontends.datalog.parse import parse
from corollary.maintain.payload import Payload
from corollary.source import SourceFile
from corollary.warehouse.entries import Commit, NewCommit, StoredChange
from corollary.warehouse.outbox import alerts_at
from corollary.warehouse.places import places_of, relations_in
from corollary.warehouse.steady import steadily
from corollary.warehouse.warehouse import Apart, Delta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.kernel import Kernel
    from corollary.database.transaction import Transaction
    from corollary.warehouse.publishing.publisher import Outcome

COMMITS = 256
"""After so many commits the index is written anew: opening has to go through all changes since."""

SHARE = 4
"""It is also written anew when more than one in so many tuples has changed since."""

SMALLEST = 1 << 14
"""Fewer changed tuples are no reason."""


SIGNS = (State.ADDED, State.REMOVED)

ENDINGS = tuple(f"{WORKING}{payload}" for payload in Payload)


class Durable:
    """The warehouse of a database.

    Args:
        warehouse: where the database lasts.
        engine: makes the engine that holds what is read from there.
        frames: of the session that the user works in.

    Attributes:
        warehouse: where the database lasts.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        engine: Callable[[], Engine] = LocalEngine,
        frames: Frames | None = None,
    ) -> None:
        self.warehouse = warehouse
        self._engine = engine
        self._frames = frames or Frames()
        self._program = 0
        self._recorded: frozenset[str] = frozenset()
        """The relations whose payload the catalog has as the engine has it."""
        self._folded = 0
        """The commit of the last index."""
        self._changed = 0
        """The tuples that came and went since."""

    # --- coming back ---------------------------------------------------------------------------

    def restore(self, database: "Kernel", number: int | None = None) -> None:
        """Let a database hold what it held at a commit, or at the last one.

        Raises:
            WarehouseError: there is no such commit, it is no longer kept, or a file is damaged.
        """
        steadily(self.warehouse.catalog, lambda: self._restore(database, number))

    def _restore(self, database: "Kernel", number: int | None) -> None:
        commit = self.warehouse.commit_at(number)
        if commit is None:
            return
        loaded = self.loaded_at(commit)
        payload = database.payload_of(loaded.normal)
        every = {**loaded.normal.relations, **payload}
        stored = {
            name
            for name, each in every.items()
            if (_owner(name) in commit.payload if name in payload else each.is_stored)
        }
        engine, found = self._filled(every, stored, commit.number)
        valid = commit.payload - {_owner(name) for name in payload.keys() - found}
        database.become(engine, loaded, commit.number, valid)
        self._program, self._recorded = commit.program, valid

    def loaded_at(self, commit: Commit) -> Loaded:
        """Return the program in force at a commit."""
        stored = self.warehouse.catalog.program(commit.program)
        program = parse(SourceFile("program", stored.text))
        return load_after(program, relations_in(stored.places), stored.places["definitions"])

    def _filled(
        self, every: Mapping[str, Relation], stored: set[str], number: int
    ) -> tuple[Engine, set[str]]:
        """Return an engine in which relations hold what they did at a commit, and which are known.

        The index is derived data: if it is damaged, snapshots and changes say the same.
        """
        self._folded, files = self.warehouse.index(number)
        if files:
            with suppress(WarehouseError):
                return self._fill(every, stored, number, files)
            self._folded = 0
        return self._fill(every, stored, number, {})

    def _fill(
        self,
        every: Mapping[str, Relation],
        relations: set[str],
        number: int,
        files: "Mapping[str, pa.Buffer]",
    ) -> tuple[Engine, set[str]]:
        """Let some of all relations hold what they did at a commit.

        A relation is what the index or its snapshot says, and the changes since; what was before
        it was recorded as a whole, perhaps with other columns, says nothing.
        """
        engine = self._engine()
        engine.declare(every)
        warehouse = self.warehouse
        indexed = engine.restore(files)
        engine.clear(indexed - relations)  # what is virtual now, or no longer valid
        start = dict.fromkeys(indexed & relations, self._folded)
        whole = warehouse.catalog.recorded_whole(number)
        for name, snapshot in warehouse.catalog.snapshots(number).items():
            if name in relations and name not in start and snapshot.commit >= whole.get(name, 0):
                engine.insert(name, warehouse.snapshot(snapshot))
                start[name] = snapshot.commit
        for name in relations & whole.keys():
            start[name] = max(start.get(name, 0), whole[name] - 1)
        known = set(start)
        self._changed = 0
        lowest = min((start.get(name, self._folded) for name in relations), default=0)
        for commit, stored in warehouse.catalog.changes(lowest, number):
            if stored.relation not in relations or commit <= start.get(stored.relation, lowest):
                continue
            if stored.is_full or not _is_payload(stored.relation):
                known.add(stored.relation)
            if stored.relation in known:
                _apply(engine, stored.relation, warehouse.change(stored))
                self._changed += stored.added + stored.removed
        engine.commit()
        return engine, known

    def recall(self, database: "Kernel", number: int) -> None:
        """Let another database, which does not last, hold what this one held at a commit."""
        Durable(self.warehouse).restore(database, number)

    def catch_up(self, database: "Kernel") -> None:
        """Let a database follow what other processes have committed."""
        catalog = self.warehouse.catalog
        latest = catalog.latest()
        if latest is None or latest.number == database.commits:
            return
        if latest.program != self._program or latest.number < database.commits:
            self.restore(database)
            return
        found = steadily(catalog, lambda: self._since(database.commits, latest.number))
        if found is None:
            self.restore(database)
            return
        payload = database.payload_of(database.loaded.normal)
        full = set()
        for stored, delta in found:
            if stored.relation in payload and stored.is_full:
                full.add(_owner(stored.relation))
            _apply(database.engine, stored.relation, delta)
            self._changed += stored.added + stored.removed
        database.engine.commit()
        valid = latest.payload & (self._recorded | full)
        database.follow(latest.number, valid)
        self._recorded = valid

    def _since(self, after: int, upto: int) -> list[tuple[StoredChange, Delta]] | None:
        """Return the changes of some commits; None if not all of them are kept."""
        catalog = self.warehouse.catalog
        if after < int(catalog.meta("oldest")):
            return None
        changes = catalog.changes(after, upto)
        return [(stored, self.warehouse.change(stored)) for _, stored in changes]

    # --- going on ------------------------------------------------------------------------------

    def record(
        self,
        database: "Kernel",
        attempt: Attempt,
        payload: frozenset[str],
        journal: Journal,
    ) -> int:
        """Make a transaction durable; return the number of its commit.

        Raises:
            ConflictError: another one came first.
            WarehouseError: it cannot be written.
        """
        changes = dict(self._changes(database, attempt, payload))
        after = attempt.after
        is_same = after.normal is database.loaded.normal and after.program == database.program
        program = None
        if not is_same or not database.commits:
            program = (print_program(after.program), places_of(after.normal))
        number = self.warehouse.commit(
            NewCommit(
                parent=database.commits,
                payload=payload,
                stats=journal.stats,
                program=program,
                sources=journal.positions,
                idempotency=journal.idempotency,
                alerts=journal.alerts,
                cause=journal.cause,
                depth=journal.depth,
            ),
            changes,
        )
        self._recorded = payload
        self._changed += sum(each.rows for each in changes.values())
        if program is not None:
            latest = self.warehouse.commit_at(number)
            assert latest is not None
            self._program = latest.program
        return number

    def _changes(
        self, database: "Kernel", attempt: Attempt, payload: frozenset[str]
    ) -> Iterator[tuple[str, Delta | Apart]]:
        """Yield what a transaction has changed, relation by relation."""
        engine, normal = database.engine, attempt.after.normal
        recorded = self._recorded - attempt.rebuilt
        beside = database.payload_of(normal)
        for name, relation in (*normal.relations.items(), *beside.items()):
            is_payload = name in beside
            if not is_payload and not relation.is_stored:
                continue
            if is_payload and _owner(name) not in payload:
                continue
            if name in attempt.fresh or (is_payload and _owner(name) not in recorded):
                yield name, _whole(engine.keep(name))
            elif engine.size(name, State.ADDED) or engine.size(name, State.REMOVED):
                yield name, _difference(*(engine.keep(name, each) for each in SIGNS))

    def distrust(self, relations: Iterable[str]) -> None:
        """Take note that payload in the engine is not what the catalog has."""
        self._recorded -= set(relations)

    def note(self, database: "Kernel", positions: Mapping[str, Position]) -> None:
        """Take note of how far sources have been read, where no tuple has changed."""
        self.warehouse.catalog.note_sources(positions, database.commits)

    def told(self, idempotency: str) -> Told | None:
        """Return what the commit of a key did, if there is one."""
        found = self.warehouse.catalog.commit_with(idempotency)
        if found is None:
            return None
        stats = {name: Stats.from_json(each) for name, each in found.stats.items()}
        alerts = alerts_at(self.warehouse.catalog, found.number)
        return Told(found.number, self.changes_of(found), stats, alerts)

    def changes_of(self, commit: Commit) -> Changes:
        """Return what a commit changed."""
        relations = relations_in(self.warehouse.catalog.program(commit.program).places).relations
        found = {}
        for _, stored in self.warehouse.catalog.changes(commit.number - 1, commit.number):
            relation = relations.get(stored.relation)
            if relation is not None and relation.is_declared and (stored.added or stored.removed):
                delta = self.warehouse.change(stored)
                kept = Held(delta.added), Held(delta.removed)
                found[relation.name] = Change(relation, *kept, self._frames)
        return Changes(found, {})

    def changes_at(self, number: int) -> Changes:
        """Return what a commit that is kept changed."""
        commit = self.warehouse.commit_at(number)
        assert commit is not None
        return self.changes_of(commit)

    def publish(self, database: "Kernel", transaction: "Transaction | None") -> "Outcome | None":
        """Bring the tables of all `.output` relations forward to the commit of the database."""
        from corollary.warehouse.publishing.history import FreshHistory, StoredHistory
        from corollary.warehouse.publishing.publisher import Publisher

        number = database.commits
        relations = published(database.loaded.normal, database.program.directives)
        if not relations or not number:
            return None
        publisher = Publisher(self.warehouse.root, self.warehouse.catalog)
        is_fresh = transaction is not None and transaction.commit_number == number
        changes = transaction.changes if transaction is not None and is_fresh else {}

        def changed(name: str) -> Delta | None:
            each = changes.get(name)
            return None if each is None else Delta(each.added, each.removed)

        history = FreshHistory(
            number - is_fresh,
            number,
            changed,
            database.engine.keep,
            StoredHistory(self.warehouse),
        )
        return publisher.publish_all(relations, number, history)

    # --- folding -------------------------------------------------------------------------------

    def settle(self, database: "Kernel") -> None:
        """Fold what has piled up, if that is due.

        If it fails, the commit before it stands all the same, and the next one tries again.
        """
        total = sum(database.planning.statistics.rows.values())
        is_much = self._changed > max(SMALLEST, total // SHARE)
        if is_much or database.commits - self._folded >= COMMITS:
            try:
                self.fold(database)
            except (ConflictError, WarehouseError) as error:
                database.console.note(f"The commit stands, but the fold behind it failed:\n{error}")

    def fold(self, database: "Kernel") -> None:
        """Write a snapshot of every relation that has changed since its last one, and an index."""
        number, normal = database.commits, database.loaded.normal
        stored = [name for name, each in normal.relations.items() if each.is_stored]
        stale = self.warehouse.catalog.stale(stored, number)
        tuples = ((name, database.engine.keep(name)) for name in stale)
        valid = [
            name
            for name in database.payload_of(normal)
            if _owner(name) in database.planning.payload
        ]
        self.warehouse.fold(number, tuples, database.engine.save([*stored, *valid]))
        self._folded, self._changed = number, 0


def _whole(every: Kept) -> Delta | Apart:
    """Return all tuples of a relation as a change."""
    if every.is_apart:
        return Apart(every, is_full=True)
    rows = every.table()
    return Delta(rows, rows.slice(0, 0), is_full=True)


def _difference(added: Kept, removed: Kept) -> Delta | Apart:
    """Return tuples that came and went as a change."""
    if added.is_apart and not len(removed):
        return Apart(added, is_full=False)
    return Delta(added.table(), removed.table())


def _owner(payload: str) -> str:
    """Return the relation beside which payload stands."""
    return payload.partition(WORKING)[0]


def _is_payload(name: str) -> bool:
    return name.endswith(ENDINGS)


def _apply(engine: Engine, name: str, delta: Delta) -> None:
    """Let a change happen to a relation."""
    if delta.is_full:
        engine.clear([name])
        engine.insert(name, delta.added)
    else:
        engine.change(name, delta.added, delta.removed)
