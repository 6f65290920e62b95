"""The status of a warehouse, from its catalog and the sizes of its files alone."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from typing import Any

from corollary.analysis.replicas import ReplicaSpec, replica_specs
from corollary.core.program import NormalProgram, RelationKind
from corollary.core.table_options import given_options, parse_duration
from corollary.data_class import dataclass
from corollary.database.program.names import is_followed, published_relations
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse.catalog import inventory
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.catalog.outbox import outbox_state
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.catalog.queued_alert import OutboxState
from corollary.warehouse.catalog.replica_records import ReplicaRecord, replica_records
from corollary.warehouse.catalog.retention import Intent, list_intents
from corollary.warehouse.files.places import Place, files_below
from corollary.warehouse.orphan_files import list_data_files
from corollary.warehouse.warehouse_catalog import TABLES_DIRECTORY, WarehouseCatalog


@dataclass(frozen=True, slots=True)
class RelationState:
    """A declared relation; `tuples` is None where it is virtual.

    Attributes:
        copies: whether it has copies of rows, which `tuples` does not count.
    """

    name: str
    kind: RelationKind
    tuples: int | None
    copies: bool = False


@dataclass(frozen=True, slots=True)
class TableState:
    """A published table.

    Attributes:
        commit: the commit that it shows; 0 if it was never published.
        lag: how many commits have changed the relation since.
        is_output: whether it is still published; if not, it is not updated.
        options: its options, as the program has them.
        seconds: how old the first of these commits is, if there is a target for that.
    """

    relation: str
    commit: int
    lag: int
    is_output: bool
    options: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether a commit is missing for longer than the target of the table says."""
        target = parse_duration(self.options.get("target_lag", ""))
        return target is not None and self.seconds is not None and self.seconds > target


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica of a relation.

    Attributes:
        commit: the commit that it shows; 0 if it was never filled.
        lag: how many commits have changed the relation since.
        is_output: whether the program still has it; if not, it is not updated.
        seconds: how old the first of these commits is.
        error: why it could not be brought forward the last time, if it lags.
    """

    relation: str
    replica: str
    commit: int
    lag: int
    is_output: bool
    seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class IndexState:
    """The last index.

    Attributes:
        commit: its commit; 0 if there is no index.
        commits: how many commits were made since.
        tuples: how many tuples were inserted and deleted since; opening has to apply them.
    """

    commit: int
    commits: int
    tuples: int


@dataclass(frozen=True, slots=True)
class Status:
    """What a warehouse holds.

    Attributes:
        oldest: the first commit that is kept.
        latest: the last one; None if there is none yet.
        bytes: how much is on the disk, by kind.
    """

    id: str
    format: int
    oldest: int
    latest: Commit | None
    relations: tuple[RelationState, ...]
    index: IndexState
    bytes: dict[str, int]
    tables: tuple[TableState, ...]
    replicas: tuple[ReplicaState, ...]
    sources: tuple[inventory.SourceState, ...]
    outbox: OutboxState
    intents: tuple[Intent, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the status as `status` prints it."""
        latest = self.latest
        return {
            "id": self.id,
            "format": self.format,
            "commits": {
                "first": self.oldest if latest else None,
                "last": latest.number if latest else None,
                "at": format_time(latest.created) if latest else None,
            },
            "relations": _by_key("name", self.relations),
            "index": {
                "commit": self.index.commit,
                "commits_since": self.index.commits,
                "tuples_since": self.index.tuples,
            },
            "bytes": self.bytes,
            "published": _by_key("relation", self.tables),
            "replicas": [asdict(each) for each in self.replicas],
            "sources": {
                name: {**each, "read": format_time(each["read"])}
                for name, each in _by_key("name", self.sources).items()
            },
            "outbox": {
                "waiting": self.outbox.queued,
                "oldest": None if self.outbox.oldest is None else format_time(self.outbox.oldest),
                "error": self.outbox.error,
            },
            "intents": [
                {"writer": each.writer, "seconds": round(time.time() - each.heartbeat, 1)}
                for each in self.intents
            ],
        }


def _by_key(key: str, entries: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return dataclasses as dictionaries, by the value of a field."""
    found = [asdict(each) for each in entries]
    for each in found:
        for key_of_some in ("copies", "options", "seconds"):  # said where there are some
            if key_of_some in each and not each[key_of_some]:
                del each[key_of_some]
        if "events" in each and each["events"] is None:  # of a stream, both are said
            del each["events"], each["lag"]
    return {each.pop(key): each for each in found}


def status(warehouse: WarehouseCatalog, now: float | None = None) -> Status:
    """Return the status of a warehouse, now or at another time."""
    catalog = warehouse.catalog
    latest = catalog.latest_commit()
    stored = None if latest is None else catalog.program(latest.program)
    outputs: dict[str, Mapping[str, str]] = {}
    specs: list[ReplicaSpec] = []
    program = NormalProgram({}, (), (), {})
    if stored is not None:
        program = program_of_layout(stored.layout)
        parsed = parse(SourceFile("program", stored.text))
        directives, specs = parsed.directives, replica_specs(parsed)
        given = given_options(directives)
        outputs = {e.name: given[e.name] for e in published_relations(program, directives)}
    return Status(
        catalog.meta("id"),
        int(catalog.meta("format")),
        max(1, int(catalog.meta("oldest"))),
        latest,
        tuple(_relations(program, inventory.relation_sizes(catalog))),
        _index(warehouse, latest),
        _bytes(warehouse),
        tuple(_tables(warehouse, outputs, program.bags, time.time() if now is None else now)),
        tuple(_replicas(warehouse, specs, program, time.time() if now is None else now)),
        tuple(inventory.source_states(catalog)),
        outbox_state(catalog),
        tuple(list_intents(catalog)),
    )


def format_time(seconds: float) -> str:
    """Return a time as text.

    >>> format_time(1763193600.0)
    '2025-11-15T08:00:00Z'
    """
    return datetime.fromtimestamp(round(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _relations(program: NormalProgram, counts: dict[str, int]) -> Iterable[RelationState]:
    for name in program.declared_relations:
        holder = program.holder_of(name)
        tuples = counts.get(holder.name, 0) if holder.is_stored else None
        yield RelationState(name, program.kind_of(name), tuples, name in program.bags)


def _index(warehouse: WarehouseCatalog, latest: Commit | None) -> IndexState:
    number = 0 if latest is None else latest.number
    found = warehouse.catalog.latest_index(number)
    commit = 0 if found is None else found[0]
    return IndexState(
        commit, number - commit, inventory.count_tuples_changed_since(warehouse.catalog, commit)
    )


def _bytes(warehouse: WarehouseCatalog) -> dict[str, int]:
    found = list_data_files(warehouse.root, warehouse.catalog)
    kinds = dict.fromkeys(("changes", "snapshots", "index", "in flight", "loose"), 0)
    loose = found.orphans
    for path, size in found.sizes.items():
        kind = found.referenced.get(path)
        if kind is None:
            kind = "loose" if path in loose else "in flight"
        kinds[kind] += size
    return {
        "catalog": warehouse.catalog_bytes,
        **kinds,
        "tables": _own_bytes(warehouse.root / TABLES_DIRECTORY),
    }


def _own_bytes(place: Place) -> int:
    """Return the bytes of files that are nowhere else, too: snapshots count as such."""
    return sum(each.size for each in files_below(place) if not each.has_other_names)


def _tables(
    warehouse: WarehouseCatalog,
    outputs: Mapping[str, Mapping[str, str]],
    bags: Mapping[str, str],
    now: float,
) -> Iterable[TableState]:
    noted = warehouse.catalog.published_versions()
    for name in dict.fromkeys((*outputs, *noted)):
        commit = noted.get(name, (0, 0))[0]
        changed = bags.get(name, name)
        lag = warehouse.catalog.count_changing_commits(changed, commit)
        options = outputs.get(name, {})
        has_target = lag and "target_lag" in options
        since = warehouse.catalog.next_change(changed, commit) if has_target else None
        seconds = None if since is None else round(now - since, 1)
        yield TableState(name, commit, lag, name in outputs, options, seconds)


def _replicas(
    warehouse: WarehouseCatalog,
    specs: Iterable[ReplicaSpec],
    program: NormalProgram,
    now: float,
) -> Iterable[ReplicaState]:
    catalog = warehouse.catalog
    known = {(each.relation, each.replica): each for each in replica_records(catalog)}
    declared = {(e.relation, str(e)) for e in specs if is_followed(program, e.relation)}
    for relation, name in sorted({*declared, *known}):
        changed = program.bags.get(relation, relation)
        each = known.get((relation, name)) or ReplicaRecord(relation, name, changed)
        lag = catalog.count_changing_commits(changed, each.commit_number)
        since = catalog.next_change(changed, each.commit_number) if lag else None
        seconds = None if since is None else round(now - since, 1)
        error = each.error if lag else None
        is_output = (relation, name) in declared
        yield ReplicaState(relation, name, each.commit_number, lag, is_output, seconds, error)
