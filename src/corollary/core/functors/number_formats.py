"""Formats of numbers as Spark's `to_char` and `to_number` have them: `S$9,999.99PR`.

The digits before the point are `0` or `9` in groups, each of which is written in full if it begins
with `0`.
"""

import re
from functools import lru_cache

from corollary.data_class import dataclass

_FORMAT = re.compile(
    r"(?P<sign>S|MI)?(?P<money>\$)?(?P<whole>[09]+(?:[,G][09]+)*)?"
    r"(?P<point>[.D](?P<fraction>[09]*))?(?P<end>S|MI|PR)?"
)


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format of numbers.

    Attributes:
        sign: the sign before the number, `S`, `MI` or nothing.
        has_money: whether `$` is before the digits.
        groups: the digits before the point.
        has_point: whether there is a point.
        scale: the number of digits after it.
        end: the sign after the number, `S`, `MI`, `PR` or nothing.
    """

    sign: str
    has_money: bool
    groups: tuple[str, ...]
    has_point: bool
    scale: int
    end: str

    @property
    def whole_digits(self) -> int:
        """The number of digits before the point."""
        return sum(map(len, self.groups))

    def write(self, unscaled: int, scale: int) -> str:
        """Return the text of a decimal; one that does not fit has `#` for digits.

        >>> read_number_format("S9,999.99").write(-12345, 2)
        '  -123.45'
        """
        digits = str(abs(unscaled)).rjust(scale, "0")
        point = len(digits) - scale
        whole, fraction = digits[:point].lstrip("0"), digits[point:].rstrip("0")
        if len(whole) > self.whole_digits or len(fraction) > self.scale:
            whole, fraction = "#" * self.whole_digits, "#" * self.scale
        found = "<" if self.end == "PR" and unscaled < 0 else ""
        found = _signed(found, self.sign, is_negative=unscaled < 0)
        found += "$" if self.has_money else ""
        rest = iter(whole.rjust(self.whole_digits))
        for at, group in enumerate(self.groups):
            if at:
                found = f"{found}," if found[-1:].isdigit() else _with_blank(found)
            for _, digit in zip(group, rest, strict=False):
                if digit != " ":
                    found += digit
                else:
                    found = f"{found}0" if group[0] == "0" else _with_blank(found)
        if self.has_point:
            found = f"{found[:-1]}0." if found.endswith(" ") else f"{found}."
            found += fraction.ljust(self.scale, "0")
        found = _without_point(_signed(found, self.end, is_negative=unscaled < 0))
        return "0" if found in ("", "+", "-") else found


def _signed(text: str, sign: str, *, is_negative: bool) -> str:
    """Return a text with a sign, which is before the blanks at its end."""
    match sign:
        case "S":
            mark = "-" if is_negative else "+"
        case "MI" if is_negative:
            mark = "-"
        case "PR" if is_negative:
            mark = ">"
        case _:
            return (_without_point(text) + "  ") if sign == "PR" else text + " " * bool(sign)
    text = _without_point(text)
    bare = text.rstrip(" ")
    return bare + mark + text[len(bare) :]


def _with_blank(text: str) -> str:
    """Return a text with a blank, which is before the signs at its end."""
    bare = text.rstrip("+-<")
    return f"{bare} {text[len(bare) :]}"


def _without_point(text: str) -> str:
    """Return a text without a point that no digit follows."""
    before, point, after = text.partition(".")
    return f"{before} {after}" if point and after[:1] in ("", " ") else text


@lru_cache(maxsize=1024)
def read_number_format(text: str) -> NumberFormat | None:
    """Return the format that a text says; None if it is none.

    >>> read_number_format("mi09,999d9")
    NumberFormat(sign='MI', has_money=False, groups=('09', '999'), has_point=True, scale=1, end='')
    """
    found = _FORMAT.fullmatch(text.upper())
    if found is None:
        return None
    sign, end, whole = (found[each] or "" for each in ("sign", "end", "whole"))
    scale = len(found["fraction"] or "")
    if not (whole or scale) or (sign and sign == end):
        return None
    groups = tuple(re.split("[,G]", whole)) if whole else ()
    has_point = found["point"] is not None
    return NumberFormat(sign, found["money"] is not None, groups, has_point, scale, end)
