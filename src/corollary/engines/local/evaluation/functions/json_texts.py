r"""Functions that look into texts of JSON, as Spark SQL does, which reads them with Jackson.

A text is read up to the end of its first value; what follows does not matter. A string may stand in
single quotes and have control characters. A value is a list, a tuple of pairs for an object, `str`,
`bytes` for the text of a number, or `True`, `False` or `None`.

>>> read_json("{\"a\": [1.50, 'b']} x")
(('a', [b'1.5', 'b']),)
"""

import json
import re
import sys
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from math import isfinite
from typing import Any
from unicodedata import category

from corollary.core.values import is_encodable
from corollary.engines.local.evaluation.arithmetic import FAILED_CONVERSION, Operand, Result
from corollary.engines.local.evaluation.functions.arrays import each_list
from corollary.engines.local.evaluation.functions.casts import show_float
from corollary.engines.local.evaluation.functions.text_parts import each_row
from corollary.engines.local.evaluation.text_functions import NoValueError

DEPTH_MAX = 1000
DIGITS_MAX = 1000
NAME_MAX_CHARACTERS = 50_000
"""What is deeper, or longer, is no JSON for Jackson."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_STRINGS = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.DOTALL | re.VERBOSE)
_INFINITE = re.compile(
    r""" "(?:[^"\\]|\\.)*" | ([+-])(?:INF|Infinity)\b """, re.DOTALL | re.VERBOSE
)
_QUOTES = re.compile(r"""\\.|["]""", re.DOTALL)
_IN_NAMES = frozenset({"Sc", "Pc", "Nd", "Nl", "Mn", "Mc", "Cf", "Lu", "Ll", "Lt", "Lm", "Lo"})
SPECIAL = re.compile(r'["\\\x00-\x1f]')
WIDE = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_LETTERS = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _whole(digits: str) -> bytes:
    _check_digits(digits)
    return b"0" if digits == "-0" else digits.encode()


class Fraction(bytes):
    """The text of a number that is no integer; `written` is as it stands in the document."""

    written: str


def _broken(digits: str) -> Fraction:
    _check_digits(digits)
    value = float(digits)
    text = show_float(value)
    found = Fraction((text if isfinite(value) else f'"{text}"').encode())
    found.written = digits
    return found


def _check_digits(number: str) -> None:
    if len(number) > DIGITS_MAX and sum(map(str.isdigit, number)) > DIGITS_MAX:
        raise ValueError(number)


def _object(pairs: list[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    if any(len(name) > NAME_MAX_CHARACTERS for name, _ in pairs):
        raise ValueError(pairs)
    return tuple(pairs)


def _no_constant(word: str) -> Any:
    raise ValueError(word)


_DECODER, _EXACT_DECODER = (
    json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=_whole,
        parse_float=_broken,
        parse_constant=constant,
        strict=strict,
    )
    for constant, strict in ((_no_constant, False), (_broken, True))
)


class NoJsonError(Exception):
    """A text is no JSON."""


def read_json(text: str, *, is_exact: bool = False) -> Any:
    """Return the first value of a text.

    Args:
        text: it may go on after the value.
        is_exact: whether numbers may be `NaN`, `-INF` and their like, and strings have no control
            characters, as `from_json` has it.

    Raises:
        NoJsonError: the text does not begin with a value.
    """
    decoder = _EXACT_DECODER if is_exact else _DECODER
    try:
        return _scan(text, decoder)
    except ValueError:
        if "'" not in text and not (is_exact and "I" in text):
            raise NoJsonError from None
    try:
        text = _STRINGS.sub(_double_quoted, text)
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


def write_json(value: Any, special: re.Pattern[str]) -> str:
    """Return the text of a value.

    Args:
        value: as `read_json` returns it.
        special: which characters of strings are escaped.
    """
    match value:
        case bytes():
            return value.decode()
        case str():
            return f'"{special.sub(_escaped, value)}"'
        case list():
            return f"[{','.join([write_json(each, special) for each in value])}]"
        case tuple():
            pairs = [f"{write_json(name, special)}:{write_json(x, special)}" for name, x in value]
            return f"{{{','.join(pairs)}}}"
        case _:
            return "null" if value is None else "true" if value else "false"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
    return _LETTERS.get(code) or f"\\u{code:04X}"


# --- paths ------------------------------------------------------------------------------------


class Step(Enum):
    """A step of a path that is no name and no number."""

    ALL = auto()
    """`[*]`: all elements."""

    NOTHING = auto()
    """`.*`: nothing, as in Hive."""


Path = tuple[str | int | Step, ...]

_S = "[ \t\n\x0b\f\r]*+"
_STEP = re.compile(
    rf"""{_S}(?P<nothing>\.\*|\['\*'\]) | \.{_S}(?P<name>[^.\[]+)
    | {_S}\['{_S}(?P<quoted>[^']++)'\] | \[(?: \* | {_S}(?P<index>[0-9]+) )\]""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def read_path(text: str) -> Path | None:
    """Return the steps of a path; None if it is none.

    >>> read_path("$.a[0]['b c'][*]")
    ('a', 0, 'b c', <Step.ALL: 1>)
    """
    end = len(text.rstrip(" \t\n\x0b\f\r"))
    place, steps = 1, list[str | int | Step]()
    while place < end or not steps:
        found = _STEP.match(text, place)
        if found is None:
            break
        kind, word = found.lastgroup, found[found.lastgroup or 0]
        steps.append(
            Step.ALL
            if kind is None
            else Step.NOTHING
            if kind == "nothing"
            else int(word)
            if kind == "index"
            else word
        )
        place = found.end()
    is_whole = text.startswith("$") and place >= max(end, 1)
    return tuple(steps) if is_whole else None


class Style(Enum):
    """How matches are written: as they are, as JSON, or with the elements of lists as matches."""

    RAW = auto()
    QUOTED = auto()
    FLAT = auto()


def _match(value: Any, path: Path, style: Style, found: list[str], special: Any) -> bool:
    """Add the texts of what a path leads to, and return whether there is anything, as Hive does."""
    if not path:
        if style is Style.RAW and isinstance(value, str):
            found.append(value)
            return True
        if style is Style.FLAT and isinstance(value, list):
            return sum(_match(each, path, style, found, special) for each in value) > 0
        found.append(write_json(value, special))
        return True
    step, rest = path[0], path[1:]
    if isinstance(value, tuple):
        fields = (x for name, x in value if name == step and x is not None)
        return any(_match(x, rest, style, found, special) for x in fields)
    if not isinstance(value, list):
        return False
    if isinstance(step, int):
        inner = Style.QUOTED if rest[:1] == (Step.ALL,) else style
        return step < len(value) and _match(value[step], rest, inner, found, special)
    if step is not Step.ALL:
        return False
    is_double = rest[:1] == (Step.ALL,)
    is_single = not is_double and style is not Style.QUOTED
    inner = Style.QUOTED if not is_double and style is Style.RAW else style
    texts: list[str] = []
    counts = [
        _match(
            each,
            rest[1:] if is_double else rest,
            Style.FLAT if is_double else inner,
            texts,
            SPECIAL if is_single else special,
        )
        for each in value
    ]
    if not is_single or sum(counts) > 1:
        found.append(f"[{','.join(texts)}]")
    elif any(counts):
        found.append(",".join(texts))
    return any(counts)


def _get(text: str, path: str) -> str | None:
    steps, found = read_path(path), list[str]()
    if steps is None or not _match(read_json(text), steps, Style.RAW, found, WIDE):
        return None
    return checked_text(" ".join(found))


def checked_text(text: str) -> str:
    """Return a text that can be one here; one with half of a surrogate pair cannot in Spark."""
    if not is_encodable(text):
        raise NoValueError(FAILED_CONVERSION) if "\0" in text else NoJsonError
    return text


def _fields(text: str, *names: str) -> list[str | None] | None:
    pairs = read_json(text)
    if not isinstance(pairs, tuple):
        return None
    texts = {
        name: checked_text(x if isinstance(x, str) else write_json(x, WIDE))
        for name, x in pairs
        if name in names and x is not None
    }
    return [texts.get(name) for name in names]


def _length(text: str) -> int | None:
    value = read_json(text)
    return len(value) if isinstance(value, list) else None


def _keys(text: str) -> list[str] | None:
    value = read_json(text)
    if not isinstance(value, tuple):
        return None
    return [checked_text(name.encode(errors="replace").decode()) for name, _ in value]


def or_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is null where a text is no JSON."""

    def apply(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except NoJsonError:
            return None
        except RecursionError:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + 8 * DEPTH_MAX)
            try:
                return function(*arguments)
            except (NoJsonError, RecursionError):
                return None
            finally:
                sys.setrecursionlimit(limit)

    return apply


JSON_FUNCTIONS: dict[str, Callable[[list[Operand], Any], Result]] = {
    "get_json_object": each_row(or_null(_get)),
    "json_array_length": each_row(or_null(_length)),
    "json_object_keys": each_list(or_null(_keys)),
    "json_tuple": each_list(or_null(_fields)),
}
"""Functors of texts of JSON."""
