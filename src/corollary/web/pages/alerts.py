"""The alerts: what was raised, by which commit, why; outputs, and how far each of them lags."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from corollary.database.access.principals import AccessRole
from corollary.serve.requests import AlertsRequest, StatusRequest
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
    may_see = visit.who.role.includes(AccessRole.WRITE)
    status = await visit.ask(StatusRequest()) if may_see else {"published": {}, "replicas": []}
    tables = [
        {**each, "relation": name, "replica": "delta"} for name, each in status["published"].items()
    ]
    outputs = [each for each in (*tables, *status["replicas"]) if each["is_output"]]
    return await visit.render(
        "alerts.html",
        outputs=outputs,
        commits=list(commits.values()),
        total=sum(len(each["alerts"]) for each in commits.values()),
        is_cut=len(found) == ALERTS_SHOWN,
    )


def alert_goal(alert: Mapping[str, Any]) -> str:
    """Return the tuple of an alert as one writes it."""
    written: str | None = alert.get("goal")
    return written or goal(alert["event"], alert["row"], [""] * len(alert["row"]))


PAGES = (Page("/alerts", show_alerts, "Alerts", "g a"),)
