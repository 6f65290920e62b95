"""Callbacks: functions of this process, called with the alerts of a commit, at least once.

Alerts of an event without a registered function stay in the outbox until some process registers
one. If one of several functions raises, all of them are called again later.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from corollary import fault
from corollary.core.logic import Value
from corollary.database.alerts.sender import Claim, DeliveryError, Sender
from corollary.warehouse.catalog.queued_alert import QueuedAlert

_log = logging.getLogger("corollary")

AlertCallback = Callable[[list["AlertRow"]], Any]


class AlertRow(tuple[Value, ...]):  # noqa: SLOT001 - a tuple can have attributes in a dict only
    """The tuple of an event.

    Attributes:
        id: the same whenever the function is called with it.
        event: the event predicate or relation.
        message: the message of the event's first `.alert`; empty if it has none.
        commit: the commit in which it happened.
    """

    id: str
    event: str
    message: str
    commit: int

    @classmethod
    def of(cls, waiting: QueuedAlert) -> "AlertRow":
        """Return the row of an alert."""
        row = cls(waiting.alert.row)
        row.id, row.commit = waiting.id, waiting.commit
        row.event, row.message = waiting.alert.event, waiting.alert.message
        return row


class CallbackSender(Sender):
    """Calls the functions that are registered for an event, in order."""

    def __init__(self, functions: Sequence[AlertCallback]) -> None:
        self._functions = tuple(functions)

    def group(self, waiting: QueuedAlert) -> Hashable:
        """Return the commit: its alerts are sent together."""
        return waiting.commit

    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Call the functions with the alerts of a commit.

        Raises:
            DeliveryError: one of them raises.
            ClaimError: another process has taken over.
        """
        claim.require(alerts)
        for function in self._functions:
            try:
                function([AlertRow.of(each) for each in alerts])
            except Exception as error:
                name = getattr(function, "__qualname__", repr(function))
                _log.warning("the callback %s has raised; it is called again", name, exc_info=True)
                reason = f"{type(error).__name__}: {error}"
                raise DeliveryError(f"`{name}` has raised {reason}") from error
        fault.hit("after_append")
