r"""Texts of JSON as Spark reads them, with Jackson.

A text is read up to the end of its first value. A string may stand in single quotes. A value is a
list, a tuple of pairs for an object, `str`, `bytes` for the text of an integer, what the decoder
makes of another number, or `True`, `False` or `None`.

>>> read_json("{\"a\": [1.5, 'b', 02]} x", json_decoder(float, is_exact=True))
Traceback (most recent call last):
corollary.core.functors.json_reading.NoJsonError
>>> read_json("{\"a\": [1.5, 'b', 2]} x", json_decoder(float, is_exact=True))
(('a', [1.5, 'b', b'2']),)
"""

import json
import re
from collections.abc import Callable
from typing import Any
from unicodedata import category

DEPTH_MAX = 1000
DIGITS_MAX = 1000
NAME_MAX_CHARACTERS = 50_000
"""What is deeper, or longer, is no JSON for Jackson."""

_BLANKS = re.compile(r"[ \t\r\n]*")
STRINGS = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.DOTALL | re.VERBOSE)
_INFINITE = re.compile(
    r""" "(?:[^"\\]|\\.)*" | ([+-])(?:INF|Infinity)\b """, re.DOTALL | re.VERBOSE
)
_QUOTES = re.compile(r"""\\.|["]""", re.DOTALL)
_IN_NAMES = frozenset({"Sc", "Pc", "Nd", "Nl", "Mn", "Mc", "Cf", "Lu", "Ll", "Lt", "Lm", "Lo"})


def _whole(digits: str) -> bytes:
    check_digits(digits)
    return b"0" if digits == "-0" else digits.encode()


def check_digits(number: str) -> None:
    """Refuse a number with too many digits.

    Raises:
        ValueError: it has.
    """
    if len(number) > DIGITS_MAX and sum(map(str.isdigit, number)) > DIGITS_MAX:
        raise ValueError(number)


def _object(pairs: list[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    if any(len(name) > NAME_MAX_CHARACTERS for name, _ in pairs):
        raise ValueError(pairs)
    return tuple(pairs)


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def json_decoder(read_number: Callable[[str], Any], *, is_exact: bool) -> json.JSONDecoder:
    """Return a decoder for `read_json`.

    Args:
        read_number: what a number becomes that is no integer.
        is_exact: whether numbers may be `NaN`, `-INF` and their like, and strings have no control
            characters, as `from_json` has it.
    """
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=_whole,
        parse_float=read_number,
        parse_constant=read_number if is_exact else _no_constant,
        strict=is_exact,
    )


class NoJsonError(Exception):
    """A text is no JSON."""


def read_json(text: str, decoder: json.JSONDecoder) -> Any:
    """Return the first value of a text; what follows does not matter.

    Args:
        text: its strings may stand in single quotes.
        decoder: what `json_decoder` returns.

    Raises:
        NoJsonError: the text does not begin with a value.
    """
    is_exact = decoder.strict
    try:
        return _scan(text, decoder)
    except ValueError:
        if "'" not in text and not (is_exact and "I" in text):
            raise NoJsonError from None
    try:
        text = STRINGS.sub(_double_quoted, text)
        return _scan(_INFINITE.sub(_unsigned, text) if is_exact else text, decoder)
    except ValueError:
        raise NoJsonError from None


def _unsigned(found: re.Match[str]) -> str:
    """Return an infinite number as Python reads it; a string is itself."""
    return f"{found[1].rstrip('+')}Infinity" if found[1] else found[0]


def _scan(text: str, decoder: json.JSONDecoder) -> Any:
    blanks = _BLANKS.match(text)
    start = blanks.end() if blanks else 0
    value, end = decoder.raw_decode(text, start)
    if end < len(text) and not isinstance(value, str | list | tuple):
        after = text[end]
        if isinstance(value, bytes):
            is_ended = after in " \t\r\n"
        else:
            is_ended = after < "0" or after in "]}" or after > "\uffff"
            is_ended = is_ended or category(after) not in _IN_NAMES
        if not is_ended:
            raise ValueError(after)
    if len(text) > 2 * DEPTH_MAX and _depth(value) > DEPTH_MAX:
        raise ValueError(text)
    return value


def _depth(value: Any) -> int:
    """Return how many lists and objects are inside each other."""
    depth, inside = 0, [value]
    while inside := [each for each in inside if isinstance(each, list | tuple)]:
        depth += 1
        inside = [
            each if isinstance(owner, list) else each[1] for owner in inside for each in owner
        ]
    return depth


def _double_quoted(found: re.Match[str]) -> str:
    """Return a string as JSON has it."""

    def change(part: re.Match[str]) -> str:
        return "'" if part[0] == "\\'" else part[0] if part[0][0] == "\\" else '\\"'

    return f'"{_QUOTES.sub(change, found[0][1:-1])}"'
