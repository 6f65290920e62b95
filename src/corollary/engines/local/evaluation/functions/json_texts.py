"""Functions that look into texts of JSON, as Spark SQL does.

A number that is no integer is a `Fraction`; strings may have control characters.
"""

import re
import sys
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from math import isfinite
from typing import Any

from corollary.core.functors.json_reading import (
    DEPTH_MAX,
    NoJsonError,
    check_digits,
    json_decoder,
    read_json,
)
from corollary.core.values import is_encodable
from corollary.engines.local.evaluation.functions.arrays import each_list
from corollary.engines.local.evaluation.functions.casts import show_float
from corollary.engines.local.evaluation.kernels import (
    FAILED_CONVERSION,
    Kernel,
    NoValueError,
    each_row,
)

SPECIAL = re.compile(r'["\\\x00-\x1f]')
WIDE = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_LETTERS = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


class Fraction(bytes):
    """The text of a number that is no integer; `written` is as it stands in the document."""

    written: str


def _broken(digits: str) -> Fraction:
    check_digits(digits)
    value = float(digits)
    text = show_float(value)
    found = Fraction((text if isfinite(value) else f'"{text}"').encode())
    found.written = digits
    return found


DECODER, EXACT_DECODER = (json_decoder(_broken, is_exact=each) for each in (False, True))


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
    if steps is None or not _match(read_json(text, DECODER), steps, Style.RAW, found, WIDE):
        return None
    return checked_text(" ".join(found))


def checked_text(text: str) -> str:
    """Return a text that can be one here; one with half of a surrogate pair cannot in Spark."""
    if not is_encodable(text):
        raise NoValueError(FAILED_CONVERSION) if "\0" in text else NoJsonError
    return text


def _fields(text: str, *names: str) -> list[str | None] | None:
    pairs = read_json(text, DECODER)
    if not isinstance(pairs, tuple):
        return None
    texts = {
        name: checked_text(x if isinstance(x, str) else write_json(x, WIDE))
        for name, x in pairs
        if name in names and x is not None
    }
    return [texts.get(name) for name in names]


def _length(text: str) -> int | None:
    value = read_json(text, DECODER)
    return len(value) if isinstance(value, list) else None


def _keys(text: str) -> list[str] | None:
    value = read_json(text, DECODER)
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


JSON_FUNCTIONS: dict[str, Kernel] = {
    "get_json_object": each_row(or_null(_get)),
    "json_array_length": each_row(or_null(_length)),
    "json_object_keys": each_list(or_null(_keys)),
    "json_tuple": each_list(or_null(_fields)),
}
"""Functors of texts of JSON."""
