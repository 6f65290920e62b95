"""Who delivers alerts to which sink, in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from corollary.core.alerts import Sink, SinkKind
from corollary.core.web_address import is_permitted, web_address
from corollary.database.outlets import Outlets
from corollary.database.sinks.callback import CalledBack
from corollary.database.sinks.jsonlines import JsonLines
from corollary.database.sinks.relation import IntoRelation
from corollary.database.sinks.sender import Sender
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.database.transaction import Transaction
from corollary.warehouse.entries import Cause


@dataclass(slots=True)
class Senders:
    """Makes the sender for a sink.

    Attributes:
        state: has the callbacks, and the relations that alerts become tuples of.
        store: says where the files of alerts are.
        outlets: what the operator permits.
        begin: begins the transaction that delivers some alerts into a relation.
    """

    state: DatabaseState
    store: Store
    outlets: Outlets
    begin: Callable[[Cause], Transaction]

    def is_permitted(self, sink: Sink) -> bool:
        """Whether the operator permits a sink: webhooks have to be."""
        if sink.kind is not SinkKind.WEBHOOK:
            return True
        address = web_address(sink.place)
        return address is not None and is_permitted(address, self.outlets.webhooks)

    def sender(self, sink: Sink) -> Sender | None:
        """Return what delivers to a permitted sink; None if this process cannot."""
        match sink.kind:
            case SinkKind.CONSOLE:
                return None  # whoever commits has printed it
            case SinkKind.JSONLINES:
                return JsonLines(self._directory, sink.place)
            case SinkKind.RELATION:
                return IntoRelation(self.state, self.begin, sink.place)
            case SinkKind.WEBHOOK:
                from corollary.database.sinks.webhook import Webhook  # what HTTP needs is not small

                address = web_address(sink.place)
                return None if address is None else Webhook(address)
            case SinkKind.CALLBACK:
                functions = self.state.callbacks.get(sink.place)
                return CalledBack(functions) if functions else None
            case _:
                assert_never(sink.kind)

    @property
    def _directory(self) -> Path:
        """The directory of the files of alerts."""
        directory = self.outlets.directory
        return self.store.alert_directory if directory is None else directory
