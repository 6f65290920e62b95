"""Formats of `format_string`, which are those of `java.util.Formatter`.

A double has the fewest digits that mean it, which are rounded half up, as Java does from 21 on;
earlier ones have more digits for a few doubles from 2^53 on.
"""

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from math import copysign, isfinite, isnan

from corollary.data_class import dataclass

WIDTH_MAX = 1000
"""No width and no precision is larger."""

_PART = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])", re.ASCII)
_FLAGS = {"d": "-+ 0,(", "x": "-#0", "o": "-#0", "e": "-#+ 0(", "f": "-#+ 0,(", "g": "-+ 0,("}
_CAPITALS = "SBCXEG"
_WIDE = Context(prec=2000, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class FormatPart:
    """A part of a format, such as `%2$-8.3f`.

    Attributes:
        argument: the number of the value from 0 on; None for `%%` and `%n`.
        letter: the small letter of the conversion.
    """

    argument: int | None
    flags: str
    width: int
    precision: int | None
    letter: str
    is_capital: bool

    @property
    def text(self) -> str:
        """The conversion without its argument."""
        width = str(self.width or "")
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{width}{precision}{self._letter}"

    @property
    def _letter(self) -> str:
        return self.letter.upper() if self.is_capital else self.letter

    def show_text(self, text: str) -> str:
        """Return a text, cut off and filled up; Java counts units of 16 bits."""
        if self.precision is not None:
            units = text.encode("utf-16-le", "surrogatepass")[: 2 * self.precision]
            text = units.decode("utf-16-le", "ignore")
            text += "?" * (len(units) > len(text.encode("utf-16-le")))
        return self._filled(text)

    def _filled(self, text: str) -> str:
        text = text.upper() if self.is_capital else text
        missing = " " * (self.width - len(text.encode("utf-16-le")) // 2)
        return text + missing if "-" in self.flags else missing + text

    def show_character(self, code: int) -> str:
        """Return the character of a number.

        Raises:
            ValueError: there is none.
        """
        return self._filled("?" if 0xD800 <= code < 0xE000 else chr(code))

    def show_integer(self, value: int, bits: int) -> str:
        """Return an integer of so many bits; those of a negative one are its digits to base 16."""
        if self.letter == "d":
            digits = f"{abs(value):{',' if ',' in self.flags else ''}}"
            return self._filled(self._signed(digits, value < 0))
        prefix = {"x": "0x", "o": "0"}[self.letter] if "#" in self.flags else ""
        digits = f"{value % (1 << bits):{self.letter}}"
        zeros = self.width - len(prefix) if "0" in self.flags else 0
        return self._filled(prefix + digits.rjust(zeros, "0"))

    def show_float(self, value: float) -> str:
        """Return a double."""
        if isnan(value):
            return self._filled("NaN")
        is_negative = copysign(1, value) < 0
        if not isfinite(value):
            return self._filled(self._signed("Infinity", is_negative, with_zeros=False))
        digits, places = _digits(abs(value)), self.precision
        places = 6 if places is None else places
        if self.letter == "f":
            shown = _fixed(digits, places)
        elif self.letter == "e":
            shown = _scientific(digits, places)
        else:
            shown = _general(digits, places or 1)
        mantissa, e, exponent = shown.partition("e")
        if "," in self.flags and not e:
            whole, point, rest = mantissa.partition(".")
            mantissa = f"{int(whole):,}{point}{rest}"
        if "#" in self.flags and "." not in mantissa:
            mantissa += "."
        return self._filled(self._signed(mantissa, is_negative, e + exponent))

    def _signed(
        self, digits: str, is_negative: bool, end: str = "", *, with_zeros: bool = True
    ) -> str:
        """Return digits with a sign, and zeros in between."""
        before = "+" if "+" in self.flags else " " if " " in self.flags else ""
        if is_negative:
            before, after = ("(", ")") if "(" in self.flags else ("-", "")
        else:
            after = ""
        if with_zeros and "0" in self.flags:
            digits = digits.rjust(self.width - len(before + end + after), "0")
        return before + digits + end + after


def _digits(value: float) -> Decimal:
    """Return the fewest digits that mean a double, at least two as in Java: 4.9e-324."""
    found = Decimal(repr(value))
    return found if len(found.as_tuple().digits) > 1 else Decimal(f"{value:.1e}")


def _fixed(digits: Decimal, places: int) -> str:
    return f"{digits.quantize(Decimal(1).scaleb(-places), context=_WIDE):.{places}f}"


def _scientific(digits: Decimal, places: int) -> str:
    if not digits:
        return f"{_fixed(digits, places)}e+00"
    rounded = Context(prec=places + 1, rounding=ROUND_HALF_UP).plus(digits)
    mantissa, _, exponent = f"{rounded:.{places}e}".partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].rjust(2, '0')}"


def _general(digits: Decimal, count: int) -> str:
    rounded = Context(prec=count, rounding=ROUND_HALF_UP).plus(digits)
    if not digits:
        return _fixed(digits, count - 1)
    if Decimal("0.0001") <= rounded < Decimal(10) ** count:
        return _fixed(digits, count - 1 - rounded.adjusted())
    return _scientific(digits, count - 1)


def read_format(text: str) -> Iterator[str | FormatPart]:
    """Yield the parts of a format: texts as they are, and conversions.

    Raises:
        ValueError: it is no format, or has a conversion that is not known here: the part.

    >>> [each if isinstance(each, str) else each.text for each in read_format("a %s%%%5.1f")]
    ['a ', '%s', '%', '%5.1f']
    """
    at, following, last = 0, 0, None
    for found in _PART.finditer(text):
        before = text[at : found.start()]
        if "%" in before:
            raise ValueError(before)
        if before:
            yield before
        at = found.end()
        index, flags, width, precision, letter = found.groups()
        if letter in "%n":
            one = FormatPart(None, flags, int(width or 0), None, "s", False)
            is_known = width is None if letter == "n" else set(flags) <= {"-"}
            if precision is not None or not is_known or (flags and (letter == "n" or not width)):
                raise ValueError(found[0])
            yield "\n" if letter == "n" else one.show_text("%")
            continue
        if "<" in flags:
            argument = last
        elif index is not None:
            argument = int(index) - 1
        else:
            argument, following = following, following + 1
        last = argument
        one = FormatPart(
            argument,
            flags.replace("<", ""),
            int(width or 0),
            None if precision is None else int(precision),
            letter.lower(),
            letter.isupper(),
        )
        if not _is_known(one, found[0], letter):
            raise ValueError(found[0])
        yield one
    if "%" in text[at:]:
        raise ValueError(text[at:])
    if text[at:]:
        yield text[at:]


def _is_known(one: FormatPart, text: str, letter: str) -> bool:
    flags = one.flags
    return (
        one.argument is not None
        and one.argument >= 0
        and (letter in "sbcdxoefg" or letter in _CAPITALS)
        and set(flags) <= set(_FLAGS.get(one.letter, "-"))
        and len(set(flags)) == len(flags)
        and text.count("<") <= 1
        and not {"-", "0"} <= set(flags)
        and not {"+", " "} <= set(flags)
        and (one.width > 0 or not {"-", "0"} & set(flags))
        and (one.precision is None or one.letter in "sbefg")
        and max(one.width, one.precision or 0) <= WIDTH_MAX
    )


@lru_cache(maxsize=256)
def read_conversion(text: str) -> FormatPart:
    """Return the conversion that a text is.

    Raises:
        ValueError: it is none, or more.
    """
    found = [*read_format(text)]
    if len(found) != 1 or not isinstance(found[0], FormatPart):
        raise ValueError(f"`{text}` is not one conversion")
    return found[0]


def show_formatted(value: float | Decimal | str, form: str, bits: int) -> str:
    """Return a value as a conversion writes it.

    Raises:
        ValueError: there is no such character.

    >>> show_formatted(2.675, "%+.2f", 64), show_formatted(-1, "%x", 8)
    ('+2.68', 'ff')
    """
    conversion = read_conversion(form)
    if isinstance(value, int):
        if conversion.letter == "c":
            return conversion.show_character(value)
        return conversion.show_integer(value, bits)
    if isinstance(value, float):
        return conversion.show_float(value)
    return conversion.show_text(str(value))
