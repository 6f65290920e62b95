"""LISTEN and NOTIFY: alerts, and what clients of this server tell each other."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Any

from corollary.database.access.principals import Principal
from corollary.serve.answers import Event
from corollary.serve.postgres.messages import notification
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.statements import NotifyStatement
from corollary.serve.requests import EventsRequest
from corollary.serve.service import Service

ALERTS = "alerts"
"""The channel of all alerts; each has one of its own, with its name."""
PAYLOAD_MAX_BYTES = 8000
WAITING_MAX = 10_000
"""How many notifications may wait for a client that does not end its transaction."""


class Listener:
    """What one client listens to.

    Attributes:
        channels: their names.
        waiting: messages that were not sent yet.
        wake: called when there is one.
    """

    def __init__(self) -> None:
        self.channels: set[str] = set()
        self.waiting: list[bytes] = []
        self.wake: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    async def listen(self, service: Service, who: Principal, statement: NotifyStatement) -> None:
        """Listen to one more channel, from now on."""
        self.channels.add(statement.channel or "")
        if self._task is None:
            events = service.subscribe(who, EventsRequest(alerts=True))
            await anext(events)  # says where it begins
            self._task = asyncio.create_task(self._follow(events), name="alerts")

    async def unlisten(self, channel: str | None = None) -> None:
        """Listen to a channel no more; to none if it is None."""
        self.channels -= self.channels if channel is None else {channel}
        if not self.channels and self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._task
            self._task = None

    def push(self, channel: str, payload: str, process: int) -> None:
        """Tell the client something, if it listens to the channel."""
        if channel in self.channels and len(self.waiting) < WAITING_MAX:
            self.waiting.append(notification(process, channel, payload))
            self.wake()

    async def _follow(self, events: AsyncGenerator[Event, None]) -> None:
        async with aclosing(events):
            async for event in events:
                if event.event == "alert":
                    alert = event.json
                    for channel in (ALERTS, alert["event"]):
                        self.push(channel, alert_payload(alert), 0)


def alert_payload(alert: dict[str, Any]) -> str:
    """Return an alert as JSON; a long one without its row, and with a part of its message.

    >>> alert_payload({"commit": 4, "event": "lost", "row": ["a"], "message": "no a"})
    '{"commit": 4, "event": "lost", "row": ["a"], "message": "no a"}'
    """
    text = json.dumps(alert, ensure_ascii=False)
    if len(text.encode()) < PAYLOAD_MAX_BYTES:
        return text
    size = PAYLOAD_MAX_BYTES // 8  # a character may be six bytes as JSON
    message = str(alert["message"])[:size]
    return json.dumps({**alert, "row": None, "message": message}, ensure_ascii=False)


def tell(statements: list[NotifyStatement], listeners: Iterable[Listener], process: int) -> None:
    """Tell all who listen what a client says, once."""
    for each in statements:
        for listener in listeners:
            listener.push(each.channel or "", each.payload, process)
    statements.clear()


def check_notification(statement: NotifyStatement) -> None:
    """Refuse what clients may not tell.

    Raises:
        PgError: it is too long, or only alerts come there.
    """
    if statement.channel == ALERTS:
        raise PgError("42501", f"Only alerts come on the channel `{ALERTS}`.", "choose another one")
    if len(statement.payload.encode()) >= PAYLOAD_MAX_BYTES:
        raise PgError("22023", f"A payload has less than {PAYLOAD_MAX_BYTES:,} bytes.")
