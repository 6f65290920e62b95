"""Events that a client has pushed to a server: one JSON object on each line."""

from corollary.warehouse.sources.events.messages import NO_MESSAGES, Delivery, message_table
from corollary.warehouse.sources.source import Position

PUSHED = "pushed"
"""What messages call the lines of a request."""


class PushedEvents:
    """Brings the lines of one request; without one, nothing.

    Args:
        lines: the body of the request.
    """

    def __init__(self, lines: bytes | None = None) -> None:
        self._lines = lines

    def has_more(self, before: Position | None) -> bool:
        """Return whether there is a request; a first run notes that there was none."""
        return before is None or self._lines is not None

    def read(self, before: Position | None, most: int) -> Delivery:
        """Return the lines; those of one request are taken together, however many they are."""
        del most
        first = (before or {}).get("lines", 0)
        lines = [] if self._lines is None else self._lines.splitlines()
        numbered = [each for each in enumerate(lines, first + 1) if each[1].strip()]
        values = [line for _, line in numbered]
        if not values:
            return Delivery(NO_MESSAGES, {"lines": first})
        messages = message_table([None] * len(values), values, PUSHED, [at for at, _ in numbered])
        return Delivery(messages, {"lines": first + len(lines)})
