"""Events as text: the format of server-sent events (`text/event-stream`)."""

from corollary.serve.answers import Event

EVENT_STREAM_TYPE = "text/event-stream"


def encode_event(event: Event) -> bytes:
    r"""Return an event as a client reads it.

    An event without a name only moves the resume token, and keeps the connection alive.

    >>> encode_event(Event("change", '{"commit": 42}', 42))
    b'id: 42\nevent: change\ndata: {"commit": 42}\n\n'
    >>> encode_event(Event("", "", 42))
    b'id: 42\n\n'
    """
    lines = [] if event.id is None else [f"id: {event.id}"]
    if event.event:
        lines += [f"event: {event.event}", f"data: {event.data}"]
    return "\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass")
