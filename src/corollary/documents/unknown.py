"""The unknown label `?`, and how labels are written in relations so that none is taken for it.

An unknown of which it is known that it is one of some labels is written `?{…}`, with the labels as
JSON: that is what a function with a type brings, or one that answers once.
"""

import json
from collections.abc import Iterable

UNKNOWN = "?"


def stored(label: str) -> str:
    """Return a label as it stands in relations: one that begins with `?` gets another one.

    >>> stored("?"), stored("a")
    ('??', 'a')
    """
    return UNKNOWN + label if label.startswith(UNKNOWN) else label


def one_of(labels: Iterable[str]) -> str:
    """Return the symbol of a label of which only these are possible.

    >>> one_of({"b", "a"})
    '?{["a", "b"]}'
    """
    return f"?{{{json.dumps(sorted(labels))}}}"


def range_of(symbol: str) -> frozenset[str] | None:
    """Return the labels that an unknown may be; None if it may be any."""
    return None if symbol == UNKNOWN else frozenset(json.loads(symbol[2:-1]))


def is_unknown(symbol: str) -> bool:
    """Whether a symbol of a relation stands for a label that is not known."""
    return symbol == UNKNOWN or symbol.startswith("?{")


class Unknown:
    """A label that is not known yet; two of one class are the same label.

    >>> Unknown()
    ?
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown)

    def __hash__(self) -> int:
        return hash(Unknown)


ANY = Unknown()
Answer = tuple[str | Unknown, ...]


def read(symbol: str) -> str | Unknown:
    """Return the label that a symbol of a relation stands for.

    >>> read("?"), read("??"), read("a")
    (?, '?', 'a')
    """
    if is_unknown(symbol):
        return ANY
    return symbol[1:] if symbol.startswith(UNKNOWN) else symbol
