"""The base of all senders of alerts, and the errors of a delivery."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

from corollary.data_class import dataclass
from corollary.database.store import Outbox
from corollary.errors import ClaimError, CorollaryError
from corollary.warehouse.catalog.queued_alert import QueuedAlert


class DeliveryError(CorollaryError):
    """Alerts could not be delivered; they are tried again."""


class UnreachableError(DeliveryError):
    """The sink cannot be reached, so other alerts need not be tried either."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to deliver some alerts."""

    outbox: Outbox
    id: str

    def require(self, alerts: Sequence[QueuedAlert]) -> None:
        """Extend the claim on some alerts, so that nobody else delivers them meanwhile.

        Raises:
            ClaimError: the claim has expired, and another process has taken over.
        """
        if not self.outbox.renew(self.id, [each.id for each in alerts]):
            raise ClaimError("another process delivers these alerts")


class Sender(ABC):
    """Delivers alerts to one sink.

    Attributes:
        max_alerts: the maximum number of alerts in one claim.
        is_divisible: whether alerts that fail together may be tried one by one.
    """

    max_alerts = 500
    is_divisible = False

    def group(self, waiting: QueuedAlert) -> Hashable:  # noqa: ARG002 - all alerts are sent together
        """Return a key: alerts that follow each other with the same key are sent together."""
        return None

    @abstractmethod
    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Deliver some alerts.

        Raises:
            ClaimError: another process has taken over.
            Exception: they are not delivered, and tried again later.
        """
