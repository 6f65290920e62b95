"""Repair: derived data that is damaged is made anew from what is sound.

| damaged | is made anew |
|---|---|
| a snapshot | from what is before it, from the index of its commit, or like a derived relation |
| a change of a derived relation | as all that the relation held at that commit, recomputed |
| a change of payload | not at all: payload is invalid until a transaction makes it anew |
| an index | from the relations, for the last commit |
| the last state of a derived relation | by recomputing it, as a commit |
| a published table | from the relation |

A damaged change of a base relation is lost: nothing else says what it said.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from corollary.console import Console, SilentConsole
from corollary.core.plan import WORKING
from corollary.core.program import NormalProgram
from corollary.database.upkeep.fence import fence
from corollary.database.upkeep.findings import Finding, Kind, Report
from corollary.database.upkeep.replay import Follower, Past, events
from corollary.database.upkeep.retention import fold_at
from corollary.database.upkeep.rightful import is_made, rightful
from corollary.database.upkeep.soundness import Reader
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

TRIES = 5
"""So often the last state is mended again because somebody has committed meanwhile."""


def repair(warehouse: Warehouse, console: Console | None = None) -> Report:
    """Make anew what can be; the report says what was wrong, and what still is.

    Raises:
        WarehouseError: the catalog itself cannot be read, or a file not be written.
        ConflictError: others commit all the time.
    """
    console = console or SilentConsole()
    first = verify(warehouse, console)
    found = [each for each in first.findings if each.is_mendable]
    if not found:
        return first
    Mender(warehouse, console).mend(found)
    second = verify(warehouse, console)
    left = {(each.kind, each.file, each.relation, each.commit) for each in second.findings}
    second.repaired = [
        each
        for each in first.findings
        if (each.kind, each.file, each.relation, each.commit) not in left
    ]
    second.seconds += first.seconds
    return second


class Mender:
    """Mends one warehouse."""

    def __init__(self, warehouse: Warehouse, console: Console) -> None:
        self._warehouse = warehouse
        self._console = console
        self._held = holdings(warehouse.catalog)
        self._past = Past(warehouse, self._held)
        self._reader = Reader(warehouse, Report(), console)

    def mend(self, findings: Iterable[Finding]) -> None:
        """Make anew what findings speak of, the lower things first."""
        found = list(findings)
        catalog = self._warehouse.catalog
        self._put(found, Kind.SNAPSHOT, made=False)
        self._put(found, Kind.SNAPSHOT, made=True)
        self._put(found, Kind.CHANGE, made=True)
        for commit in {each.commit for each in found if each.kind is Kind.INDEX}:
            forget_index(catalog, commit)
        self._held = holdings(catalog)
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
            self._console.progress("writing the index anew")
            with suppress(WarehouseError):  # what cannot be mended is found again
                fold_at(self._warehouse, latest.number, self._console)
        self._republish({each.relation for each in found if each.kind is Kind.TABLE})

    # --- snapshots and changes -----------------------------------------------------------------

    def _put(self, findings: Iterable[Finding], kind: Kind, *, made: bool) -> None:
        """Write snapshots, or changes, anew: those of relations made of others, or the rest."""
        anew: list[Made] = []
        self._held = holdings(self._warehouse.catalog)
        for each in findings:
            if each.kind is not kind or each.relation.endswith(PAYLOAD_SUFFIXES):
                continue
            program = self._past.program_at(each.commit)
            if is_made(program, each.relation) is not made:
                continue
            tuples = (
                self._right(each.commit).get(each.relation)
                if made
                else self._content(each.relation, each.commit)
            )
            if tuples is not None:
                anew.append(Made(each.commit, each.relation, tuples))
        if anew:
            is_change = kind is Kind.CHANGE
            put(self._warehouse, anew if is_change else (), () if is_change else anew)

    def _program(self, commit: int) -> NormalProgram:
        found = self._warehouse.commit_at(commit)
        assert found is not None
        return WarehouseStore(self._warehouse).loaded_at(found).normal

    def _right(self, commit: int) -> "dict[str, pa.Table]":
        """Return what relations that are made of others should have held at a commit."""
        program = self._program(commit)
        return rightful(program, self._bases(program, commit), self._console) or {}

    def _bases(self, program: NormalProgram, commit: int) -> "dict[str, pa.Table]":
        """Return what relations that are made of nothing else held at a commit."""
        bases = {
            name: self._content(name, commit)
            for name in program.relations
            if not is_made(program, name)
        }
        return {name: table for name, table in bases.items() if table is not None}

    def _content(self, name: str, commit: int) -> "pa.Table | None":
        """Return what a relation held at a commit, from everything that is sound."""
        known = self._held
        follower = Follower(is_known=not known.fold)
        changes = self._warehouse.catalog.changes(0, commit, name)
        snapshots = [each for each in known.snapshots.get(name, []) if each.commit <= commit]
        indexes = [each for each in known.indexes if each <= commit]
        for at, each in events(changes, snapshots, indexes):
            shape = self._past.shape_at(name, at)
            if shape is None:
                continue
            try:
                if isinstance(each, StoredChange):
                    delta = self._reader.change(each, shape)
                    if follower.is_known or delta.is_full:
                        follower.apply(shape, delta)
                elif follower.is_known and follower.shape is not None:
                    continue
                elif isinstance(each, StoredSnapshot):
                    follower.become(shape, self._reader.snapshot(each, shape))
                else:
                    index = self._reader.index(known.indexes[at], self._past.program_at(at))
                    if name in index.relations:
                        follower.become(shape, index.engine.read(name))
            except WarehouseError:
                if isinstance(each, StoredChange) or follower.shape is None:
                    follower.is_known = False
        return follower.table() if follower.is_known and follower.shape is not None else None

    # --- the last state ------------------------------------------------------------------------

    def _correct(self) -> None:
        """Make a commit after which relations that are made of others are right.

        It has no valid payload.
        """
        for left in reversed(range(TRIES)):
            try:
                self._commit_correction()
            except ConflictError:
                if not left:
                    raise
            else:
                return

    def _commit_correction(self) -> None:
        self._held = holdings(self._warehouse.catalog)
        self._past = Past(self._warehouse, self._held)
        latest = self._warehouse.commit_at()
        assert latest is not None
        changes: dict[str, Delta] = {}
        for name, right in self._right(latest.number).items():
            held = self._content(name, latest.number)
            if held is None:
                changes[name] = Delta(right, right.slice(0, 0), is_full=True)
                continue
            added, removed = difference(held, right)
            if added.num_rows or removed.num_rows:
                changes[name] = Delta(added, removed)
        fence(self._warehouse, latest, changes)

    def _republish(self, names: Iterable[str]) -> None:
        latest = self._warehouse.commit_at()
        assert latest is not None
        relations = self._past.program_at(self._held.latest).relations
        publisher = Publisher(self._warehouse.root, self._warehouse.catalog)
        history = StoredHistory(self._warehouse)
        for name in sorted(names):
            self._console.progress(f"publishing {name} anew")
            with suppress(WarehouseError):
                publisher.republish(relations[name], latest.number, history)
