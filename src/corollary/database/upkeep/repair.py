"""Repair: derived data that is damaged is rebuilt from what is undamaged.

| damaged | is rebuilt |
|---|---|
| a snapshot | from what is before it, from the index of its commit, or like a derived relation |
| a change of a derived relation | as all tuples that the relation had at that commit, recomputed |
| a change of payload | not at all: payload is invalid until a transaction rebuilds it |
| an index | from the relations, for the last commit |
| the last state of a derived relation | by recomputing it, as a commit |
| a published table | from the relation |

A damaged change of a base relation is lost: there is no other copy of it.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from corollary.console import Console, SilentConsole
from corollary.core.plan import WORKING
from corollary.database.upkeep.findings import Finding, Kind, Report
from corollary.database.upkeep.retention import fence, fold_at
from corollary.database.upkeep.rightful import is_made, rightful
from corollary.database.upkeep.soundness import Follower, Past, Reader, events
from corollary.database.upkeep.verify import verify
from corollary.database.warehouse_store import PAYLOAD_SUFFIXES, WarehouseStore
from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.entries import StoredChange, StoredSnapshot
from corollary.warehouse.holdings import holdings
from corollary.warehouse.mending import Made, forget_index, forget_payload, put
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.set_difference import difference
from corollary.warehouse.warehouse import Delta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TRIES = 5
"""How often the last state is corrected again because others have committed meanwhile."""


def repair(warehouse: Warehouse, console: Console | None = None) -> Report:
    """Rebuild what can be rebuilt; report what was repaired, and what is still damaged.

    Raises:
        WarehouseError: the catalog itself cannot be read, or a file not be written.
        ConflictError: others committed first every time.
    """
    console = console or SilentConsole()
    first = verify(warehouse, console)
    found = [each for each in first.findings if each.is_mendable]
    if not found:
        return first
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
        self._inventory = holdings(warehouse.catalog)
        self._programs = Past(warehouse, self._inventory)
        self._reader = Reader(warehouse, Report(), console)

    def run(self, found: list[Finding]) -> None:
        """Rebuild what findings are about; first what the rest is rebuilt from."""
        catalog = self._warehouse.catalog
        self._rebuild(found, Kind.SNAPSHOT, is_computed=False)
        self._rebuild(found, Kind.SNAPSHOT, is_computed=True)
        self._rebuild(found, Kind.CHANGE, is_computed=True)
        for commit in {each.commit for each in found if each.kind is Kind.INDEX}:
            forget_index(catalog, commit)
        self._inventory = holdings(catalog)
        is_wrong = any(each.kind is Kind.STATE for each in found)
        for each in found:
            if each.kind is Kind.CHANGE and each.relation.endswith(PAYLOAD_SUFFIXES):
                owner = each.relation.partition(WORKING)[0]
                is_wrong |= not forget_payload(catalog, each.relation, owner, each.commit)
        if is_wrong:
            self._correct()
        latest = catalog.latest()
        assert latest is not None
        if any(each.kind is Kind.INDEX for each in found):
            self._console.progress("writing the index")
            with suppress(WarehouseError):  # the second verification reports what is left
                fold_at(self._warehouse, latest.number, self._console)
        self._republish({each.relation for each in found if each.kind is Kind.TABLE})

    # --- snapshots and changes -----------------------------------------------------------------

    def _rebuild(self, findings: list[Finding], kind: Kind, *, is_computed: bool) -> None:
        """Replace snapshots, or changes: those of relations computed from others, or the rest."""
        rebuilt: list[Made] = []
        self._inventory = holdings(self._warehouse.catalog)
        for each in findings:
            if each.kind is not kind or each.relation.endswith(PAYLOAD_SUFFIXES):
                continue
            program = self._programs.program_at(each.commit)
            if is_made(program, each.relation) is not is_computed:
                continue
            tuples = (
                self._expected(each.commit).get(each.relation)
                if is_computed
                else self._content(each.relation, each.commit)
            )
            if tuples is not None:
                rebuilt.append(Made(each.commit, each.relation, tuples))
        if rebuilt:
            is_change = kind is Kind.CHANGE
            put(self._warehouse, rebuilt if is_change else (), () if is_change else rebuilt)

    def _expected(self, commit: int) -> "dict[str, pa.Table]":
        """Return what relations that are computed from others should have held at a commit."""
        found = self._warehouse.commit_at(commit)
        assert found is not None
        program = WarehouseStore(self._warehouse).loaded_at(found).normal
        bases = {
            name: table
            for name in program.relations
            if not is_made(program, name)
            if (table := self._content(name, commit)) is not None
        }
        return rightful(program, bases, self._console) or {}

    def _content(self, name: str, commit: int) -> "pa.Table | None":
        """Return what a relation held at a commit, from everything that is undamaged."""
        known = self._inventory
        follower = Follower(is_known=not known.fold)
        changes = self._warehouse.catalog.changes(0, commit, name)
        snapshots = [each for each in known.snapshots.get(name, []) if each.commit <= commit]
        indexes = [each for each in known.indexes if each <= commit]
        for at, each in events(changes, snapshots, indexes):
            shape = self._programs.shape_at(name, at)
            if shape is None:
                continue
            try:
                if isinstance(each, StoredChange):
                    delta = self._reader.change(each, shape)
                    if follower.is_known or delta.is_full:
                        follower.apply(shape, delta)
                elif follower.is_known and follower.shape is not None:
                    continue  # nothing new
                elif isinstance(each, StoredSnapshot):
                    follower.become(shape, self._reader.snapshot(each, shape))
                else:
                    index = self._reader.index(known.indexes[at], self._programs.program_at(at))
                    if name in index.relations:
                        follower.become(shape, index.engine.read(name))
            except WarehouseError:
                if isinstance(each, StoredChange) or follower.shape is None:
                    follower.is_known = False
        return follower.table() if follower.is_known and follower.shape is not None else None

    # --- the last state ------------------------------------------------------------------------

    def _correct(self) -> None:
        """Commit the right contents of relations that are computed from others.

        The commit has no valid payload.
        """
        for left in reversed(range(MAX_TRIES)):
            try:
                self._commit_correction()
            except ConflictError:
                if not left:
                    raise
            else:
                return

    def _commit_correction(self) -> None:
        self._inventory = holdings(self._warehouse.catalog)
        self._programs = Past(self._warehouse, self._inventory)
        latest = self._warehouse.commit_at()
        assert latest is not None
        changes: dict[str, Delta] = {}
        for name, expected in self._expected(latest.number).items():
            found = self._content(name, latest.number)
            if found is None:
                changes[name] = Delta(expected, expected.slice(0, 0), is_full=True)
                continue
            added, removed = difference(found, expected)
            if added.num_rows or removed.num_rows:
                changes[name] = Delta(added, removed)
        fence(self._warehouse, latest, changes)

    def _republish(self, names: Iterable[str]) -> None:
        latest = self._warehouse.commit_at()
        assert latest is not None
        relations = self._programs.program_at(self._inventory.latest).relations
        publisher = Publisher(self._warehouse.root, self._warehouse.catalog)
        history = StoredHistory(self._warehouse)
        for name in sorted(names):
            self._console.progress(f"publishing {name}")
            with suppress(WarehouseError):
                publisher.republish(relations[name], latest.number, history)
