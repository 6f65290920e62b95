"""Webhooks: an alert is posted to a URL as JSON, at least once, with an id that stays the same.

The receiver finds the id in the body and in the header `Idempotency-Key`, so that it can ignore
what it has seen. Any status from 200 to 299 means that it has accepted the alert. Redirects are not
followed and proxies not used: the alert goes to the host that the operator has permitted, or
nowhere.
"""

import json
import socket
from collections.abc import Hashable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Timer

from corollary import fault
from corollary.core.alerts import WebhookUrl
from corollary.database.alerts.sender import Claim, DeliveryError, Sender, UnreachableError
from corollary.warehouse.catalog.queued_alert import QueuedAlert

TIMEOUT_SECONDS = 10.0
"""How long a request may take, from the first byte to the last."""
_REDIRECTS = range(300, 400)
_ACCEPTED = range(200, 300)


class WebhookSender(Sender):
    """Posts alerts to a URL that the operator permits."""

    max_alerts = 8

    def __init__(self, address: WebhookUrl) -> None:
        self._address = address

    def group(self, waiting: QueuedAlert) -> Hashable:
        """Return the id: each alert is sent by itself."""
        return waiting.id

    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Post an alert.

        Raises:
            UnreachableError: there is no answer.
            DeliveryError: the answer is an error or a redirect.
            ClaimError: another process has taken over.
        """
        for each in alerts:
            claim.require([each])
            status = self._post(json.dumps(each.as_json()).encode(), each.id)
            fault.hit("after_append")
            if status in _REDIRECTS:
                raise DeliveryError(f"it answers {status}, and redirects are not followed")
            if status not in _ACCEPTED:
                raise DeliveryError(f"it answers {status}")

    def _post(self, body: bytes, id_: str) -> int:
        """Return the status of the answer."""
        address = self._address
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        connection = kind(address.host, address.port, timeout=TIMEOUT_SECONDS)
        was_aborted = Event()
        watchdog = Timer(TIMEOUT_SECONDS, _abort, [connection, was_aborted])
        watchdog.daemon = True
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": id_,
            "User-Agent": "corollary",
            "Connection": "close",
        }
        try:
            watchdog.start()
            connection.request("POST", address.target, body, headers)
            status = connection.getresponse().status
            if was_aborted.is_set():
                raise TimeoutError("timed out")
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            reason = str(error) or type(error).__name__
            raise UnreachableError(f"it does not answer: {reason}") from error
        else:
            return status
        finally:
            watchdog.cancel()
            connection.close()


def _abort(connection: HTTPConnection, was_aborted: Event) -> None:
    """End a request that takes too long: the timeout of a socket is one for each read."""
    was_aborted.set()
    with suppress(OSError, AttributeError):  # it has just ended
        connection.sock.shutdown(socket.SHUT_RDWR)
