"""A relation as a sink: alerts become tuples of it, exactly once.

The transaction that inserts them also marks them as delivered, in the same commit. It may cause
alerts of its own, which are queued in the outbox; the length of such chains is limited.
"""

import json
from collections.abc import Callable, Sequence

from corollary import fault
from corollary.core.logic import Value
from corollary.core.program import Relation
from corollary.database.alerts.sender import Claim, DeliveryError, Sender
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts
from corollary.warehouse.catalog.queued_alert import QueuedAlert


class RelationSender(Sender):
    """Inserts alerts into a base relation, in a transaction that `begin` begins."""

    is_divisible = True

    def __init__(
        self, state: DatabaseState, begin: Callable[[DeliveredAlerts], Transaction], name: str
    ) -> None:
        self._state = state
        self._begin = begin
        self._name = name

    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Insert alerts, and mark them as delivered.

        Raises:
            DeliveryError: they do not fit the relation, or the transaction fails.
            ClaimError: another process has taken over.
        """
        transaction = self._begin(DeliveredAlerts(claim.id, tuple(each.id for each in alerts)))
        try:
            declared = self._state.writable_relation(self._name)
            with transaction:
                transaction.insert(self._name, [_row(each, declared) for each in alerts])
        except InputError as error:
            raise DeliveryError(error.diagnostics[0].message) from error
        fault.hit("after_append")


def _row(waiting: QueuedAlert, relation: Relation) -> tuple[Value, ...]:
    """Return an alert as a tuple: columns are those of the event, or properties of the alert."""
    alert = waiting.alert
    values: dict[str, Value] = {
        "id": waiting.id,
        "event": alert.event,
        "row": json.dumps(alert.as_json()["row"], ensure_ascii=False),
        "message": alert.message,
        "commit": waiting.commit,
        **dict(zip(alert.columns, alert.row, strict=True)),
    }
    missing = [name for name in relation.columns if name not in values]
    if missing:
        raise DeliveryError(f"its column `{missing[0]}` is not one of the alert")
    return tuple(values[name] for name in relation.columns)
