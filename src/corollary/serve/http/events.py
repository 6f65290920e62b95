"""Server-sent events: changes and alerts as they are committed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.responses import Response, StreamingResponse

from corollary.serve.answers import Event, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.http.responses import respond_with_error

EVENTS_TYPE = "text/event-stream"
RETRY_MILLISECONDS = 1000
"""After how long a browser comes back."""
PING = b": ping\n\n"


def format_event(event: Event) -> bytes:
    r"""Return the text of an event; one without a name tells the commit only.

    >>> format_event(Event("change", '{"commit": 42}', 42))
    b'id: 42\nevent: change\ndata: {"commit": 42}\n\n'
    """
    lines = [] if event.id is None else [f"id: {event.id}"]
    if event.event:
        lines += [f"event: {event.event}", f"data: {event.data}"]
    # JSON has no line breaks outside of texts, where they are escaped.
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


async def respond_with_events(
    events: AsyncIterator[Event], *, ping_seconds: float, is_valid: Callable[[], bool]
) -> Response:
    """Return the response of a subscription.

    Args:
        events: what is to be sent.
        ping_seconds: the time between two signs of life.
        is_valid: whether the token or the session of the client is still valid.
    """
    stream = _EventStream(events, ping_seconds, is_valid)
    try:
        await stream.begin()
    except ServiceError as error:
        await stream.close()
        return respond_with_error(error)
    headers = {"X-Accel-Buffering": "no"}  # nginx would collect events before it passes them on
    return StreamingResponse(stream.chunks(), media_type=EVENTS_TYPE, headers=headers)


class _EventStream:
    """The events of one subscription, with signs of life between them."""

    def __init__(
        self, events: AsyncIterator[Event], ping_seconds: float, is_valid: Callable[[], bool]
    ) -> None:
        self._events = events
        self._ping_seconds = ping_seconds
        self._is_valid = is_valid
        self._next = asyncio.ensure_future(anext(events))

    async def begin(self) -> None:
        """Wait for the first event, which comes at once.

        Raises:
            ServiceError: there will be none, as something is wrong with the request.
        """
        await asyncio.wait([self._next], timeout=self._ping_seconds)
        error = self._next.exception() if self._next.done() else None
        if error is not None and not isinstance(error, StopAsyncIteration):
            raise service_error(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the text of events."""
        yield b"retry: %d\n\n" % RETRY_MILLISECONDS
        try:
            while True:
                await asyncio.wait([self._next], timeout=self._ping_seconds)
                if not self._is_valid():
                    yield format_event(Event.of("bye", {"reason": "the token has ended"}))
                    return
                if not self._next.done():
                    yield PING
                    continue
                event = self._next.result()
                self._next = asyncio.ensure_future(anext(self._events))
                yield format_event(event)
                if event.event == "bye":
                    return
        except StopAsyncIteration:
            return
        except ServiceError as error:
            yield format_event(Event.of("bye", error.as_json()))
        finally:
            await self.close()

    async def close(self) -> None:
        """End the subscription."""
        self._next.cancel()
        with suppress(asyncio.CancelledError, StopAsyncIteration, ServiceError):
            await self._next
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()
