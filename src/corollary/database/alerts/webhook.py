"""Webhooks: an alert is posted to a URL as JSON, at least once, with an id that stays the same.

The receiver finds the id in the body and in the header `Idempotency-Key`, so that it can ignore
what it has seen. Any status from 200 to 299 means that it has accepted the alert. Redirects are not
followed and proxies not used: the alert goes to the host that the operator has permitted, or
nowhere.

| `format` | body |
|---|---|
| `json` | the alert; `text` too if there is a template |
| `slack` | `{"text": …}`, where `&`, `<` and `>` of values are escaped |
| `teams` | a message with an adaptive card, where the signs of its Markdown are escaped |

With a `secret`, a request is signed as Standard Webhooks has it: HMAC-SHA256 over the id, the time
and the body, `ID.SECONDS.BODY`.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import socket
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Timer
from typing import Any

from corollary import fault
from corollary.core.alerts import WebhookUrl
from corollary.database.alerts.sender import Claim, DeliveryError, Sender, UnreachableError
from corollary.warehouse.catalog.queued_alert import QueuedAlert

TIMEOUT_SECONDS = 10.0
"""How long a request may take, from the first byte to the last."""
_REDIRECTS = range(300, 400)
_ACCEPTED = range(200, 300)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|>~-])")
_SECRET_PREFIX = "whsec_"  # noqa: S105 - of secrets in base64


class WebhookSender(Sender):
    """Posts alerts to a URL that the operator permits.

    Args:
        address: the URL.
        settings: format, template and secret, as the program has them.
    """

    max_alerts = 8

    def __init__(self, address: WebhookUrl, settings: Mapping[str, str]) -> None:
        self._address = address
        self._settings = settings

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
            body = json.dumps(payload(each, self._settings)).encode()
            headers = {"Idempotency-Key": each.id}
            if secret := os.environ.get(self._settings.get("secret", "")):
                headers |= sign(each.id, body, secret, int(time.time()))
            status = post(self._address, body, headers)
            fault.hit("after_append")
            if status in _REDIRECTS:
                raise DeliveryError(f"it answers {status}, and redirects are not followed")
            if status not in _ACCEPTED:
                raise DeliveryError(f"it answers {status}")


def payload(waiting: QueuedAlert, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of a request."""
    match settings.get("format"):
        case "slack":
            return {"text": _text(waiting, settings, _escape_slack)}
        case "teams":
            text = _text(waiting, settings, _escape_markdown)
            card = {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": [{"type": "TextBlock", "text": text, "wrap": True}],
            }
            kind = "application/vnd.microsoft.card.adaptive"
            return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
        case _:
            found = waiting.as_json()
            if "text" in settings:
                found["text"] = waiting.render(settings["text"])
            return found


def _text(waiting: QueuedAlert, settings: Mapping[str, str], escape: Callable[[str], str]) -> str:
    return waiting.render(settings.get("text", "{message}"), escape)


def _escape_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def sign(id_: str, body: bytes, secret: str, seconds: int) -> dict[str, str]:
    """Return the headers that prove who has sent a body, and when.

    >>> sign("msg_1", b"{}", "whsec_c2VjcmV0", 1763193600)["webhook-signature"]
    'v1,XmN2DIjaVsdj4UQpTTA94y/lY3zO/b2SuE6XlvjrlsM='
    """
    key = secret.encode()
    if secret.startswith(_SECRET_PREFIX):
        with suppress(binascii.Error):
            key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    signed = f"{id_}.{seconds}.".encode() + body
    code = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{code}",
    }


def post(address: WebhookUrl, body: bytes, headers: Mapping[str, str]) -> int:
    """Post JSON; return the status of the answer.

    Raises:
        UnreachableError: there is no answer.
    """
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.host, address.port, timeout=TIMEOUT_SECONDS)
    given = {
        "Content-Type": "application/json",
        "User-Agent": "corollary",
        "Connection": "close",
        **headers,
    }
    try:
        with closing_after(connection, TIMEOUT_SECONDS):
            connection.request("POST", address.target, body, given)
            return connection.getresponse().status
    except (OSError, HTTPException, ValueError, AttributeError) as error:
        reason = str(error) or type(error).__name__
        raise UnreachableError(f"it does not answer: {reason}") from error
    finally:
        connection.close()


@contextmanager
def closing_after(connection: Any, seconds: float) -> Iterator[None]:
    """End a conversation that takes too long: the timeout of a socket is one for each read.

    Args:
        connection: has a `sock`.
        seconds: the most that all of it may take.

    Raises:
        TimeoutError: it was ended.
    """
    was_aborted = Event()

    def abort() -> None:
        was_aborted.set()
        with suppress(OSError, AttributeError):  # it has just ended
            connection.sock.shutdown(socket.SHUT_RDWR)

    watchdog = Timer(seconds, abort)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
        if was_aborted.is_set():
            raise TimeoutError("timed out")
    finally:
        watchdog.cancel()
