"""The alerts: what was raised, by which commit, whether it is delivered, and why."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from corollary.serve.requests import AlertsRequest
from corollary.web.visit import Page, Visit
from corollary.web.wording import goal

ALERTS_SHOWN = 200


async def show_alerts(visit: Visit) -> Response:
    """List the alerts, newest first, by commit."""
    found = (await visit.ask(AlertsRequest(limit=ALERTS_SHOWN)))["alerts"]
    last = visit.at
    commits: dict[int, dict[str, Any]] = {}
    for each in found:
        if last is not None and each["commit"] > last:
            continue
        entry = {"commit": each["commit"], "timestamp": each.get("timestamp"), "alerts": []}
        alert = each | {"url": visit.url(tuple=alert_goal(each), ask="why", at=each["commit"])}
        commits.setdefault(each["commit"], entry)["alerts"].append(alert)
    return await visit.render(
        "alerts.html",
        commits=list(commits.values()),
        total=sum(len(each["alerts"]) for each in commits.values()),
        is_cut=len(found) == ALERTS_SHOWN,
    )


def alert_goal(alert: Mapping[str, Any]) -> str:
    """Return the tuple of an alert as one writes it."""
    written: str | None = alert.get("goal")
    return written or goal(alert["event"], alert["row"], [""] * len(alert["row"]))


PAGES = (Page("/alerts", show_alerts, "Alerts", "g a"),)
