"""OpenLineage: what each commit has read and written, with exact lineage of columns.

A commit is a run of a job, which has the name of the warehouse. Its events are sent after it, as
alerts are: never at its cost, in the order of commits, at least once, with the same ids. The
catalog remembers the last commit whose events were accepted. It is configured by the variables that
OpenLineage has for it:

| variable | means |
|---|---|
| `OPENLINEAGE_URL` | `http(s)://host`, or `file:///path` for JSON lines |
| `OPENLINEAGE_ENDPOINT` | the path at the host, `api/v1/lineage` if not given |
| `OPENLINEAGE_API_KEY` | sent as a bearer token |
| `OPENLINEAGE_NAMESPACE` | of the job and of its datasets, `corollary` if not given |
| `OPENLINEAGE_DISABLED` | `true` turns it off |
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from corollary.analysis.lineage import ColumnSource, Lineage, lineage_of
from corollary.core.alerts import LINEAGE_VARIABLE, parse_webhook_url
from corollary.core.program import NormalProgram, RelationKind
from corollary.data_class import dataclass
from corollary.database.alerts import webhook
from corollary.database.alerts.sender import DeliveryError
from corollary.database.history import CommitSummary, commit_summary
from corollary.errors import CorollaryError, Diagnostic, Severity
from corollary.version import __version__
from corollary.warehouse.catalog.queued_alert import retry_delay
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

ENDPOINT = "api/v1/lineage"
DELIVERY_MAX_COMMITS = 100
"""The maximum number of commits whose events are sent at a time."""
PRODUCER = f"urn:corollary:{__version__}"
SPEC = "https://openlineage.io/spec"
EVENT_SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET_VERSIONS = {
    "ColumnLineageDatasetFacet": "1-2-0",
    "ErrorMessageRunFacet": "1-0-1",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "SchemaDatasetFacet": "1-1-1",
}
_META = "openlineage"
Event = dict[str, Any]


# --- sending -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Position:
    """The last commit whose events were accepted, and when to try again after that has failed."""

    commit: int | None = None
    attempts: int = 0
    due: float = 0.0


def send_events(warehouse: WarehouseCatalog, program: NormalProgram) -> Diagnostic | None:
    """Send the events of commits that were not sent yet; return why they could not be.

    The first time, those of the last commit are sent, with all views as its outputs.
    """
    if _is_disabled():
        return None
    catalog = warehouse.catalog
    latest = catalog.latest_commit()
    with catalog.read_transaction() as connection:
        position = _Position(**json.loads(catalog.find_meta(connection, _META) or "{}"))
    if latest is None or position.commit == latest.number or position.due > time.time():
        return None
    commit, problem = position.commit, None
    first = latest.number if commit is None else commit + 1
    first = max(first, int(catalog.meta("oldest")), 1)
    try:
        for number in range(first, min(latest.number + 1, first + DELIVERY_MAX_COMMITS)):
            summary = commit_summary(warehouse, number)
            _send(events_of(warehouse, program, summary, is_first=commit is None))
            commit = number
        position = _Position(commit)
    except CorollaryError as error:
        attempts = position.attempts + 1
        position = _Position(commit, attempts, time.time() + retry_delay(attempts))
        problem = Diagnostic(
            "C1015",
            f"Events of OpenLineage could not be sent: {error}".rstrip(".") + ".",
            None,
            "the commits are not affected; correct `OPENLINEAGE_URL`, or wait for the receiver",
            severity=Severity.WARNING,
        )
    kept = {"commit": position.commit, "attempts": position.attempts, "due": position.due}
    with catalog.write_transaction() as connection:
        catalog.replace_meta(connection, _META, json.dumps(kept))
    return problem


def send_failure(warehouse: WarehouseCatalog, error: CorollaryError) -> None:
    """Send that a run has failed, if the receiver takes it: it is not tried again."""
    if _is_disabled():
        return
    run = uuid4()
    facet = _facet("ErrorMessageRunFacet", message=str(error), programmingLanguage="Corollary")
    now = time.time()
    failed = _event(warehouse, run, "FAIL", now) | {
        "run": {"runId": str(run), "facets": {"errorMessage": facet}}
    }
    with suppress(CorollaryError):
        _send([_event(warehouse, run, "START", now), failed])


def _is_disabled() -> bool:
    return os.environ.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1")


def _send(events: Iterable[Event]) -> None:
    """Send events in their order.

    Raises:
        DeliveryError: the receiver does not answer, or refuses one.
    """
    url = os.environ[LINEAGE_VARIABLE].rstrip("/")
    parts = urlsplit(url)
    if parts.scheme == "file":
        try:
            with Path(unquote(parts.path)).open("a", encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(each)}\n" for each in events))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DeliveryError(f"the file cannot be written: {error.strerror}") from error
        return
    endpoint = os.environ.get("OPENLINEAGE_ENDPOINT", ENDPOINT).lstrip("/")
    address = parse_webhook_url(f"{url}/{endpoint}")
    if address is None:
        raise DeliveryError(f"`{LINEAGE_VARIABLE}` is not like `https://lineage.example`")
    key = os.environ.get("OPENLINEAGE_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    for each in events:
        status = webhook.post(address, json.dumps(each).encode(), headers)
        if status not in range(200, 300):
            raise DeliveryError(f"`{address.origin}` answers {status}")


# --- events --------------------------------------------------------------------------------------


def events_of(
    warehouse: WarehouseCatalog,
    program: NormalProgram,
    summary: CommitSummary,
    *,
    is_first: bool = False,
) -> Sequence[Event]:
    """Return the events of a commit: that it began, and that it is complete.

    Args:
        warehouse: where it was made.
        program: its program, in normal form.
        summary: the commit.
        is_first: whether all stored views are its outputs, not only those that it has changed.
    """
    known = {
        name: program.kind_of(name)
        for name in program.declared_relations
        if is_first or name in summary.changes
    }
    outputs = {
        name: lineage_of(program, name)
        for name, kind in known.items()
        if kind is RelationKind.DERIVED
    }
    inputs = {name for name, kind in known.items() if kind is RelationKind.BASE}
    inputs = inputs.union(*(each.relations for each in outputs.values()))
    body = {
        "inputs": [_dataset(warehouse, program, name) for name in sorted(inputs)],
        "outputs": [
            _output(warehouse, program, name, lineage, summary) for name, lineage in outputs.items()
        ],
    }
    run = uuid5(NAMESPACE_URL, f"corollary:{warehouse.catalog.meta('id')}:{summary.number}")
    at = summary.at.timestamp()
    return [_event(warehouse, run, kind, at) | body for kind in ("START", "COMPLETE")]


def _event(warehouse: WarehouseCatalog, run: UUID, kind: str, at: float) -> Event:
    return {
        "eventType": kind,
        "eventTime": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
        "run": {"runId": str(run)},
        "job": {"namespace": _namespace(), "name": _name(warehouse)},
        "inputs": [],
        "outputs": [],
        "producer": PRODUCER,
        "schemaURL": EVENT_SCHEMA,
    }


def _namespace() -> str:
    return os.environ.get("OPENLINEAGE_NAMESPACE", "corollary")


def _name(warehouse: WarehouseCatalog) -> str:
    return str(warehouse.root).rstrip("/").rpartition("/")[2]


def _facet(kind: str, **content: Any) -> dict[str, Any]:
    schema = f"{SPEC}/facets/{FACET_VERSIONS[kind]}/{kind}.json#/$defs/{kind}"
    return {"_producer": PRODUCER, "_schemaURL": schema, **content}


def _dataset(warehouse: WarehouseCatalog, program: NormalProgram, name: str) -> dict[str, Any]:
    relation = program.declared_relations[name]
    fields = [
        {"name": column, "type": str(type_)}
        for column, type_ in zip(relation.columns, relation.types, strict=True)
    ]
    return {
        "namespace": _namespace(),
        "name": f"{_name(warehouse)}.{name}",
        "facets": {"schema": _facet("SchemaDatasetFacet", fields=fields)},
    }


def _output(
    warehouse: WarehouseCatalog,
    program: NormalProgram,
    name: str,
    lineage: Lineage,
    summary: CommitSummary,
) -> dict[str, Any]:
    fields = {
        column: {"inputFields": list(_input_fields(warehouse, sources))}
        for column, sources in lineage.columns.items()
    }
    rows = list(_input_fields(warehouse, lineage.rows))
    found = _dataset(warehouse, program, name)
    found["facets"]["columnLineage"] = _facet(
        "ColumnLineageDatasetFacet", fields=fields, dataset=rows
    )
    if name in summary.changes:
        added, _ = summary.changes[name]
        facet = _facet("OutputStatisticsOutputDatasetFacet", rowCount=added)
        found["outputFacets"] = {"outputStatistics": facet}
    return found


def _input_fields(
    warehouse: WarehouseCatalog, sources: Sequence[ColumnSource]
) -> Iterator[Mapping[str, Any]]:
    """Yield each column once, with all that it does."""
    by_column: dict[tuple[str, str], list[ColumnSource]] = {}
    for each in sources:
        by_column.setdefault((each.relation, each.column), []).append(each)
    for (relation, column), found in by_column.items():
        yield {
            "namespace": _namespace(),
            "name": f"{_name(warehouse)}.{relation}",
            "field": column,
            "transformations": [
                {
                    "type": "DIRECT" if each.influence.is_direct else "INDIRECT",
                    "subtype": each.influence.name,
                    "description": "",
                    "masking": False,
                }
                for each in found
            ],
        }
