"""What every sink of alerts has to do, and how it says that it could not."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from corollary.core.alerts import Sink
from corollary.errors import ClaimError, CorollaryError
from corollary.warehouse.waiting import OutboxState, Waiting


class DeliveryError(CorollaryError):
    """Alerts could not be delivered; they are tried again."""


class UnreachableError(DeliveryError):
    """There is nobody to deliver to, so that other alerts need not be tried either."""


class Outgoing(Protocol):
    """An outbox: that of a catalog, or of a database in memory."""

    def sinks(self) -> list[Sink]:
        """Return the sinks for which something is due."""

    def claim(self, sink: Sink, claim: str, most: int) -> list[Waiting]:
        """Claim what is due for a sink, oldest first; so many at most."""

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Let a claim last longer; return whether it is still there, so that nobody else has it."""

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Note that alerts are delivered; what is no longer claimed is another's business."""

    def postpone(self, claim: str, waiting: Sequence[Waiting], error: str) -> None:
        """Note that an attempt at some alerts has failed."""

    def rest(self, sink: Sink, seconds: float) -> None:
        """Leave a sink alone for a while, which cannot be reached."""

    def state(self) -> OutboxState:
        """Return how the outbox is."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to deliver some alerts."""

    outbox: Outgoing
    id: str

    def demand(self, alerts: Sequence[Waiting]) -> None:
        """Make sure that nobody else delivers some alerts, for the time of a claim from now on.

        Raises:
            ClaimError: the claim has expired, and another process has taken over.
        """
        if not self.outbox.renew(self.id, [each.id for each in alerts]):
            raise ClaimError("another process delivers these alerts")


class Sender(Protocol):
    """Delivers alerts to one sink.

    Attributes:
        most: so many alerts are claimed at once.
        is_divisible: whether alerts that fail together may be tried one by one.
    """

    most: int
    is_divisible: bool

    def group(self, waiting: Waiting) -> Hashable:
        """Return what alerts have in common that are sent together."""

    def send(self, alerts: Sequence[Waiting], claim: Claim) -> None:
        """Deliver some alerts.

        Raises:
            ClaimError: another process has taken over.
            Exception: they are not delivered, and tried again later.
        """
