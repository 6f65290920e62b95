"""Erasure: a tuple is removed from the data, from history, and from every file.

| stage | what holds after it |
|---|---|
| refuse | neither the program text nor a source asserts the tuple |
| delete | the tuple, and what follows from it alone, is in no relation |
| renew | snapshots and index are written from an engine that has never seen its values |
| fence | every other process restores from these; one with the values in memory cannot commit |
| drop | no earlier commit is kept, since derived tuples of that time may contain the values |
| clean | their files are removed, deleted rows are overwritten, published tables are new ones, |
|  | and the warehouse's own files of alerts are empty |

Every stage can be repeated, so an erasure that was interrupted is completed by another one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import to_python
from corollary.core.logic import Value
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.values import format_row, quote_text
from corollary.data_class import dataclass
from corollary.database.alerts.jsonlines import truncate_files
from corollary.database.database import Database, state_of, warehouse_store_of
from corollary.database.program.loaded_program import read_facts
from corollary.database.program.parts import MANUAL_PART, TEXT_PART, describe_parts, find_asserted
from corollary.database.transaction import Transaction
from corollary.database.upkeep.retention import force_restore, remove_files, stored_relations_at
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.errors import ConflictError, Diagnostic, InputError
from corollary.maintain.payload import payload_relations_of
from corollary.warehouse.catalog import retention
from corollary.warehouse.publishing.publisher import Publisher

MAX_TRIES = 10
"""How often history is dropped again because others have committed, or folded, meanwhile."""

TuplesByRelation = Mapping[str, Sequence[tuple[Value, ...]]]


@dataclass(frozen=True, slots=True)
class EraseResult:
    """What an erasure did.

    Attributes:
        tuples: how many of the tuples were there.
        commit: the first commit that is kept.
        dropped: how many commits were dropped.
        files: how many files were removed.
        remaining: the relations in which values of the tuples still occur, in other tuples.
        alerts: how many alerts were dropped undelivered.
    """

    tuples: int
    commit: int
    dropped: int
    files: int
    remaining: Mapping[str, tuple[str, ...]]
    alerts: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the result as `erase` prints it."""
        return {
            "erased": self.tuples,
            "commit": self.commit,
            "dropped_commits": self.dropped,
            "files": self.files,
            "alerts": self.alerts,
            "still": {value: list(names) for value, names in self.remaining.items()},
        }


def erase(database: Database, facts: Sequence[str]) -> EraseResult:
    """Erase tuples, given as text such as `edge("a", "b")`.

    Raises:
        InputError: a text is not a tuple; `C0961`, the program text or a source asserts one.
        ConflictError: others committed first every time.
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
        _delete(database, transaction, rows)
    changes = (transaction.changes.get(name) for name in rows)
    found = sum(each.counts[1] for each in changes if each is not None)
    dropped = _drop_history(database, store)
    retention.expire_intents(store.warehouse.catalog, 0.0)
    collected = remove_files(store.warehouse, state_of(database).console, dropped)
    _republish(database, store)
    if store.alert_directory is not None:
        truncate_files(store.alert_directory)
    retention.rewrite_catalog(store.warehouse.catalog)
    still = _remaining_values(database, rows)
    return EraseResult(
        found, database.commits, dropped.commits, collected.files, still, undelivered
    )


def _delete(database: Database, transaction: Transaction, rows: TuplesByRelation) -> None:
    """Delete tuples, with all their copies."""
    bags = state_of(database).loaded.normal.bags
    for relation, tuples in rows.items():
        if relation in bags:
            counted = [
                row for row in database.relation(bags[relation]).rows() if row[:-1] in tuples
            ]
            transaction.delete(bags[relation], counted)
        else:
            transaction.delete(relation, tuples)


def _refuse_asserted(database: Database, rows: TuplesByRelation) -> None:
    """Refuse tuples that would be inserted again."""
    with database.transaction(is_dry=True) as transaction:
        _delete(database, transaction, rows)
    findings = []
    state = state_of(database)
    normal = state.loaded.normal
    for name, kept in transaction.kept.items():
        types = normal.relations[name].types
        stay = sorted(set(to_python(kept.table())), key=repr)
        asserted = find_asserted(state.engine, normal, name, stay, state.limits)
        for row in stay:
            parts = [part for part, held in asserted.items() if part != MANUAL_PART and row in held]
            cure = "remove it there and run the program on the warehouse again, then erase it"
            if set(parts) == {TEXT_PART}:
                cure = "remove the fact from the program and load it again, then erase it"
            origin = describe_parts(parts)
            text = f"The tuple {format_row(row, types)} of `{name}` comes from {origin}."
            findings.append(Diagnostic("C0961", text, None, cure))
    if findings:
        raise InputError(findings)


def _drop_history(database: Database, store: WarehouseStore) -> retention.DroppedHistory:
    """Drop history, and write files from an engine that has only seen the current values."""
    warehouse = store.warehouse
    for _ in range(MAX_TRIES):
        database.refresh()
        _renew_engine(database)
        store.fold(state_of(database))
        folded = warehouse.catalog.latest_index(database.commits)
        latest = warehouse.commit_at(database.commits)
        assert latest is not None
        try:
            oldest = force_restore(warehouse, latest, payload=latest.payload)
        except ConflictError:
            continue
        relations = stored_relations_at(warehouse, oldest)
        dropped = retention.drop_history(
            warehouse.catalog,
            retention.HistoryCut(oldest, latest.number, relations, is_erasure=True),
        )
        database.refresh()
        if warehouse.catalog.latest_index(oldest) == folded:
            return dropped
    raise ConflictError("others keep committing; the tuple is deleted, but not from history")


def _renew_engine(database: Database) -> None:
    """Copy a database into a new engine, which has not seen any other values."""
    state = state_of(database)
    old, new, normal = state.engine, LocalEngine(), state.loaded.normal
    payload = payload_relations_of(normal)
    valid = state.planner.payload
    new.declare({**normal.relations, **payload})
    names = [name for name, each in normal.relations.items() if each.is_stored]
    names += [name for name in payload if name.partition(WORKING_SEPARATOR)[0] in valid]
    for name in names:
        new.insert(name, old.read(name))
    new.commit()
    state.restore(new, state.loaded, state.commits, valid, state.planner.exact)


def _republish(database: Database, store: WarehouseStore) -> None:
    """Replace published tables by new ones: their logs and files contain the past."""
    catalog = store.warehouse.catalog
    published = catalog.published_versions()
    if published:
        publisher = Publisher(store.warehouse.root, catalog)
        for name in published:
            publisher.withdraw(name)
        database.publish()


def _remaining_values(database: Database, rows: TuplesByRelation) -> dict[str, tuple[str, ...]]:
    """Return in which relations values of the erased tuples still occur."""
    values = {value for tuples in rows.values() for row in tuples for value in row}
    texts = pa.array(sorted(value for value in values if isinstance(value, str)), pa.string())
    found: dict[str, list[str]] = defaultdict(list)
    for name, relation in state_of(database).loaded.normal.relations.items():
        if not relation.is_declared or not relation.is_stored or not len(texts):
            continue
        for column in state_of(database).engine.read(name).columns:
            if column.type == pa.string():
                occurring = pc.is_in(column, value_set=texts)
                for value in pc.unique(column.filter(occurring)).to_pylist():
                    if name not in found[quote_text(value)]:
                        found[quote_text(value)].append(name)
    return {value: tuple(names) for value, names in sorted(found.items())}
