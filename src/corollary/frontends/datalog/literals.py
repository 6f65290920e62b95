"""The values of literals: numbers, fractions, strings, dates and times."""

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from corollary.core.types import NUMBER_RANGE, UNSIGNED_RANGE
from corollary.core.values import is_encodable, iso_moment, parse_date

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_FRACTION = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_ESCAPED = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\\": "\\",
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}


STRING_PATTERN = (
    r'"(?:[^"\\\n]|\\.)*"|"(?:[^"\\]|\\.)*"(?=[\x20\t]*(?:[\r\n),.;:=!<>+*/%^|\]}(-]|\Z))'
)
"""A string that is closed, on its line or on a later one.

One whose closing quote is missing would end at the quote that begins the next string. What follows
that quote cannot follow a string, which tells the two apart.
"""


class LiteralError(ValueError):
    """A literal without a value: the sentence of the diagnostic, and perhaps a note."""

    def __init__(self, message: str, note: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.note = note


def is_fraction(text: str) -> bool:
    """Whether a numeric literal has a point or an exponent.

    >>> is_fraction("1e3"), is_fraction("0x1e3"), is_fraction("-2.50")
    (True, False, True)
    """
    return _INTEGER.fullmatch(text.removesuffix("u")) is None and "x" not in text.lower()


def read_integer(text: str) -> int:
    """Return the value of `7`, `-7`, `0xff` or `0b101`, with or without a trailing `u`.

    >>> read_integer("0xff"), read_integer("-12")
    (255, -12)
    """
    digits = text.removesuffix("u")
    if _INTEGER.fullmatch(digits) is None:
        raise LiteralError(f"`{shorten(text)}` is not a number.")
    if len(digits) > 100:  # `int` is slow for, and refuses, very long texts
        raise _out_of_range(text)
    prefix = digits.lstrip("-")[:2].lower()
    value = int(digits, {"0x": 16, "0b": 2}.get(prefix, 10))
    lowest = 0 if text.endswith("u") else NUMBER_RANGE[0]
    if not lowest <= value <= UNSIGNED_RANGE[1]:
        raise _out_of_range(text)
    return value


def read_address(text: str) -> int:
    """Return the number of an address such as `10.0.0.1`: its four bytes as a signed 32-bit word.

    >>> read_address("10.0.0.1"), read_address("255.255.255.255")
    (167772161, -1)
    """
    digits = text.split(".")
    if any(len(each) > 3 or int(each) > 255 for each in digits):
        raise LiteralError(f"`{shorten(text)}` is not an address.", "its numbers go from 0 to 255")
    return int.from_bytes(bytes(map(int, digits)), signed=True)


def _out_of_range(text: str) -> LiteralError:
    if text.endswith("u"):
        return LiteralError(
            f"The literal `{shorten(text)}` is out of range.",
            "`unsigned` goes from 0 to 18446744073709551615",
        )
    return LiteralError(
        f"The literal `{shorten(text)}` does not fit into 64 bits.",
        "`number` goes from -9223372036854775808 to 9223372036854775807; "
        "write a point, as in `1.0`, for a `float`",
    )


def read_fraction(text: str) -> Decimal:
    """Return the value of `12.50` or `1.5e-3`; the zero at the end is kept, it counts as scale.

    >>> read_fraction("12.50")
    Decimal('12.50')
    """
    if _FRACTION.fullmatch(text) is None:
        raise LiteralError(f"`{shorten(text)}` is not a number.")
    message = f"The literal `{shorten(text)}` is out of the range of `float`."
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise LiteralError(message) from None
    if len(text) > 1000 or abs(value.adjusted()) > 400 or not _fits(value):
        raise LiteralError(message)
    return value


def _fits(value: Decimal) -> bool:
    number = float(value)
    return number not in (float("inf"), float("-inf")) and (number != 0.0 or value == 0)


def read_string(text: str) -> str:
    r"""Return the characters between quotes, with escapes replaced.

    >>> read_string(r"a\tb \"c\"") == 'a\tb "c"'
    True
    """
    if not is_encodable(text):
        raise LiteralError(
            "The text has a NUL or half a surrogate pair, which are not characters.",
            "write the character itself, or leave it out",
        )
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def _unescape(found: re.Match[str]) -> str:
    escape = found.group(1)
    if escape.startswith("u") and len(escape) == 5:
        code = int(escape[1:], 16)
        if not is_encodable(chr(code)):
            message = f"The escape `\\{escape}` is not a character of a text."
            raise LiteralError(message, "write another character, or leave it out")
        return chr(code)
    if escape in _ESCAPED:
        return _ESCAPED[escape]
    raise LiteralError(
        f"The escape `\\{escape}` is not known.",
        'escapes are `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`, `\\a`, `\\b`, `\\f`, `\\v` and `\\u0041`; '
        "a backslash itself is written `\\\\`",
    )


def read_date(text: str) -> date:
    """Return the value of `d"2026-11-15"`.

    >>> read_date("2026-11-15")
    datetime.date(2026, 11, 15)
    """
    try:
        return parse_date(text)
    except ValueError:
        message = f"`{shorten(text)}` is not a date."
        raise LiteralError(message, 'a date is written d"2026-11-15"') from None


def read_time(text: str) -> datetime:
    """Return the value of `t"2026-11-15T08:00:00Z"`; the default time zone is UTC.

    >>> read_time("2026-11-15T09:00:00+01:00")
    datetime.datetime(2026, 11, 15, 8, 0, tzinfo=datetime.timezone.utc)
    """
    if _TIME.fullmatch(text) is not None:
        try:
            return iso_moment(text)
        except (ValueError, OverflowError):
            pass
    raise LiteralError(
        f"`{shorten(text)}` is not a point in time.",
        'a timestamp is written t"2026-11-15T08:00:00Z"',
    )


def shorten(text: str) -> str:
    """Return a text of at most 40 characters for a message."""
    return text if len(text) <= 40 else f"{text[:37]}…"
