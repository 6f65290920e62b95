"""Delivery: the alerts that commits have queued in the outbox go to their sinks.

sinks for which something is due → claim → send → mark as delivered, or postpone

An error here does not affect the commit: it is recorded in the outbox, and the alert is tried
again, each time after twice as long. What this process cannot deliver (a webhook that its operator
does not permit, an event for which it has no callback) is left for a process that can.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import assert_never
from uuid import uuid4

from corollary import fault
from corollary.core.alerts import (
    MAILTO,
    Sink,
    SinkKind,
    WebhookUrl,
    is_mail_permitted,
    is_permitted,
    parse_recipients,
    parse_webhook_url,
)
from corollary.data_class import dataclass
from corollary.database.alerts.sender import Claim, Sender, UnreachableError
from corollary.database.commit import MAX_ALERT_DEPTH
from corollary.database.pending_commit import ALERT_DEPTH
from corollary.database.state import DatabaseState
from corollary.database.store import Outbox, Store
from corollary.database.transaction import Transaction
from corollary.errors import ClaimError, CorollaryError, Diagnostic, InputError, Severity
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts
from corollary.warehouse.catalog.queued_alert import QueuedAlert, retry_delay

DELIVERY_MAX_PASSES = MAX_ALERT_DEPTH + 2
"""The maximum number of passes: alerts delivered into a relation may cause further ones."""


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where the operator of a process permits alerts to go.

    Attributes:
        webhooks: the beginnings of permitted URLs.
        mail: the permitted addresses of mails, and domains after an `@`.
        directory: which the files of alerts may not leave; that of the warehouse if not given.
    """

    webhooks: tuple[WebhookUrl, ...] = ()
    mail: tuple[str, ...] = ()
    directory: Path | None = None

    @classmethod
    def of(cls, webhooks: Sequence[str], directory: str | Path | None) -> "Outlets":
        """Return the outlets of an allow-list and a directory.

        Raises:
            InputError: `C1012`, an entry of the allow-list is not the beginning of a URL.
        """
        found, mail = [], []
        for each in webhooks:
            if each.startswith(f"{MAILTO}@") or (
                each.startswith(MAILTO) and parse_recipients(each.removeprefix(MAILTO))
            ):
                mail.append(each.removeprefix(MAILTO))
                continue
            address = parse_webhook_url(each)
            if address is None or address.query:
                raise InputError.of(
                    "C1012",
                    f"`{each}` does not say which webhooks are permitted.",
                    None,
                    "write the beginning of their URL, such as `https://hooks.example/team`, or "
                    "`mailto:@mail.example`",
                )
            found.append(address)
        return cls(tuple(found), tuple(mail), None if directory is None else Path(directory))


@dataclass(slots=True)
class SenderFactory:
    """Makes the sender for a sink; `begin` begins a transaction that delivers into a relation."""

    state: DatabaseState
    store: Store
    outlets: Outlets
    begin: Callable[[DeliveredAlerts], Transaction]

    def obstacle(self, sink: Sink) -> Diagnostic | None:
        """Return why this process must leave the alerts for a sink to another one, if it must.

        Only what goes to other machines needs a permission.
        """
        unset = [name for name in sink.variables if not os.environ.get(name)]
        if unset:
            return _warning(
                "C1014",
                f"Alerts wait for {describe_sink(sink)}, and `{unset[0]}` is not set here",
                f"set `{unset[0]}` in the environment of the process that delivers them",
            )
        permitted, allowed = True, f"{MAILTO}@DOMAIN"
        if sink.kind is SinkKind.WEBHOOK:
            url, allowed = sink.url, "the beginning of its URL"
            permitted = url is not None and is_permitted(url, self.outlets.webhooks)
        elif sink.kind is SinkKind.EMAIL:
            recipients = parse_recipients(sink.address) or ()
            permitted = all(is_mail_permitted(each, self.outlets.mail) for each in recipients)
        if permitted:
            return None
        return _warning(
            "C1011",
            f"Alerts wait for {describe_sink(sink)}, which is not permitted here",
            f"permit {allowed} with `--allow-webhook`, COROLLARY_ALLOW_WEBHOOKS "
            "or `corollary.open(…, webhooks=[…])`",
        )

    def create(self, sink: Sink) -> Sender | None:
        """Return what delivers to a permitted sink; None if this process cannot.

        Each kind of sender is imported when there is something to send.
        """
        match sink.kind:
            case SinkKind.CONSOLE:
                return None  # whoever commits has printed it
            case SinkKind.JSONLINES:
                from corollary.database.alerts.jsonlines import JsonLinesSender

                directory = self.outlets.directory or self.store.alert_directory
                return JsonLinesSender(directory, sink.location)
            case SinkKind.RELATION:
                from corollary.database.alerts.relation import RelationSender

                return RelationSender(self.state, self.begin, sink.location)
            case SinkKind.WEBHOOK:
                from corollary.database.alerts.webhook import WebhookSender

                url = sink.url
                return None if url is None else WebhookSender(url, sink.settings)
            case SinkKind.EMAIL:
                from corollary.database.alerts.mail import MailSender

                recipients = parse_recipients(sink.address)
                return None if recipients is None else MailSender(recipients, sink.settings)
            case SinkKind.CALLBACK:
                from corollary.database.alerts.callback import CallbackSender

                functions = self.state.callbacks.get(sink.location)
                return CallbackSender(functions) if functions else None
            case _:
                assert_never(sink.kind)


@dataclass(slots=True)
class Delivered:
    """What a delivery did.

    Attributes:
        alerts: how many alerts were delivered.
        waiting: how many are left in the outbox.
        problems: why some could not be delivered.
    """

    alerts: int = 0
    waiting: int = 0
    problems: list[Diagnostic] = field(default_factory=list)


def deliver(
    outbox: Outbox, senders: SenderFactory, kinds: Collection[SinkKind] = tuple(SinkKind)
) -> Delivered:
    """Deliver what is due for some kinds of sinks, as far as this process can."""
    return _Delivery(outbox, senders, kinds).run()


class _Delivery:
    def __init__(self, outbox: Outbox, senders: SenderFactory, kinds: Collection[SinkKind]) -> None:
        self._outbox = outbox
        self._senders = senders
        self._kinds = kinds
        self._claim = Claim(outbox, uuid4().hex)
        self._outcome = Delivered()
        self._problems: dict[Sink, Diagnostic] = {}

    def run(self) -> Delivered:
        """Deliver until nothing is due any more."""
        try:
            for _ in range(DELIVERY_MAX_PASSES):
                due = [sink for sink in self._outbox.sinks() if sink.kind in self._kinds]
                served = {sink: sender for sink in due if (sender := self._sender(sink))}
                if not served:
                    break
                for sink, sender in served.items():
                    self._serve(sink, sender)
            self._outcome.waiting = self._outbox.state().queued
        except CorollaryError as error:
            self._problems[Sink()] = _warning("C1010", "Alerts cannot be delivered", str(error))
        self._outcome.problems = list(self._problems.values())
        return self._outcome

    def _sender(self, sink: Sink) -> Sender | None:
        """Return what delivers to a sink; None if this process cannot."""
        obstacle = self._senders.obstacle(sink)
        if obstacle is None:
            return self._senders.create(sink)
        self._problems[sink] = obstacle
        return None

    def _serve(self, sink: Sink, sender: Sender) -> None:
        """Deliver what is due for a sink, until there is nothing or it cannot be reached."""
        while True:
            fault.hit("before_claim")
            claimed = self._outbox.claim(sink, self._claim.id, sender.max_alerts)
            if not claimed:
                return
            fault.hit("after_claim")
            groups = [list(each) for _, each in groupby(claimed, sender.group)]
            for at, group in enumerate(groups):
                try:
                    self._send(sink, sender, group)
                except UnreachableError as error:
                    left = [waiting for each in groups[at:] for waiting in each]
                    self._fail(sink, left, error)
                    self._outbox.pause_sink(sink, retry_delay(min(each.attempts for each in left)))
                    return

    def _send(self, sink: Sink, sender: Sender, alerts: Sequence[QueuedAlert]) -> None:
        """Deliver alerts; those that fail together are tried one by one where that may help."""
        before = ALERT_DEPTH.set(1 + max(each.depth for each in alerts))
        try:
            sender.send(alerts, self._claim)
        except UnreachableError:
            raise
        except ClaimError:
            return  # another process has taken over
        except Exception as error:  # noqa: BLE001 - the commit is not affected by any error
            if sender.is_divisible and len(alerts) > 1:
                for each in alerts:
                    self._send(sink, sender, [each])
            else:
                self._fail(sink, alerts, error)
        else:
            fault.hit("before_mark")
            self._outbox.mark(self._claim.id, [each.id for each in alerts])
            self._outcome.alerts += len(alerts)
        finally:
            ALERT_DEPTH.reset(before)

    def _fail(self, sink: Sink, alerts: Sequence[QueuedAlert], error: Exception) -> None:
        is_expected = isinstance(error, CorollaryError)
        reason = str(error) if is_expected else f"{type(error).__name__}: {error}"
        self._outbox.postpone(self._claim.id, alerts, f"{describe_sink(sink)}: {reason}")
        seconds = retry_delay(min(each.attempts for each in alerts))
        self._problems[sink] = _warning(
            "C1010",
            f"Alerts for {describe_sink(sink)} could not be delivered: {reason}",
            f"the commit is not affected; they are tried again after {seconds:g} seconds",
        )


def describe_sink(sink: Sink) -> str:
    """Return a sink in words; of a URL only the host, since the rest may be a secret."""
    if sink.kind is SinkKind.WEBHOOK:
        if sink.address.startswith("$"):
            return f"the webhook `{sink.address}`"
        address = parse_webhook_url(sink.address)
        return "a webhook" if address is None else f"a webhook at `{address.origin}`"
    names: Mapping[SinkKind, str] = {
        SinkKind.JSONLINES: "the file",
        SinkKind.RELATION: "the relation",
        SinkKind.EMAIL: "mail to",
        SinkKind.CALLBACK: "the callbacks of",
    }
    return f"{names.get(sink.kind, str(sink.kind))} `{sink.address}`"


def _warning(code: str, text: str, cure: str) -> Diagnostic:
    return Diagnostic(code, f"{text.rstrip('.')}.", None, cure, severity=Severity.WARNING)
