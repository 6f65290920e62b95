"""Alerts: the messages of a transaction, and the sinks they go to.

`.alert e "lost {x}" (IO=jsonlines, filename="alerts.jsonl")` makes an alert of every new tuple of
`e`: its row, the message with the row's values filled in, and the sink. A program may send one
event to several sinks, each with a message of its own.

The URL of a webhook is permitted if an entry of the operator's allow-list has the same scheme, host
and port, and its path is the URL's path or a prefix of it that ends with a whole segment. The
address of a mail is permitted by itself, `mailto:ops@mail.example`, or its domain,
`mailto:@mail.example`.

What is secret is in the environment of the process that delivers. A program names the variable,
which begins with `COROLLARY_SECRET_`, so that no program can ask for any other.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from corollary.core.logic import Value
from corollary.core.program import Reaction
from corollary.core.types import Type
from corollary.core.values import format_value, value_to_json
from corollary.data_class import dataclass

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
"""A column between braces in the message of `.alert` or `.abort`; `{{` is a brace itself."""


class SinkKind(StrEnum):
    """Where alerts can go."""

    CONSOLE = "console"
    JSONLINES = "jsonlines"
    RELATION = "relation"
    WEBHOOK = "webhook"
    EMAIL = "email"
    CALLBACK = "callback"


LOCATION_PARAMETERS = {
    SinkKind.JSONLINES: "filename",
    SinkKind.RELATION: "relation",
    SinkKind.WEBHOOK: "url",
    SinkKind.EMAIL: "to",
}
"""The parameter of `.alert` that locates a sink."""
SETTINGS = {SinkKind.WEBHOOK: ("format", "text", "secret"), SinkKind.EMAIL: ("subject", "body")}
"""What else can be said of a sink."""
TEMPLATES = frozenset({"text", "subject", "body"})
"""The settings in which placeholders are filled in, when the alert is delivered."""
COMMON_PLACEHOLDERS = ("id", "event", "message", "commit")
"""What such a template can show besides the columns of the event."""
SECRET = re.compile(r"COROLLARY_SECRET_[A-Z0-9_]+")
"""The names of variables that a program may refer to."""
SMTP_VARIABLE = "COROLLARY_SMTP"
LINEAGE_VARIABLE = "OPENLINEAGE_URL"
"""Where the events of OpenLineage go, which are delivered as alerts are."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where an alert goes: the kind of sink, and its file, relation, URL, addresses or event.

    Settings follow an address as a fragment: the outbox tells sinks apart by this text.

    >>> Sink(SinkKind.WEBHOOK, "https://hooks.example/team#format=slack").settings
    {'format': 'slack'}
    """

    kind: SinkKind = SinkKind.CONSOLE
    location: str = ""

    @property
    def address(self) -> str:
        """The location without settings; a URL as the program has it."""
        return self.location.partition("#")[0] if self.kind in SETTINGS else self.location

    @property
    def settings(self) -> dict[str, str]:
        """What else the program says of it."""
        return dict(parse_qsl(self.location.partition("#")[2])) if self.kind in SETTINGS else {}

    @property
    def url(self) -> "WebhookUrl | None":
        """The URL of a webhook; None if the environment lacks it, or has another text."""
        is_secret = self.address.startswith("$")
        url = os.environ.get(self.address[1:], "") if is_secret else self.address
        return parse_webhook_url(url)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment without which nothing can be delivered to it."""
        if self.kind is SinkKind.EMAIL:
            return (SMTP_VARIABLE,)
        secret = self.settings.get("secret", "")
        url = self.address[1:] if self.kind in SETTINGS and self.address.startswith("$") else ""
        return tuple(each for each in (url, secret) if each)


@dataclass(frozen=True, slots=True)
class Alert:
    """A new tuple of an event, to be sent to one sink.

    Attributes:
        event: the event predicate or relation.
        row: the tuple.
        message: the text of `.alert`, with the values of the row filled in.
        columns: the names of the columns.
        types: the types of the columns.
        sink: where it goes.
    """

    event: str
    row: tuple[Value, ...]
    message: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    sink: Sink = field(default_factory=Sink)

    def as_json(self) -> dict[str, Any]:
        """Return the alert as `apply` prints it.

        >>> from corollary.core.types import NUMBER
        >>> Alert("lost", (7,), "lost 7", ("x",), (NUMBER,)).as_json()
        {'event': 'lost', 'row': [7], 'message': 'lost 7'}
        """
        row = [
            value_to_json(value, type_) for value, type_ in zip(self.row, self.types, strict=True)
        ]
        return {"event": self.event, "row": row, "message": self.message}


def sink_of(reaction: Reaction) -> Sink:
    """Return the sink of an `.alert`; the console is the default."""
    kind = SinkKind(reaction.parameter("IO", SinkKind.CONSOLE))
    if kind is SinkKind.CALLBACK:
        return Sink(kind, reaction.relation)
    location = reaction.parameter(LOCATION_PARAMETERS[kind]) if kind in LOCATION_PARAMETERS else ""
    settings = [(name, reaction.parameter(name)) for name in SETTINGS.get(kind, ())]
    given = urlencode([each for each in settings if each[1]])
    return Sink(kind, f"{location}#{given}" if given else location)


def alerts_of(
    event: str,
    columns: tuple[str, ...],
    types: tuple[Type, ...],
    rows: Iterable[tuple[Value, ...]],
    reactions: Sequence[Reaction],
    *,
    has_callbacks: bool = False,
) -> Iterator[Alert]:
    """Yield the alerts that the new tuples of an event make.

    Args:
        event: the event predicate or relation.
        columns: the names of its columns.
        types: the types of its columns.
        rows: its new tuples.
        reactions: those of the program; `.alert`s of this event count.
        has_callbacks: whether this process has registered callbacks for the event.
    """
    alerting = [each for each in reactions if each.name == "alert" and each.relation == event]
    templates = [(each.message, sink_of(each)) for each in alerting]
    if has_callbacks and all(sink.kind is not SinkKind.CALLBACK for _, sink in templates):
        message = alerting[0].message if alerting else ""
        templates.append((message, Sink(SinkKind.CALLBACK, event)))
    distinct = tuple(dict.fromkeys(templates))
    for row in rows:
        for template, sink in distinct:
            message = render_message(template, columns, row, types)
            yield Alert(event, row, message, columns, types, sink)


def render_message(
    template: str,
    columns: Sequence[str],
    row: Sequence[Value],
    types: Sequence[Type],
    escape: Callable[[str], str] = str,
) -> str:
    """Return a template, such as the message of an `.alert`, with the values of a row filled in.

    >>> from corollary.core.types import NUMBER
    >>> render_message("{{{x}}} is lost", ("x",), (7,), (NUMBER,))
    '{7} is lost'
    """
    return "".join(
        [
            each
            if isinstance(each, str)
            else escape("null" if row[each] is None else format_value(row[each], types[each]))
            for each in _pieces(template, tuple(columns))
        ]
    )


@lru_cache(maxsize=1024)
def _pieces(template: str, columns: tuple[str, ...]) -> tuple[str | int, ...]:
    """Return a template as texts, and the columns whose values are between them."""
    found: list[str | int] = []
    end = 0
    for each in PLACEHOLDER.finditer(template):
        name = each.group(1)
        found += [template[end : each.start()]]
        found.append(each.group()[0] if name is None else columns.index(name))
        end = each.end()
    return (*found, template[end:])


def distinct_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """Return alerts in the order of event and row, one for all sinks that get the same message."""
    ordered = sorted(alerts, key=lambda each: (each.event, _sort_key(each), each.message))
    return list({(each.event, each.row, each.message): each for each in ordered}.values())


def _sort_key(alert: Alert) -> list[tuple[bool, bool, Any]]:
    """Return a sort key for the rows of one event: null first, NaN last."""
    found: list[tuple[bool, bool, Any]] = []
    for value in alert.row:
        is_nan = isinstance(value, float) and math.isnan(value)
        found.append((value is not None, is_nan, 0 if value is None or is_nan else value))
    return found


# --- webhooks ------------------------------------------------------------------------------------

DEFAULT_PORTS = {"http": 80, "https": 443}
_PRINTABLE = re.compile(r"[!-\[\]-~]+")
"""No spaces, control characters or backslashes, nothing beyond ASCII."""
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
_ENCODED_SLASH = re.compile(r"%(?:2f|5c)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """The parts of a URL."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def target(self) -> str:
        """The target of a request: path and query."""
        return f"{self.path or '/'}{f'?{self.query}' if self.query else ''}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, for messages: a path may hold a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def parse_webhook_url(url: str) -> WebhookUrl | None:
    """Return the parts of a URL; None if it cannot be the URL of a webhook.

    >>> parse_webhook_url("https://hooks.example/a?b=c").target
    '/a?b=c'
    >>> parse_webhook_url("ftp://hooks.example/a") is parse_webhook_url(
    ...     "https://me:pw@hooks.example"
    ... ) is None
    True
    """
    if not _PRINTABLE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "#" in url or "@" in parts.netloc:
        return None
    # A server may decode or resolve these to another path than the one that was permitted.
    if _ENCODED_SLASH.search(parts.path) or any(map(_DOTS.fullmatch, parts.path.split("/"))):
        return None
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    return WebhookUrl(parts.scheme, parts.hostname, port, parts.path, parts.query)


def is_permitted(address: WebhookUrl, allowed: Iterable[WebhookUrl]) -> bool:
    """Whether an address is on an allow-list.

    >>> allowed = [parse_webhook_url("https://hooks.example/team")]
    >>> [
    ...     is_permitted(parse_webhook_url(f"https://hooks.example{path}"), allowed)
    ...     for path in ("/team", "/team/a", "/teams", "/")
    ... ]
    [True, True, False, False]
    """
    return any(
        (each.scheme, each.host, each.port) == (address.scheme, address.host, address.port)
        and f"{address.path}/".startswith(f"{each.path.rstrip('/')}/")
        for each in allowed
    )


# --- mail ----------------------------------------------------------------------------------------

MAILTO = "mailto:"
_MAILBOX = re.compile(r"[A-Za-z0-9._+=~!$%&*/?^{|}'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")


def parse_recipients(text: str) -> tuple[str, ...] | None:
    """Return the addresses between commas; None if one of them cannot be the address of a mail.

    >>> parse_recipients("ops@mail.example, eva@mail.example")
    ('ops@mail.example', 'eva@mail.example')
    >>> parse_recipients("Eva <eva@mail.example>")
    """
    found = tuple(each.strip() for each in text.split(","))
    return found if all(map(_MAILBOX.fullmatch, found)) else None


def is_mail_permitted(recipient: str, allowed: Iterable[str]) -> bool:
    """Whether an address, or its domain, is on an allow-list.

    >>> [is_mail_permitted("eva@mail.example", [each]) for each in ("@mail.example", "@example")]
    [True, False]
    """
    local, _, domain = recipient.rpartition("@")
    return any(
        name in ("", local) and place.lower() == domain.lower()
        for name, _, place in (each.rpartition("@") for each in allowed)
    )
