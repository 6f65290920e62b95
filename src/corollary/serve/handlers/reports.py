"""What goes on in a warehouse: its status, alerts, quarantine, advice and documents."""

from dataclasses import asdict
from typing import Any

from corollary.core.arrow import to_python
from corollary.core.printer import print_value
from corollary.core.types import TIMESTAMP
from corollary.core.values import format_value
from corollary.database.access.principals import Principal
from corollary.database.database import state_of, warehouse_of
from corollary.database.reading.read_access import ReadAccess
from corollary.database.reading.reader import Reader
from corollary.errors import InputError
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.questions import answer_rows
from corollary.warehouse.sources.quarantine import QUARANTINE

ALERTS_MAX = 1000
"""The maximum number of alerts in an answer."""


def answer_status(context: HandlerContext, who: Principal, _: requests.StatusRequest) -> Answer:
    """Return what the warehouse holds."""
    from corollary.database.upkeep.status import status

    database = context.owned(who, "see the status of the warehouse")
    warehouse = warehouse_of(database)
    if warehouse is None:
        database.log()  # raises: a database in memory has no status
        raise AssertionError
    return Answer.of(database.commits, status(warehouse).as_json())


def answer_alerts(
    context: HandlerContext, who: Principal, request: requests.AlertsRequest
) -> Answer:
    """Return the last alerts, newest first, of events that somebody may see."""
    from corollary.warehouse.catalog.outbox import recent_alerts

    database, commit = context.view(who)
    if not 0 <= request.limit <= ALERTS_MAX:
        text = f"`limit` is not between 0 and {ALERTS_MAX:,}."
        raise InputError.of("C1606", text, None, "leave it out, or give another number")
    warehouse = warehouse_of(context.database)
    granted = database.granted if isinstance(database, Reader) else None
    found: dict[tuple[int, str, str], dict[str, Any]] = {}
    alerts = [] if warehouse is None else recent_alerts(warehouse.catalog, request.limit, granted)
    timestamps: dict[int, str] = {}
    if warehouse is not None and alerts:
        timestamps = {
            each.number: format_value(each.time, TIMESTAMP) for each in warehouse.commits()
        }
    for queued, is_delivered in alerts:
        alert = queued.alert
        key = queued.commit, alert.event, repr(alert.row)
        values = ", ".join(map(print_value, alert.row, alert.types))
        entry = found.setdefault(
            key,
            {
                "commit": queued.commit,
                "timestamp": timestamps.get(queued.commit),
                **alert.as_json(),
                "goal": f"{alert.event}({values})",
                "sinks": [],
                "delivered": True,
            },
        )
        entry["sinks"].append(str(alert.sink.kind))
        entry["delivered"] = entry["delivered"] and is_delivered
    return Answer.of(commit, {"alerts": list(found.values()), "commit": commit})


def answer_quarantine(
    context: HandlerContext, who: Principal, request: requests.QuarantineRequest
) -> Answer:
    """Return the malformed records that were set aside."""
    database, commit, first = context.page(who, request)
    relations = state_of(database).loaded.normal.relations
    shape = relations.get(QUARANTINE.name, QUARANTINE)
    if QUARANTINE.name in relations:
        from corollary.database.program.goals import arrange

        table = arrange(database.relation(QUARANTINE.name).arrow())
    else:
        from corollary.core.arrow import empty_table

        table = empty_table(shape)
    return answer_rows(request, commit, shape, table, first)


def answer_advice(
    context: HandlerContext, who: Principal, request: requests.AdviceRequest
) -> Answer:
    """Return which views are worth storing."""
    from corollary.advisor.check.measurement import calibrate_from_commits
    from corollary.advisor.consultation import consult, consult_on_log
    from corollary.advisor.render.json import advice_as_json, advised_sql
    from corollary.core.engine import within_seconds

    database = context.owned(who, "ask for advice")
    log: list[dict[str, Any]] = []
    with state_of(database).lock, within_seconds(state_of(database).limits):
        if request.log.strip():
            found, read = consult_on_log(database, request.log, request.budget_bytes, request.names)
            log = [asdict(each) for each in read.queries]
        else:
            found = consult(database)
        sql = advised_sql(found.advice, found.after)
        document = advice_as_json(found.advice, calibrate_from_commits(database), sql)
        text = found.report() if found.advice.queries else ""
    return Answer.of(database.commits, {**document, "log": log, "report": text})


def answer_documents(
    context: HandlerContext, who: Principal, request: requests.DocumentsRequest
) -> Answer:
    """Return the documents: for each view its verdict, its answers, and what it waits for."""
    context.owned(who, "see documents")
    database, commit = context.view(who, request.at)
    found: dict[str, dict[str, Any]] = {}

    def entry(document: Any) -> dict[str, Any]:
        return found.setdefault(
            document, {"document": document, "views": {}, "closed": [], "refused": []}
        )

    def view(document: Any, name: Any) -> dict[str, Any]:
        views: dict[str, Any] = entry(document)["views"]
        empty: dict[str, Any] = {"value": None, "answers": [], "waits_for": [], "since": {}}
        return views.setdefault(name, empty)  # type: ignore[no-any-return]

    for document, name, value in _rows(database, "document_value"):
        view(document, name)["value"] = value
    for document, name, answer in _rows(database, "document_answer"):
        view(document, name)["answers"].append(answer)
    for document, name, function in _rows(database, "document_waits"):
        view(document, name)["waits_for"].append(function)
    for document, name, function, since in _rows(database, "document_since"):
        view(document, name)["since"][function] = since
    for each in found.values():
        for known in each["views"].values():
            known["waits_for"] = _longest_first(known["waits_for"], known["since"])
    for document, function in _rows(database, "document_closed"):
        entry(document)["closed"].append(function)
    for document, function, number, reason in _rows(database, "document_refused"):
        refused = {"function": function, "seq": number, "reason": reason}
        entry(document)["refused"].append(refused)
    return Answer.of(commit, {"documents": list(found.values()), "commit": commit})


def _longest_first(functions: list[str], since: dict[str, str]) -> list[str]:
    """Return functions in the order in which to ask them: the longest waited for first."""
    from corollary.documents.queries.comparisons import number_of

    times = {name: number_of(since.get(name, "")) for name in functions}
    return sorted(functions, key=lambda name: (times[name] is None, times[name] or 0.0, name))


def _rows(database: ReadAccess, name: str) -> list[tuple[Any, ...]]:
    """Return the tuples of a relation, sorted; none if the program does not have it."""
    from corollary.core.arrow import sort_rows

    if name not in state_of(database).loaded.normal.relations:
        return []
    return list(to_python(sort_rows(database.relation(name).arrow())))
