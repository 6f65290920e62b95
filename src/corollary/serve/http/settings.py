"""Settings of the HTTP interface."""

import re
from ipaddress import ip_address

from corollary.data_class import dataclass

HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/\[\]]*))(?::[0-9]*)?")
"""An address of IPv6 in brackets, or a name; and perhaps a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server is reached, and what it puts up with.

    Attributes:
        warehouse_name: the name that the page shows.
        host: the address that it listens on.
        port: the port.
        has_tls: whether it speaks TLS itself.
        is_behind_proxy: whether a proxy does, whose `X-Forwarded-Proto` is believed.
        allowed_hosts: the names by which it may be called; for a server on the loopback interface,
            those of that interface are allowed too.
        body_max_bytes: the largest body of a request.
        body_seconds: how long a client may take to send it.
        head_max_bytes: the longest first line and headers.
        head_seconds: how long a client may take to send them.
        stall_seconds: how long a client may read nothing of an answer.
        keep_alive_seconds: how long a connection may be idle.
        connections: how many connections there may be.
        stop_seconds: how long a stop may take.
        allows_agent_writes: whether agents may change data, if their tokens may.
    """

    warehouse_name: str
    host: str = "127.0.0.1"
    port: int = 8765
    has_tls: bool = False
    is_behind_proxy: bool = False
    allowed_hosts: tuple[str, ...] = ()
    body_max_bytes: int = 16 << 20
    body_seconds: float = 30.0
    head_max_bytes: int = 64 << 10
    head_seconds: float = 10.0
    stall_seconds: float = 30.0
    keep_alive_seconds: int = 30
    connections: int = 2000
    stop_seconds: float = 10.0
    allows_agent_writes: bool = False

    @property
    def cookie_name(self) -> str:
        """The name of the cookie of a session: browsers keep one jar for all ports of a host."""
        return f"{'__Host-' if self.has_secure_cookies else ''}corollary_{self.port}"

    @property
    def has_secure_cookies(self) -> bool:
        """Whether browsers see HTTPS."""
        return self.has_tls or self.is_behind_proxy

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else self.host  # noqa: S104 - compared
        host = "[::1]" if host == "::" else f"[{host}]" if ":" in host else host
        return f"{'https' if self.has_tls else 'http'}://{host}:{self.port}"

    def is_allowed_host(self, header: str) -> bool:
        """Whether a request may call the server by this name; the port does not matter.

        >>> here = ServerSettings(warehouse_name="w")
        >>> here.is_allowed_host("localhost:8765"), here.is_allowed_host("evil.example")
        (True, False)
        """
        name = host_name(header)
        if self.allowed_hosts and name in self.allowed_hosts:
            return True
        if is_loopback(self.host) and not self.is_behind_proxy:
            return is_loopback(name)
        return not self.allowed_hosts


def host_name(header: str) -> str:
    """Return the name of a `Host` header, without the port; it is empty if the header is none.

    >>> host_name("[::1]:8765"), host_name("Example.org:80"), host_name("[::1].evil.example")
    ('::1', 'example.org', '')
    """
    found = HOST.fullmatch(header)
    return "" if found is None else (found[1] or found[2]).lower().rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
