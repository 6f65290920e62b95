"""The lexical syntax that parser and printer share: functions, operators, reserved words, names."""

import unicodedata

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.conversions import CAST, COUNTER

TODAY = "today"
"""A function without arguments, whose name is not reserved."""

EXTREMES = ("min", "max")
"""Both a function of two or more arguments and an aggregate."""

FUNCTIONS = tuple(
    spec.name
    for spec in FUNCTORS.values()
    if spec.is_reserved and spec.name not in (*EXTREMES, CAST, COUNTER)
)
"""Functions that are called as `f(x, y)` and whose names are reserved, besides `min` and `max`."""

PRECEDENCE = {spec.name: spec.precedence for spec in FUNCTORS.values() if spec.precedence}
"""The precedence of infix operators, as in Soufflé."""

PREFIXES = {spec.name: spec.prefix for spec in FUNCTORS.values() if spec.prefix}
"""Prefix operators: the name of the functor, and the sign or word in the text."""

PREFIX_PRECEDENCE = 10
RIGHT_ASSOCIATIVE = frozenset({"^"})

_WORDS = (spec.prefix or spec.name for spec in FUNCTORS.values() if not spec.is_open)
RESERVED = frozenset(
    {
        *filter(str.isidentifier, _WORDS),
        *("count", "sum", "mean", "match", "contains", "true", "false", "null", "nil"),
    }
)
"""Words that cannot be names of variables or relations, except in backquotes."""

HINTS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable")
"""Qualifiers of a declaration that do not change its meaning."""


def normalised_name(name: str) -> str:
    """Return a name without backquotes as it is stored: letters with accents are one character.

    >>> len("e\N{COMBINING ACUTE ACCENT}"), len(normalised_name("e\N{COMBINING ACUTE ACCENT}"))
    (2, 1)
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def is_bare_word(name: str) -> bool:
    """Whether a name of a column or parameter needs no backquotes.

    >>> is_bare_word("count"), is_bare_word("größe"), is_bare_word("my rel")
    (True, True, False)
    """
    return name != "_" and _is_plain(name.removeprefix("?"))


def _is_plain(name: str) -> bool:
    return name.isidentifier() and normalised_name(name) == name


def is_bare_name(name: str) -> bool:
    """Whether a name of a variable needs no backquotes.

    >>> is_bare_name("x"), is_bare_name("count"), is_bare_name("link.base")
    (True, False, False)
    """
    return is_bare_word(name) and name not in RESERVED


def is_bare_relation(name: str) -> bool:
    """Whether a name of a relation, which may have dots, needs no backquotes.

    >>> is_bare_relation("link.base")
    True
    """
    return is_bare_name(name) or ("." in name and all(map(_is_plain, name.split("."))))
