"""Types as answers name them."""

import re
from collections import deque

from corollary.core.types import SYMBOL, Kind, Type, array_of, map_of, struct_of

_TOKEN = re.compile(r"\w+|->|\S")


def parse_type(text: str) -> Type:
    """Return the type that a text names, as `str(Type)` writes it; a record is a text.

    >>> str(parse_type("decimal(12,2)?")), str(parse_type("[{a: number, b c: {date -> bool}}]"))
    ('decimal(12,2)?', '[{a: number, b c: {date -> bool}}]')
    """
    return _read_type(deque(_TOKEN.findall(text)))


def _read_type(tokens: deque[str]) -> Type:
    first = tokens.popleft()
    if first == "[":
        found = array_of(_read_type(tokens))
        tokens.popleft()
    elif first == "{" and (tokens[0] in ("[", "{") or tokens[1] in ("->", "(")):
        key, _ = _read_type(tokens), tokens.popleft()
        found = map_of(key, _read_type(tokens))
        tokens.popleft()
    elif first == "{":
        fields = []
        while first != "}":
            name = " ".join(iter(tokens.popleft, ":"))
            fields.append((name, _read_type(tokens)))
            first = tokens.popleft()
        found = struct_of(fields)
    else:
        digits: list[int] = []
        while tokens and first in _KINDS and (tokens[0] == "(" or len(digits) == 1):
            _, number = tokens.popleft(), tokens.popleft()
            digits.append(int(number))
        if digits:
            tokens.popleft()
        precision, scale, *_ = *digits, 0, 0
        found = Type(Kind(first), False, precision, scale) if first in _KINDS else SYMBOL
    if tokens and tokens[0] == "?":
        tokens.popleft()
        return found.with_null(True)
    return found


_KINDS = frozenset(map(str, Kind))
