"""The history of a warehouse: commits, and what they have changed."""

from corollary.database.access.reader import Reader
from corollary.database.changes import feed_as_json
from corollary.serve.answers import Answer
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.principals import Principal
from corollary.serve.requests import ChangesRequest, CommitRequest, CommitsRequest


def answer_commits(context: HandlerContext, who: Principal, request: CommitsRequest) -> Answer:
    """List the commits that are kept, newest first."""
    database, commit = context.view(who)
    skipped = 0 if request.before is None else max(0, commit - request.before + 1)
    limit = None if request.limit is None else request.limit + skipped
    commits = database.log(limit)
    if request.before is not None:
        commits = [each for each in commits if each.number < request.before]
    return Answer.of(commit, {"commits": [each.as_json() for each in commits]})


def answer_commit(context: HandlerContext, who: Principal, request: CommitRequest) -> Answer:
    """Return one commit, and the tuples that it has added and removed."""
    from corollary.database.database import warehouse_of
    from corollary.database.history import commit_summary

    database, latest = context.view(who)
    changes = database.changes(request.number)
    warehouse = warehouse_of(context.database)
    assert warehouse is not None  # a database in memory has no history
    granted = database.granted if isinstance(database, Reader) else None
    summary = commit_summary(warehouse, request.number, granted)
    rows = {name: each.as_json(request.max_rows) for name, each in changes.items()}
    return Answer.of(latest, {**summary.as_json(), "rows": rows})


def answer_changes(context: HandlerContext, who: Principal, request: ChangesRequest) -> Answer:
    """Return what commits have changed, row by row."""
    database, latest = context.view(who)
    feeds = database.feed(request.relation, since=request.since, upto=request.upto)
    return Answer.of(latest, {"changes": [feed_as_json(*each) for each in feeds]})
