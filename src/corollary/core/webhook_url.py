"""URLs of webhooks, and the allow-list of an operator.

A URL is permitted if an entry of the allow-list has the same scheme, host and port, and its path
is the URL's path or a prefix of it that ends with a whole segment.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

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
