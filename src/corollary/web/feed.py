"""The last commits as the page lists them: what each has changed, and the alerts that it raised."""

from typing import Any

from corollary.serve.requests import AlertsRequest, CommitsRequest
from corollary.web.visit import Visit

COMMITS_SHOWN, RELATIONS_SHOWN, ALERTS_SHOWN = 12, 5, 3


async def recent_commits(visit: Visit) -> list[dict[str, Any]]:
    """Return the commits up to the one that is shown, newest first, ready for `feed.html`."""
    before = None if visit.at is None else visit.at + 1
    found, raised = await visit.ask_all(
        CommitsRequest(limit=COMMITS_SHOWN, before=before), AlertsRequest()
    )
    alerts: dict[int, list[dict[str, Any]]] = {}
    for each in raised["alerts"]:
        why = visit.url(tuple=each["goal"], ask=None, commit=each["commit"])
        alerts.setdefault(each["commit"], []).append({"message": each["message"], "why": why})
    commits: list[dict[str, Any]] = found["commits"]
    for each in commits:
        changes = sorted(each["changes"].items(), key=lambda change: -sum(change[1].values()))
        own = alerts.get(each["commit"], [])
        is_short = len(changes) <= RELATIONS_SHOWN + 1
        each["shown"] = changes if is_short else changes[:RELATIONS_SHOWN]
        each["more"] = len(changes) - len(each["shown"])
        each["raised"] = own[:ALERTS_SHOWN]
        each["more_alerts"] = each["alerts"] - len(each["raised"])
    return commits
