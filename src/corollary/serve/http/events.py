"""Server-sent events: changes and alerts as they are committed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse

from corollary.serve.answers import Event, ServiceError
from corollary.serve.http.responses import respond_with_error

EVENTS_TYPE = "text/event-stream"
RETRY_MILLISECONDS = 1000
"""After how long a browser comes back."""


async def respond_with_events(
    events: AsyncGenerator[Event, None], is_valid: Callable[[], bool]
) -> Response:
    """Return the response of a subscription.

    Args:
        events: what is to be sent; a sign of life from time to time, too.
        is_valid: whether the token or the session of the client is still valid.
    """
    try:
        first = await anext(events)
    except StopAsyncIteration:
        first = Event.of("bye", {})
    except ServiceError as error:
        return respond_with_error(error)
    headers = {"X-Accel-Buffering": "no"}  # nginx would collect events before it passes them on
    chunks = _chunks(first, events, is_valid)
    return StreamingResponse(chunks, media_type=EVENTS_TYPE, headers=headers)


async def _chunks(
    first: Event, events: AsyncGenerator[Event, None], is_valid: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the text of events."""
    yield b"retry: %d\n\n" % RETRY_MILLISECONDS + first.lines
    async with aclosing(events):
        try:
            async for event in events:
                if not is_valid():
                    yield Event.of("bye", {"reason": "the token has ended"}).lines
                    return
                yield event.lines
                await asyncio.sleep(0)  # others get their turn, and a client that has left is seen
        except ServiceError as error:
            yield Event.of("bye", error.as_json()).lines
