"""What the page hears while it is open: an event for each commit, with counts and alerts."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response

from corollary.serve.answers import Event
from corollary.serve.http.events import respond_with_events
from corollary.serve.requests import EventsRequest
from corollary.serve.subscriptions.hub import ALL_RELATIONS
from corollary.web.visit import Page, Visit


async def show_live(visit: Visit) -> Response:
    """Send an event `commit` for each commit from now on, or after the one that is known."""
    known = visit.http.headers.get("Last-Event-ID") or visit.parameters.get("since", "")
    since = int(known) if known.isascii() and known.isdecimal() else None
    request = EventsRequest(relations=(ALL_RELATIONS,), alerts=True, since=since)
    return await respond_with_events(_commits(visit, request), visit.http.state.is_valid)


async def _commits(visit: Visit, request: EventsRequest) -> AsyncGenerator[Event, None]:
    """Yield an event for each commit; the rows of its changes are left out."""
    changes: dict[str, list[int]] = {}
    alerts: list[str] = []
    async with aclosing(visit.site.service.subscribe(visit.who, request)) as events:
        async for event in events:
            match event.event:
                case "change":
                    change = event.json
                    changes[change["relation"]] = change["counts"]
                case "alert":
                    alerts.append(event.json["message"])
                case _:
                    yield event
                    continue
            if event.id is not None:
                found = {"commit": event.id, "changes": changes, "alerts": alerts}
                yield Event.of("commit", found, event.id)
                changes, alerts = {}, []


PAGES = (Page("/ui/live", show_live),)
