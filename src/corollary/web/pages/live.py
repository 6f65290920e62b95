"""What the page hears while it is open: an event for each commit, with counts and alerts."""

from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import Response, StreamingResponse

from corollary.serve.answers import Event
from corollary.serve.requests import EventsRequest
from corollary.serve.subscriptions.event_stream import EVENT_STREAM_TYPE, encode_event
from corollary.serve.subscriptions.hub import ALL_RELATIONS
from corollary.web.page import Page
from corollary.web.visit import NOT_KEPT, Visit


async def show_live(visit: Visit) -> Response:
    """Send an event `commit` for each commit from now on, or after the one that is known."""
    known = visit.http.headers.get("Last-Event-ID") or visit.parameters.get("since", "")
    since = int(known) if known.isascii() and known.isdecimal() else None
    request = EventsRequest(relations=(ALL_RELATIONS,), alerts=True, since=since)
    return StreamingResponse(
        _commits(visit, request), media_type=EVENT_STREAM_TYPE, headers=NOT_KEPT
    )


async def _commits(visit: Visit, request: EventsRequest) -> AsyncIterator[bytes]:
    """Yield an event for each commit; the rows of its changes are left out."""
    yield b": connected\n\n"
    changes: dict[str, list[int]] = {}
    alerts: list[str] = []
    events = visit.site.service.subscribe(visit.who, request)
    try:
        async for event in events:
            match event.event:
                case "change":
                    change = event.json
                    changes[change["relation"]] = change["counts"]
                case "alert":
                    alerts.append(event.json["message"])
                case _:
                    yield encode_event(event)
                    continue
            if event.id is not None:
                found = {"commit": event.id, "changes": changes, "alerts": alerts}
                yield encode_event(Event.of("commit", found, event.id))
                changes, alerts = {}, []
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


PAGES = (Page("/ui/live", show_live),)
