"""Callbacks: functions of this process, called with the alerts of a commit, at least once.

Alerts of an event for which no function is registered wait until one is, in whatever process. If
one of several functions raises, all of them are called again later.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from corollary import fault
from corollary.core.rules import Value
from corollary.database.sinks.sender import Claim, DeliveryError
from corollary.warehouse.waiting import Waiting

_log = logging.getLogger("corollary")

Callback = Callable[[list["AlertRow"]], Any]


class AlertRow(tuple[Value, ...]):  # noqa: SLOT001 - a tuple can have attributes in a dict only
    """The tuple of an event.

    Attributes:
        id: the same whenever the function is called with it.
        event: the event predicate or relation.
        message: the message of the event's first `.alert`; empty if it has none.
        commit: the commit that it is of.
    """

    id: str
    event: str
    message: str
    commit: int

    @classmethod
    def of(cls, waiting: Waiting) -> "AlertRow":
        """Return the row of an alert."""
        row = cls(waiting.alert.row)
        row.id, row.commit = waiting.id, waiting.commit
        row.event, row.message = waiting.alert.event, waiting.alert.message
        return row


class CalledBack:
    """The functions that ask for an event.

    Args:
        functions: they, in the order in which they are called.
    """

    most = 500
    is_divisible = False

    def __init__(self, functions: Sequence[Callback]) -> None:
        self._functions = tuple(functions)

    def group(self, waiting: Waiting) -> Hashable:
        """Return what alerts have in common that are sent together: the commit."""
        return waiting.commit

    def send(self, alerts: Sequence[Waiting], claim: Claim) -> None:
        """Call the functions with the alerts of a commit.

        Raises:
            DeliveryError: one of them raises.
            ClaimError: another process has taken over.
        """
        claim.demand(alerts)
        for function in self._functions:
            try:
                function([AlertRow.of(each) for each in alerts])
            except Exception as error:
                name = getattr(function, "__qualname__", repr(function))
                _log.warning("the callback %s has raised; it is called again", name, exc_info=True)
                reason = f"{type(error).__name__}: {error}"
                raise DeliveryError(f"`{name}` has raised {reason}") from error
        fault.hit("after_append")
