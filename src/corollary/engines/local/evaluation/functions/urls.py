"""Parts of URLs, as `java.net.URI` takes them apart, which Spark's `parse_url` uses.

The grammar is that of RFC 2396, with addresses of IPv6, and with characters beyond ASCII that are
no blanks. An authority that is no host with a port may be a name of another kind, without host.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address

import re2

from corollary.core.functors.catalog import count_groups
from corollary.engines.local.evaluation.kernels import FAILED_CONVERSION, NoValueError

_OTHER = "\x81-\x9f\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_ESCAPED = rf"%[0-9A-Fa-f]{{2}}|[^\x00-\x80{_OTHER}]"
_MARKED = "A-Za-z0-9_.!~*'()-"


def _all_of(signs: str) -> re.Pattern[str]:
    return re.compile(f"(?:[{_MARKED}{signs}]|{_ESCAPED})*")


_ANY = _all_of(r";/?:@&=+$,\[\]")
_PATH = _all_of(";/:@&=+$,")
_NAME = _all_of(";:@&=+$,")
_USER = _all_of(";:&=+$,")
_SERVER = _all_of(r";:@&=+$,\[\]%")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_SCOPE = re.compile("[A-Za-z0-9_.]+")
_IPV4 = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*(?P<last>{_LABEL})\.?")

Parts = Mapping[str, str]


@lru_cache(maxsize=4096)
def read_url(text: str) -> Parts | None:
    """Return the parts of a URL by their names, those that it has; None if it is none.

    >>> read_url("http://a@b.c:80/d?e#f")["HOST"]
    'b.c'
    """
    parts: dict[str, str] = {}
    begin = re.match("([^/?#:]*):", text)
    if begin is not None:
        if not _SCHEME.fullmatch(begin[1]):
            return None
        parts["PROTOCOL"] = begin[1]
        text = text[begin.end() :]
    rest, sign, fragment = text.partition("#")
    if sign:
        parts["REF"] = fragment
    is_opaque = begin is not None and not rest.startswith("/")
    if not _ANY.fullmatch(fragment) or (is_opaque and not rest):
        return None
    if is_opaque:
        return parts if _ANY.fullmatch(rest) else None
    if rest.startswith("//"):
        authority = re.split("[/?]", rest[2:], maxsplit=1)[0]
        rest = rest[2 + len(authority) :]
        found = _read_authority(authority) if authority else {} if rest or sign else None
        if found is None:
            return None
        parts |= found
    path, sign, query = rest.partition("?")
    if not _PATH.fullmatch(path) or not _ANY.fullmatch(query):
        return None
    parts |= {"PATH": path, "FILE": rest if sign else path}
    return parts | ({"QUERY": query} if sign else {})


def _read_authority(text: str) -> dict[str, str] | None:
    name = _NAME.match(text)
    end = name.end() if name else 0
    if text[end : end + 1] == "%":  # no escape at all
        return None
    if _SERVER.fullmatch(text):
        user, sign, server = text.partition("@")
        if not sign:
            user, server = "", text
        host = _host_of(server)
        if host is not None and _USER.fullmatch(user):
            found = {"AUTHORITY": text, "HOST": host}
            return found | ({"USERINFO": user} if sign else {})
    return {"AUTHORITY": text} if end == len(text) else None


def _host_of(server: str) -> str | None:
    """Return the host of a text with a port; None if it has none."""
    if server.startswith("["):
        inside, sign, port = server[1:].partition("]")
        address, scoped, scope = inside.partition("%")
        is_host = sign and _is_ipv6(address) and (not scoped or _SCOPE.fullmatch(scope))
        host = f"[{inside}]"
        if port and not port.startswith(":"):
            return None
        port = port[1:]
    else:
        host, _, port = server.partition(":")
        digits, found = _IPV4.fullmatch(host), _HOST.fullmatch(host)
        is_host = digits is not None and all(_below(256, each) for each in digits.groups())
        if not is_host and found is not None:
            is_host = found.start("last") == 0 or found["last"][0].isalpha()
    return host if is_host and (not port or _below(1 << 31, port)) else None


def _below(bound: int, digits: str) -> bool:
    number = digits.lstrip("0")
    return digits.isascii() and digits.isdigit() and len(number) < 11 and int(number or 0) < bound


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(re.sub(r"(?<![0-9A-Fa-f])0+(?=[0-9]+(?:\.|$))", "", text))
    except AddressValueError:
        return False
    return True


def part_of_url(text: str, part: str, key: str | None = None) -> str | None:
    """Return a part of a URL, or the value of a key, a pattern, in its query."""
    if key is not None and part != "QUERY":
        return None  # whatever the text is
    parts = read_url(text)
    if parts is None:
        raise NoValueError(FAILED_CONVERSION)
    found = parts.get(part)
    if key is None or found is None:
        return found
    pattern = f"(&|^){key}=([^&]*)"
    try:
        count_groups(pattern)
    except ValueError:
        raise NoValueError(FAILED_CONVERSION) from None
    match = re2.search(pattern, found)
    value: str | None = match and match.group(2)
    return value
