"""The history of a warehouse: commits, what they have changed, and what differs between two."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from corollary.core.alerts import distinct_alerts
from corollary.core.program import Relation
from corollary.database.access.principals import Principal
from corollary.database.changes import feed_as_json, json_rows
from corollary.database.database import warehouse_of
from corollary.database.history import commit_summary, pipeline_report
from corollary.database.reading.reader import Reader
from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.warehouse.catalog.outbox import alerts_of_commit, count_alerts

if TYPE_CHECKING:
    import pyarrow as pa


def answer_commits(
    context: HandlerContext, who: Principal, request: requests.CommitsRequest
) -> Answer:
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


def answer_commit(
    context: HandlerContext, who: Principal, request: requests.CommitRequest
) -> Answer:
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
        "pipeline": [] if granted is not None else pipeline_report(warehouse, request.number),
    }
    if granted is None:
        commit = warehouse.commit_at(request.number)
        assert commit is not None
        found |= {"stats": commit.stats, **context.timings.get(request.number, {})}
    return Answer.of(latest, found)


def answer_changes(
    context: HandlerContext, who: Principal, request: requests.ChangesRequest
) -> Answer:
    """Return what commits have changed, row by row."""
    database, latest = context.view(who)
    feeds = database.feed(request.relation, since=request.since, upto=request.upto)
    return Answer.of(
        latest, {"changes": [feed_as_json(each.relation, each.arrow()) for each in feeds]}
    )


def answer_difference(
    context: HandlerContext, who: Principal, request: requests.DifferenceRequest
) -> Answer:
    """Return which tuples came and went between two commits, by relation.

    A tuple that came and went again is not among them.
    """
    _, commit = context.view(who, request.at)
    database, _ = context.view(who)
    found: dict[str, dict[str, Any]] = {}
    if request.since < commit:
        for each in database.feed(request.relation, since=request.since, upto=commit):
            change = _net_change(each.relation, each.arrow(), request.limit)
            if change["counts"] != [0, 0]:
                found[each.relation.name] = change
    return Answer.of(commit, {"since": request.since, "at": commit, "changes": found})


def _net_change(fed: Relation, table: "pa.Table", limit: int) -> dict[str, Any]:
    """Return the net change of a feed.

    Additions and removals of a tuple take turns, so their signs add up to what is left of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from corollary.core.arrow import group_rows
    from corollary.database.feed_tables import COMMIT_COLUMNS
    from corollary.warehouse.files.durable_files import DELETE, INSERT

    width = len(fed.columns) - len(COMMIT_COLUMNS)
    shape = replace(fed, columns=fed.columns[:width], types=fed.types[:width])
    kinds = table.column(width)
    signs = pc.subtract(
        pc.cast(pc.equal(kinds, INSERT), pa.int64()), pc.cast(pc.equal(kinds, DELETE), pa.int64())
    )
    if not width:  # the empty tuple came, or went
        total = pc.sum(signs).as_py() or 0
        added: list[list[Any]] = [[]] if total > 0 else []
        removed: list[list[Any]] = [[]] if total < 0 else []
        return _as_json(shape, added, removed, len(added), len(removed))
    names = [f"c{index}" for index in range(width)]
    signed = pa.table([*table.columns[:width], signs], names=[*names, "sign"])
    sums = group_rows(signed, names, [("sign", "sum")])
    rows = sums.select(names).rename_columns(list(shape.columns))
    came = rows.filter(pc.greater(sums.column("sign_sum"), 0))
    went = rows.filter(pc.less(sums.column("sign_sum"), 0))
    added, removed = (json_rows(each, shape, limit) if limit else [] for each in (came, went))
    return _as_json(shape, added, removed, came.num_rows, went.num_rows)


def _as_json(
    shape: Relation, added: list[list[Any]], removed: list[list[Any]], came: int, went: int
) -> dict[str, Any]:
    return {
        "columns": list(shape.columns),
        "added": added,
        "removed": removed,
        "counts": [came, went],
    }
