"""Mail: an alert is sent by SMTP, at least once, with a `Message-ID` that stays the same.

The operator names the server in `COROLLARY_SMTP`:

| URL | encryption |
|---|---|
| `smtps://user:password@host/?from=…` | TLS from the first byte; port 465 |
| `smtp+starttls://user:password@host/?from=…` | STARTTLS before anything else; port 587 |
| `smtp://host/?from=…` | none, so no password either; port 25 |
"""

import logging
import os
import smtplib
import ssl
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit

from corollary import fault
from corollary.core.alerts import SMTP_VARIABLE, parse_recipients
from corollary.data_class import dataclass
from corollary.database.alerts import webhook
from corollary.database.alerts.sender import Claim, DeliveryError, Sender, UnreachableError
from corollary.warehouse.catalog.queued_alert import QueuedAlert

_log = logging.getLogger("corollary")
SUBJECT = "{message}"
BODY = "{message}\n\n{event}, commit {commit}, alert {id}\n"
SUBJECT_MAX_CHARACTERS = 200
_PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server that takes mails, and who sends them."""

    scheme: str
    host: str
    port: int
    user: str
    password: str
    sender: str

    @classmethod
    def of(cls, url: str) -> "MailServer":
        """Return what a URL says.

        Raises:
            DeliveryError: it is not the URL of a mail server.
        """
        unlike = DeliveryError(
            f"`{SMTP_VARIABLE}` is not like `smtps://user:password@host/?from=me@mail.example`"
        )
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
            sender = parse_qs(parts.query)["from"][0]
        except (KeyError, ValueError) as error:
            raise unlike from error
        if not parse_recipients(sender) or not parts.hostname or parts.scheme not in _PORTS:
            raise unlike
        if parts.username and parts.scheme == "smtp":
            raise DeliveryError(
                f"`{SMTP_VARIABLE}` has a password, which needs `smtps` or `smtp+starttls`"
            )
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.scheme, parts.hostname, port, user, password, sender)


class MailSender(Sender):
    """Sends alerts to people.

    Args:
        recipients: their addresses.
        settings: subject and body, as the program has them.
    """

    max_alerts = 8

    def __init__(self, recipients: Sequence[str], settings: Mapping[str, str]) -> None:
        self._recipients = tuple(recipients)
        self._settings = settings

    def group(self, waiting: QueuedAlert) -> Hashable:
        """Return the id: each alert is sent by itself."""
        return waiting.id

    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Send an alert.

        Raises:
            UnreachableError: there is no server.
            DeliveryError: the server refuses it.
            ClaimError: another process has taken over.
        """
        server = MailServer.of(os.environ.get(SMTP_VARIABLE, ""))
        for each in alerts:
            claim.require([each])
            self._send(server, self._message(each, server.sender))
            fault.hit("after_append")

    def _message(self, waiting: QueuedAlert, sender: str) -> EmailMessage:
        subject = waiting.render(self._settings.get("subject", SUBJECT))
        found = EmailMessage()
        found["From"] = sender
        found["To"] = ", ".join(self._recipients)
        # A header has one line: what a value has more of is no header.
        found["Subject"] = " ".join(subject.split())[:SUBJECT_MAX_CHARACTERS]
        found["Date"] = format_datetime(datetime.now(UTC))
        found["Message-ID"] = f"<{waiting.id}@{sender.rpartition('@')[2]}>"
        found["Auto-Submitted"] = "auto-generated"
        found.set_content(waiting.render(self._settings.get("body", BODY)))
        return found

    def _send(self, server: MailServer, message: EmailMessage) -> None:
        seconds = webhook.TIMEOUT_SECONDS
        name = server.sender.rpartition("@")[2]  # without one, it would be looked up
        tls = ssl.create_default_context()
        connection: smtplib.SMTP
        if server.scheme == "smtps":
            connection = smtplib.SMTP_SSL(local_hostname=name, timeout=seconds, context=tls)
        else:
            connection = smtplib.SMTP(local_hostname=name, timeout=seconds)
        connection._host = server.host  # type: ignore[attr-defined]  # noqa: SLF001 - the name that a certificate has to have
        try:
            with webhook.closing_after(connection, seconds):
                connection.connect(server.host, server.port)
                if server.scheme == "smtp+starttls":
                    connection.starttls(context=tls)
                if server.user:
                    connection.login(server.user, server.password)
                refused = connection.send_message(message, server.sender, self._recipients)
                connection.quit()
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(*next(iter(error.recipients.values()))) from error
        except (smtplib.SMTPException, OSError) as error:
            reason = str(error) or type(error).__name__
            raise UnreachableError(f"the mail server does not answer: {reason}") from error
        finally:
            connection.close()
        for address, answer in refused.items():
            _log.warning("the mail server refuses %s: %s", address, _refusal(*answer))


def _refusal(code: int, text: bytes | str) -> DeliveryError:
    reason = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return DeliveryError(f"the server answers {code}: {reason}")
