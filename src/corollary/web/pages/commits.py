"""The commits: all that are kept, and each with its changes, its plan and its times."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from corollary.serve.answers import ServiceError
from corollary.serve.requests import CommitRequest, CommitsRequest, GraphRequest, RelationsRequest
from corollary.web.pages.alerts import alert_goal
from corollary.web.pictures.commit import commit_picture, duration, timed_views
from corollary.web.visit import Page, Visit
from corollary.web.wording import goal

COMMITS_LISTED, ROWS_SHOWN, ROWS_FETCHED = 50, 12, 200
PHASES = ("read", "plan", "evaluate", "store", "publish", "other")


async def show_commits(visit: Visit) -> Response:
    """List the commits, newest first."""
    asked = visit.parameters.get("before", "")
    before = int(asked) if asked.isascii() and asked.isdecimal() else None
    found = (await visit.ask(CommitsRequest(limit=COMMITS_LISTED + 1, before=before)))["commits"]
    listed = found[:COMMITS_LISTED]
    most = max((_rows_changed(each) for each in listed), default=0) or 1
    for each in listed:
        each["rows"] = _rows_changed(each)
        each["share"] = max(1, round(100 * each["rows"] / most)) if each["rows"] else 0
    more = listed[-1]["commit"] if len(found) > COMMITS_LISTED else None
    return await visit.render("commits.html", commits=listed, more=more, before=before)


def _rows_changed(commit: Mapping[str, Any]) -> int:
    return sum(each["added"] + each["removed"] for each in commit["changes"].values())


async def show_commit(visit: Visit) -> Response:
    """Show one commit: what it changed, how it was computed, and where its time went."""
    number = int(visit.http.path_params["number"])
    commit = await visit.ask(CommitRequest(number=number, max_rows=ROWS_FETCHED))
    graph = await _graph(visit, number)
    relations = (await visit.ask(RelationsRequest()))["relations"]
    types = {each["name"]: [column["type"] for column in each["columns"]] for each in relations}
    floors = {each["name"]: (each["floor"], each["group"]) for each in graph.get("nodes", [])}
    views = timed_views(commit.get("stats", {}), commit["changes"], floors)
    return await visit.render(
        "commit.html",
        commit=commit,
        number=number,
        views=views,
        picture=commit_picture(views) if views else "",
        seconds=sum(each.seconds for each in views if each.name == each.together[0]),
        phases=_phases(commit),
        alerts=[
            each | {"url": visit.url(tuple=alert_goal(each), ask="why", at=number)}
            for each in commit.get("alerts", [])
        ],
        changed=[_changed(visit, number, *each, types) for each in _rows(commit, floors)],
        duration=duration,
    )


async def _graph(visit: Visit, number: int) -> dict[str, Any]:
    """Return the graph of then; none if the state is not kept any more."""
    try:
        return await visit.ask(GraphRequest(at=number))
    except ServiceError:
        return {}


def _rows(
    commit: Mapping[str, Any], floors: Mapping[str, tuple[int, int]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the changes by relation, the lowest floor first: in the order in which they came."""
    return sorted(commit["rows"].items(), key=lambda each: (floors.get(each[0], (0, 0)), each[0]))


def _changed(
    visit: Visit, number: int, name: str, change: Mapping[str, Any], types: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Return what is shown of the changes of a relation."""
    rows = []
    for key, sign, asked in (("added", "+", "why-added"), ("removed", "-", "why-removed")):
        for row in change[key]:
            text = goal(name, row, types.get(name, [""] * len(row)))
            url = visit.url(tuple=text, ask=asked, commit=number)
            rows.append({"sign": sign, "goal": text, "url": url})
    counts = change.get("counts") or {key: len(change[key]) for key in ("added", "removed")}
    added, removed = counts["added"], counts["removed"]
    return {
        "name": name,
        "added": added,
        "removed": removed,
        "rows": rows[:ROWS_SHOWN],
        "more": added + removed - min(len(rows), ROWS_SHOWN),
        "url": visit.relation_url(name, at=number, since=number - 1),
    }


def _phases(commit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the phases of the work with their share of the time."""
    found = commit.get("phases") or {}
    total = sum(found.values()) or 1.0
    return [
        {"name": name, "seconds": found[name], "share": 100 * found[name] / total}
        for name in PHASES
        if found.get(name)
    ]


PAGES = (
    Page("/commits", show_commits, "Commits", "g l"),
    Page("/commits/{number:int}", show_commit, belongs_to="Commits"),
)
