"""The history of a warehouse: commits, and what they have changed."""

from corollary.core.alerts import distinct_alerts
from corollary.database.access.principals import Principal
from corollary.database.changes import feed_as_json
from corollary.database.database import warehouse_of
from corollary.database.history import commit_summary
from corollary.database.reading.reader import Reader
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import ChangesRequest, CommitRequest, CommitsRequest
from corollary.warehouse.catalog.outbox import alerts_of_commit, count_alerts


def answer_commits(context: HandlerContext, who: Principal, request: CommitsRequest) -> Answer:
    """List the commits that are kept, newest first."""
    database, commit = context.view(who)
    skipped = 0 if request.before is None else max(0, commit - request.before + 1)
    limit = None if request.limit is None else request.limit + skipped
    commits = database.log(limit)
    if request.before is not None:
        commits = [each for each in commits if each.number < request.before]
    granted = database.granted if isinstance(database, Reader) else None
    alerts: dict[int, int] = {}
    warehouse = warehouse_of(context.database)
    if warehouse is not None and commits:
        alerts = count_alerts(warehouse.catalog, commits[-1].number - 1, granted)
    documents = [{**each.as_json(), "alerts": alerts.get(each.number, 0)} for each in commits]
    return Answer.of(commit, {"commits": documents})


def answer_commit(context: HandlerContext, who: Principal, request: CommitRequest) -> Answer:
    """Return one commit: the tuples that it has added and removed, its alerts, how it was made."""
    database, latest = context.view(who)
    changes = database.changes(request.number)
    warehouse = warehouse_of(context.database)
    assert warehouse is not None  # a database in memory has no history
    granted = database.granted if isinstance(database, Reader) else None
    summary = commit_summary(warehouse, request.number, granted)
    rows = {name: each.as_json(request.max_rows) for name, each in changes.items()}
    alerts = distinct_alerts(
        each
        for each in alerts_of_commit(warehouse.catalog, request.number)
        if granted is None or each.event in granted
    )
    found = {
        **summary.as_json(),
        "rows": rows,
        "alerts": [each.as_json() for each in alerts[: request.max_rows]],
    }
    if granted is None:
        commit = warehouse.commit_at(request.number)
        assert commit is not None
        found |= {"stats": commit.stats, **context.timings.get(request.number, {})}
    return Answer.of(latest, found)


def answer_changes(context: HandlerContext, who: Principal, request: ChangesRequest) -> Answer:
    """Return what commits have changed, row by row."""
    database, latest = context.view(who)
    feeds = database.feed(request.relation, since=request.since, upto=request.upto)
    return Answer.of(latest, {"changes": [feed_as_json(*each) for each in feeds]})
