"""Verification: everything that a warehouse stores, compared with everything else; and repair.

| stage | what holds after it |
|---|---|
| catalog | the database is intact, every commit follows the one before, alerts are undamaged |
| history | every file is as it was written; changes add new tuples and remove existing ones only; |
|  | snapshots and index files hold the result of the changes before them |
| state | relations that are computed from others hold their `expected_contents`; the counts and |
|  | totals beside them are those of their tuples |
| tables | published tables show what the relations held |

Derived data that is damaged is rebuilt from what is undamaged:

| damaged | is rebuilt |
|---|---|
| a snapshot | from what is before it, from the index of its commit, or like a derived relation |
| a change of a derived relation | as all tuples that the relation had at that commit, recomputed |
| a change that filled a base relation | from a snapshot or an index, until the next change |
| a change of payload | not at all: payload is invalid until a transaction rebuilds it |
| an index | from the relations, for the last commit |
| the last state of a derived relation | by recomputing it, as a commit |
| counts and totals that are wrong | by recomputing them, as a commit |
| a published table | from the relation |

Any other damaged change of a base relation is lost: there is no other copy of it.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa

from corollary.console import Console, Phase, SilentConsole
from corollary.core.engine import TableHandle
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import Relation
from corollary.core.table_options import table_options
from corollary.data_class import dataclass
from corollary.database.program.names import published_relations, relations_of_counts
from corollary.database.upkeep import checked_reads
from corollary.database.upkeep.checked_reads import FindingKind, VerifyFinding, VerifyReport
from corollary.database.upkeep.expected_contents import (
    expected_contents,
    is_computed,
    wrong_payload,
)
from corollary.database.upkeep.retention import fold_at, force_restore
from corollary.database.warehouse_store import PAYLOAD_SUFFIXES, WarehouseStore
from corollary.errors import ConflictError, WarehouseError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse import replace_rows
from corollary.warehouse.catalog.catalog_rows import StoredChange, StoredSnapshot
from corollary.warehouse.catalog.inventory import Inventory, integrity_problems, read_inventory
from corollary.warehouse.catalog.outbox import damaged_alerts
from corollary.warehouse.copies import difference
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import RelationDelta, Warehouse

CATALOG_FILE = "the catalog"


def verify(warehouse: Warehouse, console: Console | None = None) -> VerifyReport:
    """Check a warehouse; if `gc` removes something meanwhile, check it again.

    Raises:
        WarehouseError: the catalog itself cannot be read.
    """
    while True:
        before = read_inventory(warehouse.catalog)
        report, error = None, None
        try:
            report = Verification(warehouse, before, console or SilentConsole()).run()
        except WarehouseError as found:
            error = found
        after = read_inventory(warehouse.catalog)
        is_same = (after.oldest, after.indexes) == (before.oldest, before.indexes)
        if report is not None and (is_same or not report.findings):
            return report
        if error is not None and is_same:
            raise error


class Verification:
    """One verification.

    Attributes:
        programs: the columns of relations at every commit.
        state: the tuples of current relations, as far as they are known.
    """

    def __init__(self, warehouse: Warehouse, held: Inventory, console: Console) -> None:
        self.programs = checked_reads.ProgramHistory(warehouse, held)
        self.state: dict[str, pa.Table] = {}
        self._warehouse = warehouse
        self._inventory = held
        self._console = console
        self._report = VerifyReport(commits=len(held.programs))
        self._reader = checked_reads.CheckedReader(warehouse, self._report, console)
        self._indexes: dict[int, checked_reads.CheckedIndex] = {}

    def run(self) -> VerifyReport:
        """Run all stages."""
        began = time.monotonic()
        self._console.enter(Phase.CHECK)
        self._check_catalog()
        if self._inventory.programs:
            self.replay_all()
            self._check_state()
            self._check_payload()
            self._check_tables()
        self._console.enter(Phase.OTHER)
        self._report.seconds = time.monotonic() - began
        return self._report

    def _find(
        self,
        kind: FindingKind,
        found: str | WarehouseError,
        file: str = CATALOG_FILE,
        relation: str = "",
        commit: int = 0,
        *,
        is_mendable: bool = False,
        sound_from: int = 0,
    ) -> None:
        if isinstance(found, WarehouseError):
            code, text = found.diagnostics[0].code, found.diagnostics[0].message
        else:
            code, text = "C0968", found
        self._report.findings.append(
            VerifyFinding(kind, code, text, file, relation, commit, is_mendable, sound_from)
        )

    def _check_catalog(self) -> None:
        self._console.progress("checking the catalog")
        for problem in integrity_problems(self._warehouse.catalog):
            self._find(FindingKind.CATALOG, f"The catalog is damaged: {problem}.")
        kept = [number for number in self._inventory.programs if number >= self._inventory.oldest]
        for number in kept[1:]:
            parent = self._inventory.parents[number]
            if parent != number - 1 or parent not in self._inventory.programs:
                text = f"Commit {number} follows commit {parent}, not the one before it."
                self._find(FindingKind.CATALOG, text, commit=number)
        catalog = self._warehouse.catalog
        for id_ in damaged_alerts(catalog, catalog.meta("id")):
            self._find(FindingKind.CATALOG, f"The alert `{id_}` in the outbox is damaged.")

    # --- history -------------------------------------------------------------------------------

    def replay_all(self) -> None:
        """Replay every relation, and note the tuples of current ones."""
        self._open_indexes()
        now = self.programs.program_at(self._inventory.latest).relations
        for name in dict.fromkeys((*self._inventory.changed_relations, *self._inventory.snapshots)):
            self._console.progress(f"replaying {name.replace(WORKING_SEPARATOR, ' ')}")
            follower = self._follow(name)
            relation = now.get(name)
            if relation is not None and relation.is_stored:
                self._report.relations += 1
                if follower.is_known and follower.shape is not None:
                    self.state[name] = follower.table()
                    self._report.tuples += self.state[name].num_rows

    def _open_indexes(self) -> None:
        for commit, listed in self._inventory.indexes.items():
            index = self._reader.read_index(listed, self.programs.program_at(commit))
            self._indexes[commit] = index
            for path, error in index.errors:
                self._find(FindingKind.INDEX, error, path, "", commit, is_mendable=True)

    def _is_bad_index(self, commit: int, found: str | WarehouseError) -> None:
        directory = self._inventory.indexes[commit][0].path.rpartition("/")[0]
        self._find(FindingKind.INDEX, found, directory, "", commit, is_mendable=True)

    def _follow(self, name: str) -> checked_reads.ReplayedRelation:
        held = self._inventory
        follower = checked_reads.ReplayedRelation(is_known=not held.fold)
        changes = self._warehouse.catalog.changes(0, held.latest, name)
        indexes = [at for at, index in self._indexes.items() if name in index.relations]
        for commit, each in checked_reads.history_events(
            changes, held.snapshots.get(name, []), indexes
        ):
            shape = self.programs.shape_at(name, commit)
            if isinstance(each, StoredChange):
                self._take_change(follower, commit, each, shape)
            elif shape is not None and isinstance(each, StoredSnapshot):
                self._take_snapshot(follower, each, shape)
            elif shape is not None:
                self._take_index(follower, commit, shape)
        return follower

    def _take_change(
        self,
        follower: checked_reads.ReplayedRelation,
        commit: int,
        each: StoredChange,
        shape: Relation | None,
    ) -> None:
        place = each.path or CATALOG_FILE
        is_mendable = (
            shape is None
            or is_computed(self.programs.program_at(commit), each.relation)
            or (each.is_full and self._has_copy(each.relation, commit, each.path))
        )
        try:
            delta = self._reader.read_change(each, shape)
        except WarehouseError as error:
            follower.is_known = False
            self._find(
                FindingKind.CHANGE,
                error,
                place,
                each.relation,
                commit,
                is_mendable=is_mendable,
                sound_from=self._sound_from(each.relation, commit),
            )
            return
        if shape is None or not (follower.is_known or delta.is_full):
            return
        if not follower.apply(shape, delta):
            text = (
                f"The change of `{each.relation}` in commit {commit} adds tuples that were there, "
                "or removes some that were not."
            )
            self._find(
                FindingKind.CHANGE, text, place, each.relation, commit, is_mendable=is_mendable
            )
        if delta.is_full:
            follower.path = each.path

    def _has_copy(self, relation: str, commit: int, path: str | None) -> bool:
        """Return whether another file has all tuples of a relation as it was at a commit."""
        snapshots = self._inventory.snapshots.get(relation, [])
        if any(each.commit == commit and each.path != path for each in snapshots):
            return True
        indexes = checked_reads.indexes_of(self._warehouse, self._inventory, relation, commit)
        return any(
            at >= commit and at in self._indexes and relation in self._indexes[at].relations
            for at in indexes
        )

    def _sound_from(self, relation: str, commit: int) -> int:
        """Return the next commit that does not need the changes up to one, or 0."""
        snapshots = self._inventory.snapshots.get(relation, [])
        taken = next((each.commit for each in snapshots if each.commit >= commit), 0)
        first = max(taken, commit + 1)
        return first if taken and first <= self._inventory.latest else 0

    def _take_snapshot(
        self, follower: checked_reads.ReplayedRelation, each: StoredSnapshot, shape: Relation
    ) -> None:
        if follower.is_known and follower.path == each.path:
            self._report.snapshots += 1  # the file of the change before it, which has been read
            return
        try:
            table = self._reader.read_snapshot(each, shape)
        except WarehouseError as error:
            follower.is_known &= follower.shape is not None
            is_mendable = (
                follower.is_known
                or self._has_copy(shape.name, each.commit, each.path)
                or is_computed(self.programs.program_at(each.commit), shape.name)
            )
            self._find(
                FindingKind.SNAPSHOT,
                error,
                each.path,
                shape.name,
                each.commit,
                is_mendable=is_mendable,
            )
            return
        if self._is_new(follower, shape, table):
            text = f"The snapshot of `{shape.name}` differs from the changes before it."
            self._find(
                FindingKind.SNAPSHOT, text, each.path, shape.name, each.commit, is_mendable=True
            )

    def _take_index(
        self, follower: checked_reads.ReplayedRelation, commit: int, shape: Relation
    ) -> None:
        try:
            table = self._indexes[commit].engine.read(shape.name)
        except WarehouseError as error:
            self._is_bad_index(commit, error)
            return
        if self._is_new(follower, shape, table):
            text = f"The index of commit {commit} has other tuples of `{shape.name}` than history."
            self._is_bad_index(commit, text)

    @staticmethod
    def _is_new(follower: checked_reads.ReplayedRelation, shape: Relation, table: pa.Table) -> bool:
        """Whether a table differs from what is known; if nothing is known, it is trusted."""
        if not follower.is_known or follower.shape is None:
            follower.reset(shape, table)
            return False
        return any(side.num_rows for side in difference(follower.table(), table))

    # --- state ---------------------------------------------------------------------------------

    def _check_state(self) -> None:
        """Compare relations that are computed from others with their recomputation."""
        latest = self._warehouse.commit_at(self._inventory.latest)
        assert latest is not None
        program = WarehouseStore(self._warehouse).program_at(latest).normal
        self._console.enter(Phase.EVALUATE)
        expected = expected_contents(program, self.state, self._console)
        self._console.enter(Phase.CHECK)
        self._report.has_recomputed = expected is not None
        for name, tuples in (expected or {}).items():
            if name not in self.state:
                continue
            missing, extra = difference(self.state[name], tuples)
            if missing.num_rows or extra.num_rows:
                text = (
                    f"`{name.replace(WORKING_SEPARATOR, ' ')}` lacks {missing.num_rows:,} tuples "
                    f"that it should have, and has {extra.num_rows:,} that it should not have."
                )
                self._find(
                    FindingKind.STATE, text, CATALOG_FILE, name, latest.number, is_mendable=True
                )

    def _check_payload(self) -> None:
        """Compare counts and totals with their recomputation, unless other things are damaged."""
        if self._report.findings:
            return
        latest = self._inventory.latest
        self._console.progress("recomputing counts and totals")
        for name, missing, extra, _ in wrong_payload(self._warehouse, latest, self._console):
            text = (
                f"`{name.replace(WORKING_SEPARATOR, ' ')}` lacks {missing:,} tuples that it should "
                f"have, and has {extra:,} that it should not have."
            )
            self._find(FindingKind.PAYLOAD, text, CATALOG_FILE, name, latest, is_mendable=True)

    def _check_tables(self) -> None:
        """Compare the tables that are still published with what the relations held."""
        noted = self._warehouse.catalog.published_versions()
        latest = self._warehouse.commit_at(self._inventory.latest) if noted else None
        if latest is None:
            return
        loaded = WarehouseStore(self._warehouse).program_at(latest)
        counts = relations_of_counts(loaded.normal)
        publisher = Publisher(self._warehouse.root, self._warehouse.catalog, counts)
        relations = {
            e.name: e for e in published_relations(loaded.normal, loaded.program.directives)
        }
        for name in sorted(noted.keys() & relations.keys()):
            self._console.progress(f"comparing the table of {name}")
            self._report.tables += 1
            shown, _ = noted[name]
            is_kept = shown >= self._inventory.oldest
            history = _HistoryFrom(self._warehouse, commit=shown) if is_kept else None
            try:
                found = [each.message for each in publisher.check(relations[name], history)]
            except WarehouseError:
                found = ["it cannot be compared, since its relation is damaged"]
            except (pa.ArrowException, OSError) as error:
                found = [f"it cannot be read ({error})"]
            for problem in found:
                text = f"The published table of `{name}` has been changed: {problem}."
                self._find(
                    FindingKind.TABLE, text, str(publisher.table_path(name)), name, is_mendable=True
                )


@dataclass(frozen=True, slots=True)
class _HistoryFrom(StoredHistory):
    """The history from the commit that a table shows.

    The log of the table may name an earlier commit, which had the same rows.
    """

    commit: int = 0

    def content(self, relation: Relation, at: int) -> TableHandle:
        """Return all tuples that a relation had at a commit."""
        # Not `super()`: a class with slots is another one than the one that was written.
        return StoredHistory.content(self, relation, max(at, self.commit))


MAX_TRIES = 5
"""How often the last state is corrected again because others have committed meanwhile."""


def repair(warehouse: Warehouse, console: Console | None = None) -> VerifyReport:
    """Rebuild what can be rebuilt; report what was repaired, and what is still damaged.

    Raises:
        WarehouseError: the catalog itself cannot be read, or a file not be written.
        ConflictError: others committed first every time.
    """
    console = console or SilentConsole()
    first = verify(warehouse, console)
    found = [each for each in first.findings if each.is_repairable]
    if not found:
        return first
    console.enter(Phase.STORE)
    _Repair(warehouse, console).run(found)
    second = verify(warehouse, console)
    left = {each.identity for each in second.findings}
    second.repaired = [each for each in first.findings if each.identity not in left]
    second.seconds += first.seconds
    return second


class _Repair:
    def __init__(self, warehouse: Warehouse, console: Console) -> None:
        self._warehouse = warehouse
        self._console = console
        self._inventory = read_inventory(warehouse.catalog)
        self._programs = checked_reads.ProgramHistory(warehouse, self._inventory)
        self._reader = checked_reads.CheckedReader(warehouse, VerifyReport(), console)

    def run(self, found: list[VerifyFinding]) -> None:
        """Rebuild what findings are about; first what the rest is rebuilt from."""
        catalog = self._warehouse.catalog
        self._rebuild(found, FindingKind.SNAPSHOT, for_computed=False)
        self._rebuild(found, FindingKind.SNAPSHOT, for_computed=True)
        self._rebuild(found, FindingKind.CHANGE, for_computed=False)
        self._rebuild(found, FindingKind.CHANGE, for_computed=True)
        for commit in {each.commit for each in found if each.kind is FindingKind.INDEX}:
            replace_rows.delete_index(catalog, commit)
        self._inventory = read_inventory(catalog)
        is_wrong = any(each.kind is FindingKind.STATE for each in found)
        for each in found:
            if each.kind is FindingKind.CHANGE and each.relation.endswith(PAYLOAD_SUFFIXES):
                owner = each.relation.partition(WORKING_SEPARATOR)[0]
                is_wrong |= not replace_rows.delete_payload(
                    catalog, each.relation, owner, each.commit
                )
        if is_wrong:
            self._retry(self._commit_correction)
        if any(each.kind is FindingKind.PAYLOAD for each in found):
            self._retry(self._commit_payload)
        latest = catalog.latest_commit()
        assert latest is not None
        if any(each.kind is FindingKind.INDEX for each in found):
            self._console.progress("writing the index")
            with suppress(WarehouseError):  # the second verification reports what is left
                fold_at(self._warehouse, latest.number, self._console)
        self._republish({each.relation for each in found if each.kind is FindingKind.TABLE})

    # --- snapshots and changes -----------------------------------------------------------------

    def _rebuild(
        self, findings: list[VerifyFinding], kind: FindingKind, *, for_computed: bool
    ) -> None:
        """Replace snapshots, or changes: those of relations computed from others, or the rest."""
        rebuilt: list[replace_rows.RecomputedTuples] = []
        self._inventory = read_inventory(self._warehouse.catalog)
        for each in findings:
            if each.kind is not kind or each.relation.endswith(PAYLOAD_SUFFIXES):
                continue
            program = self._programs.program_at(each.commit)
            if is_computed(program, each.relation) is not for_computed:
                continue
            tuples = (
                self._expected(each.commit).get(each.relation)
                if for_computed
                else self._content(each.relation, each.commit)
            )
            if tuples is not None:
                rebuilt.append(replace_rows.RecomputedTuples(each.commit, each.relation, tuples))
        if rebuilt:
            is_change = kind is FindingKind.CHANGE
            replace_rows.replace_contents(
                self._warehouse, rebuilt if is_change else (), () if is_change else rebuilt
            )

    def _expected(self, commit: int) -> "dict[str, pa.Table]":
        """Return what relations that are computed from others should have held at a commit."""
        found = self._warehouse.commit_at(commit)
        assert found is not None
        program = WarehouseStore(self._warehouse).program_at(found).normal
        bases = {
            name: table
            for name in program.relations
            if not is_computed(program, name)
            if (table := self._content(name, commit)) is not None
        }
        return expected_contents(program, bases, self._console) or {}

    def _content(self, name: str, commit: int) -> "pa.Table | None":
        """Return what a relation held at a commit, from everything that is undamaged."""
        known = self._inventory
        follower = checked_reads.ReplayedRelation(is_known=not known.fold)
        changes = self._warehouse.catalog.changes(0, commit, name)
        snapshots = [each for each in known.snapshots.get(name, []) if each.commit <= commit]
        indexes = checked_reads.indexes_of(self._warehouse, known, name, commit)
        for at, each in checked_reads.history_events(changes, snapshots, indexes):
            shape = self._programs.shape_at(name, at)
            if shape is None:
                continue
            try:
                if isinstance(each, StoredChange):
                    delta = self._reader.read_change(each, shape)
                    if follower.is_known or delta.is_full:
                        follower.apply(shape, delta)
                elif follower.is_known and follower.shape is not None:
                    continue  # nothing new
                elif isinstance(each, StoredSnapshot):
                    follower.reset(shape, self._reader.read_snapshot(each, shape))
                else:
                    index = self._reader.read_index(
                        known.indexes[at], self._programs.program_at(at)
                    )
                    if name in index.relations:
                        follower.reset(shape, index.engine.read(name))
            except WarehouseError:
                if isinstance(each, StoredChange) or follower.shape is None:
                    follower.is_known = False
        return follower.table() if follower.is_known and follower.shape is not None else None

    # --- the last state ------------------------------------------------------------------------

    @staticmethod
    def _retry(commit: Callable[[], None]) -> None:
        """Commit, and again if others have committed first."""
        for left in reversed(range(MAX_TRIES)):
            try:
                commit()
            except ConflictError:
                if not left:
                    raise
            else:
                return

    def _commit_payload(self) -> None:
        """Commit the right counts and totals."""
        latest = self._warehouse.commit_at()
        assert latest is not None
        wrong = wrong_payload(self._warehouse, latest.number, self._console)
        changes = {
            name: RelationDelta(expected, expected.slice(0, 0), is_full=True)
            for name, _, _, expected in wrong
        }
        force_restore(self._warehouse, latest, changes, latest.payload)

    def _commit_correction(self) -> None:
        """Commit the right contents of relations that are computed from others.

        The commit has no valid payload.
        """
        self._inventory = read_inventory(self._warehouse.catalog)
        self._programs = checked_reads.ProgramHistory(self._warehouse, self._inventory)
        latest = self._warehouse.commit_at()
        assert latest is not None
        changes: dict[str, RelationDelta] = {}
        for name, expected in self._expected(latest.number).items():
            found = self._content(name, latest.number)
            if found is None:
                changes[name] = RelationDelta(expected, expected.slice(0, 0), is_full=True)
                continue
            added, removed = difference(found, expected)
            if added.num_rows or removed.num_rows:
                changes[name] = RelationDelta(added, removed)
        force_restore(self._warehouse, latest, changes)

    def _republish(self, names: Iterable[str]) -> None:
        latest = self._warehouse.commit_at()
        assert latest is not None
        program = self._programs.program_at(self._inventory.latest)
        relations, counts = program.relations, relations_of_counts(program)
        stored = self._warehouse.catalog.program(latest.program)
        options = table_options(parse(SourceFile("program", stored.text)))
        publisher = Publisher(self._warehouse.root, self._warehouse.catalog, counts, options)
        history = StoredHistory(self._warehouse)
        for name in sorted(names):
            self._console.progress(f"publishing {name}")
            with suppress(WarehouseError):
                publisher.republish(relations[name], latest.number, history)
