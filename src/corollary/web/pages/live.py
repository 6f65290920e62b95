"""What the page hears while it is open: an event for each commit, with counts and alerts."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse

from corollary.serve.requests import EventsRequest, RelationsRequest
from corollary.web.page import Page
from corollary.web.visit import NOT_KEPT, Visit


async def show_live(visit: Visit) -> Response:
    """Send an event `commit` for each commit from now on, or after the one that is known."""
    known = visit.http.headers.get("Last-Event-ID") or visit.parameters.get("since", "")
    since = int(known) if known.isascii() and known.isdecimal() else None
    found = await visit.ask(RelationsRequest())
    stored = tuple(each["name"] for each in found["relations"] if each["kind"] != "virtual")
    request = EventsRequest(relations=stored, alerts=True, since=since)
    return StreamingResponse(
        _commits(visit, request), media_type="text/event-stream", headers=NOT_KEPT
    )


async def _commits(visit: Visit, request: EventsRequest) -> AsyncIterator[str]:
    """Yield an event for each commit; the rows of its changes are left out."""
    yield ": connected\n\n"
    changes: dict[str, list[int]] = {}
    alerts: list[str] = []
    async with aclosing(visit.site.service.subscribe(visit.who, request)) as events:
        async for event in events:
            if event.event == "change":
                changes[event.data["relation"]] = event.data["counts"]
            elif event.event == "alert":
                alerts.append(event.data.get("message", ""))
            else:
                yield _sent(event.event, event.data, event.id)
                continue
            if event.id is not None:
                found = {"commit": event.id, "changes": changes, "alerts": alerts}
                yield _sent("commit", found, event.id)
                changes, alerts = {}, []


def _sent(name: str, data: Any, id_: int | None) -> str:
    number = "" if id_ is None else f"id: {id_}\n"
    return f"{number}event: {name}\ndata: {json.dumps(data)}\n\n"


PAGES = (Page("/ui/live", show_live),)
