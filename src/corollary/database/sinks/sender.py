"""What every sink of alerts has to do, and how it says that it could not."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from corollary.database.store import Outbox
from corollary.errors import ClaimError, CorollaryError
from corollary.warehouse.waiting import Waiting


class DeliveryError(CorollaryError):
    """Alerts could not be delivered; they are tried again."""


class UnreachableError(DeliveryError):
    """There is nobody to deliver to, so that other alerts need not be tried either."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to deliver some alerts."""

    outbox: Outbox
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
