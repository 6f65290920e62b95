"""Erasure: a tuple goes out of the data, out of history, and out of every file.

| stage | what holds after it |
|---|---|
| refuse | neither the program text nor a source says the tuple again |
| delete | the tuple, and what follows from it alone, is in no relation |
| renew | snapshots and index are written from an engine that has never seen its values |
| fence | every other process begins anew from these; one with the values in memory cannot write |
| drop | no commit before is kept, since derived tuples of then may carry the values |
| clean | their files are gone, deleted rows are overwritten, published tables are new ones, and |
|  | the warehouse's own files of alerts are empty |

Every stage can be done again, so that an erasure that was cut short is finished by another.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corollary.core.plan import WORKING
from corollary.core.values import row_text, shown
from corollary.database.database import Database, state_of, warehouse_store_of
from corollary.database.facts import read_facts
from corollary.database.parts import MANUAL, TEXT, described
from corollary.database.sinks.jsonlines import empty
from corollary.database.state import payload_of
from corollary.database.upkeep.fence import fence
from corollary.database.upkeep.retention import Outline, finish, stored_at
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.errors import ConflictError, Diagnostic, InputError
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.retention import Cut, Dropped, drop, expire_intents, rewrite

if TYPE_CHECKING:
    from corollary.core.rules import Value

TRIES = 10
"""So often it is begun again because others have committed, or folded, meanwhile."""

Rows = Mapping[str, "Sequence[tuple[Value, ...]]"]


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure did.

    Attributes:
        tuples: how many of the tuples were there.
        commit: the first commit that is kept.
        dropped: the history that went.
        files: how many files went.
        still: where values of the tuples still are, since other tuples have them.
        alerts: how many alerts went with the history before anybody was told.
    """

    tuples: int
    commit: int
    dropped: int
    files: int
    still: Mapping[str, tuple[str, ...]]
    alerts: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as `erase` prints it."""
        return {
            "erased": self.tuples,
            "commit": self.commit,
            "dropped_commits": self.dropped,
            "files": self.files,
            "alerts": self.alerts,
            "still": {value: list(names) for value, names in self.still.items()},
        }


def erase(database: Database, facts: Sequence[str]) -> Erased:
    """Erase tuples, given as text such as `edge("a", "b")`.

    Raises:
        InputError: a text is no tuple; `C0961`, the program text or a source says one of them.
        ConflictError: others commit all the time.
    """
    store = warehouse_store_of(database)
    assert store is not None, "a database in memory has no history"
    database.refresh()
    rows: dict[str, list[tuple[Value, ...]]] = defaultdict(list)
    for text in facts:
        for relation, row in read_facts(state_of(database).loaded, text, "tuple"):
            rows[relation].append(row)
    _refuse_asserted(database, rows)
    undelivered = database.deliver().waiting
    with database.transaction() as transaction:
        for relation, wanted in rows.items():
            transaction.delete(relation, wanted)
    gone = (transaction.changes.get(name) for name in rows)
    found = sum(each.counts[1] for each in gone if each is not None)
    dropped = _start_anew(database, store)
    expire_intents(store.warehouse.catalog, 0.0)
    collected = finish(store.warehouse, Outline(dropped=dropped), state_of(database).console)
    _publish_anew(database, store)
    empty(store.alert_directory)
    rewrite(store.warehouse.catalog)
    still = _still(database, rows)
    return Erased(found, database.commits, dropped.commits, collected.files, still, undelivered)


def _refuse_asserted(database: Database, rows: Rows) -> None:
    """Refuse tuples that would come back."""
    with database.transaction(is_dry=True) as transaction:
        for relation, gone in rows.items():
            transaction.delete(relation, gone)
    findings = []
    for name, kept in transaction.kept.items():
        types = state_of(database).loaded.normal.relations[name].types
        for row in sorted(set(_python(kept.table())), key=repr):
            parts = _asserting(database, name, row)
            cure = "take it out there and run the program on the warehouse again, then erase it"
            if set(parts) == {TEXT}:
                cure = "take the fact out of the program and load it again, then erase it"
            text = f"The tuple {row_text(row, types)} of `{name}` is said by {described(parts)}."
            findings.append(Diagnostic("C0961", text, None, cure))
    if findings:
        raise InputError(findings)


def _asserting(database: Database, name: str, row: "tuple[Value, ...]") -> list[str]:
    """Return the parts, other than manual writes, that have a tuple."""
    normal = state_of(database).loaded.normal
    held = normal.parts.get(normal.bases.get(name, name), {})
    return [
        part
        for part, at in held.items()
        if part != MANUAL and row in set(_python(state_of(database).engine.read(at)))
    ]


def _python(table: Any) -> "list[tuple[Value, ...]]":
    from corollary.core.arrow import to_python

    return to_python(table)


def _start_anew(database: Database, store: WarehouseStore) -> Dropped:
    """Let history begin now, with files from an engine that knows only the values of now."""
    warehouse = store.warehouse
    for _ in range(TRIES):
        database.refresh()
        _renew(database)
        store.fold(state_of(database))
        folded = warehouse.catalog.index(database.commits)
        latest = warehouse.commit_at(database.commits)
        assert latest is not None
        try:
            oldest = fence(warehouse, latest, payload=latest.payload)
        except ConflictError:
            continue
        relations = stored_at(warehouse, oldest)
        dropped = drop(warehouse.catalog, Cut(oldest, latest.number, relations, is_bare=True))
        database.refresh()
        if warehouse.catalog.index(oldest) == folded:
            return dropped
    raise ConflictError("others commit all the time; the tuple is deleted, but not out of history")


def _renew(database: Database) -> None:
    """Let a database hold the same in an engine that has met no other values."""
    state = state_of(database)
    old, new, normal = state.engine, LocalEngine(), state.loaded.normal
    beside = payload_of(normal)
    valid = state.planning.payload
    new.declare({**normal.relations, **beside})
    names = [name for name, each in normal.relations.items() if each.is_stored]
    names += [name for name in beside if name.partition(WORKING)[0] in valid]
    for name in names:
        new.insert(name, old.read(name))
    new.commit()
    state.restore(new, state.loaded, state.commits, valid)


def _publish_anew(database: Database, store: WarehouseStore) -> None:
    """Put new tables into the place of those whose log and files have the past."""
    catalog = store.warehouse.catalog
    published = catalog.published()
    if published:
        publisher = Publisher(store.warehouse.root, catalog)
        for name in published:
            publisher.withdraw(name)
        database.publish()


def _still(database: Database, rows: Rows) -> dict[str, tuple[str, ...]]:
    """Return in which relations values of the erased tuples still occur."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = {value for gone in rows.values() for row in gone for value in row}
    texts = pa.array(sorted(value for value in values if isinstance(value, str)), pa.string())
    found: dict[str, list[str]] = defaultdict(list)
    for name, relation in state_of(database).loaded.normal.relations.items():
        if not relation.is_declared or not relation.is_stored or not len(texts):
            continue
        for column in state_of(database).engine.read(name).columns:
            if column.type == pa.string():
                there = pc.unique(column.filter(pc.is_in(column, value_set=texts))).to_pylist()
                for value in there:
                    if name not in found[shown(value)]:
                        found[shown(value)].append(name)
    return {value: tuple(names) for value, names in sorted(found.items())}
