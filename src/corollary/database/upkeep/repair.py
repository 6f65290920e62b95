"""Repair: derived data that is damaged is rebuilt from what is undamaged.

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

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from corollary.console import Console, Phase, SilentConsole
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.table_options import table_options
from corollary.database.program.names import relations_of_counts
from corollary.database.upkeep import checked_reads
from corollary.database.upkeep.expected_contents import (
    expected_contents,
    is_computed,
    wrong_payload,
)
from corollary.database.upkeep.retention import fold_at, force_restore
from corollary.database.upkeep.verify import verify
from corollary.database.upkeep.verify_report import FindingKind, VerifyFinding, VerifyReport
from corollary.database.warehouse_store import PAYLOAD_SUFFIXES, WarehouseStore
from corollary.errors import ConflictError, WarehouseError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse import replace_rows
from corollary.warehouse.catalog.catalog_rows import StoredChange, StoredSnapshot
from corollary.warehouse.catalog.inventory import read_inventory
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.set_difference import difference
from corollary.warehouse.warehouse import RelationDelta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

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
