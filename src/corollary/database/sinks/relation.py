"""A relation as a sink: alerts become tuples of it, exactly once.

The transaction that inserts them marks them as delivered: both are one commit, or neither is. It
may set off alerts of its own, which wait in the outbox for their turn; the chain is bounded.
"""

import json
from collections.abc import Callable, Hashable, Sequence

from corollary import fault
from corollary.core.program import Relation
from corollary.core.rules import Value
from corollary.database.sinks.sender import Claim, DeliveryError
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.warehouse.entries import Cause
from corollary.warehouse.waiting import Waiting


class IntoRelation:
    """A base relation that alerts are inserted into.

    Args:
        state: has the relation.
        begin: begins the transaction that delivers some alerts.
        name: of the relation.
    """

    most = 500
    is_divisible = True

    def __init__(
        self, state: DatabaseState, begin: Callable[[Cause], Transaction], name: str
    ) -> None:
        self._state = state
        self._begin = begin
        self._name = name

    def group(self, waiting: Waiting) -> Hashable:
        """Return what alerts have in common that are sent together: all of them."""

    def send(self, alerts: Sequence[Waiting], claim: Claim) -> None:
        """Insert alerts, and mark them as delivered.

        Raises:
            DeliveryError: they do not fit the relation, or the transaction fails.
            ClaimError: another process has taken over.
        """
        transaction = self._begin(Cause(claim.id, tuple(each.id for each in alerts)))
        try:
            declared = self._state.writable(self._name)
            with transaction:
                transaction.insert(self._name, [_row(each, declared) for each in alerts])
        except InputError as error:
            raise DeliveryError(error.diagnostics[0].message) from error
        fault.hit("after_append")


def _row(waiting: Waiting, relation: Relation) -> tuple[Value, ...]:
    """Return the tuple that an alert makes: columns of the event by name, then facts about it."""
    alert = waiting.alert
    told: dict[str, Value] = {
        "id": waiting.id,
        "event": alert.event,
        "row": json.dumps(alert.as_json()["row"], ensure_ascii=False),
        "message": alert.message,
        "commit": waiting.commit,
        **dict(zip(alert.columns, alert.row, strict=True)),
    }
    missing = [name for name in relation.columns if name not in told]
    if missing:
        raise DeliveryError(f"its column `{missing[0]}` is none of the alert")
    return tuple(told[name] for name in relation.columns)
