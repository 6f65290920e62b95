"""Functors of logic, choice, numbers, text and casts for the oracle, by Python and `re2` alone.

A function gets Python values. `STRICT` ones never get null; `OWN` ones get null as None and a value
that failed as a `Failure` of the evaluator, which they tell by `is_failure`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import re2

Value = Any
TEXT_MAX = 2**24


class Missing(Exception):  # noqa: N818 (a verdict of a functor, not a mistake)
    """There is no value."""


def key(value: Value) -> Value:
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "eq": lambda x, y: key(x) == key(y),
    "ne": lambda x, y: key(x) != key(y),
    "lt": lambda x, y: key(x) < key(y),
    "le": lambda x, y: key(x) <= key(y),
    "gt": lambda x, y: key(x) > key(y),
    "ge": lambda x, y: key(x) >= key(y),
}


# ------------------------------------------------------------------------------- logic and choice


def own(name: str, is_failure: Callable[[Value], bool], values: list[Value]) -> Value:
    """The value of a functor that decides itself about null and failures."""
    failed = [value for value in values if is_failure(value)]
    if name in ("and", "or"):
        decisive = name == "or"
        if any(value is decisive for value in values):
            return decisive
        if failed:
            return failed[0]
        return None if None in values else not decisive
    if name == "if":
        for at in range(0, len(values) - 1, 2):
            if is_failure(values[at]) or values[at] is True:
                return values[at] if is_failure(values[at]) else values[at + 1]
        return values[-1]
    if name == "coalesce":
        return next((value for value in values if value is not None), None)
    if name == "try":
        return None if failed else values[0]
    if failed:
        return failed[0]
    if name == "is_null":
        return values[0] is None
    present = [value for value in values if value is not None]
    if name == "same":
        return not present or (len(present) == 2 and COMPARE["eq"](*present))
    if name == "null_if":
        return None if len(present) == 2 and COMPARE["eq"](*present) else values[0]
    if not present:
        return None
    return (max if name == "greatest" else min)(present, key=key)


OWN = ("and", "or", "if", "coalesce", "try", "is_null", "same", "null_if", "greatest", "least")
CHOICES = ("if", "coalesce", "null_if", "greatest", "least")


def like(text: str, pattern: str) -> bool:
    """By dynamic programming over the pattern, not by a regular expression."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            tokens.append(("char", pattern[at]))
        else:
            tokens.append(({"%": "any", "_": "one"}.get(char, "char"), char))
        at += 1
    reached = {0}
    for kind, char in tokens:
        if kind == "any":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {
                i + 1 for i in reached if i < len(text) and (kind == "one" or text[i] == char)
            }
    return len(text) in reached


# ---------------------------------------------------------------------------------------- numbers


def nearest(value: Fraction) -> int:
    """Half away from zero."""
    whole = math.floor(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole


def digits(integer: int, scale: int, precision: int = 38) -> Decimal:
    if abs(integer) >= 10**precision:
        raise Missing("overflow of decimal")
    return Decimal(f"{integer}e-{scale}")


def long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Missing("overflow of number")
    return value


def scaled(value: Fraction, scale: int) -> Decimal:
    return digits(nearest(value * 10**scale), scale)


def multiply(x: Decimal, y: Decimal, scale: int) -> Decimal:
    return scaled(Fraction(x) * Fraction(y), scale)


def divide(x: Decimal, y: Decimal, scale: int) -> Decimal:
    if y == 0:
        raise Missing("division by zero")
    return scaled(Fraction(x) / Fraction(y), scale)


def rem(type_: str, scale: int, x: Value, y: Value) -> Value:
    if y == 0:
        raise Missing("division by zero")
    if type_ == "float":
        return math.nan if math.isinf(x) or math.isnan(x) or math.isnan(y) else math.fmod(x, y)
    rest = Fraction(x) - Fraction(y) * int(Fraction(x) / Fraction(y))
    return scaled(rest, scale) if type_ == "decimal" else int(rest)


def round_to(type_: str, scale: int, x: Value, places: int) -> Value:
    if type_ == "float":
        if not math.isfinite(x):
            return x
        exact = Fraction(Decimal(repr(x)))
        rounded = Fraction(nearest(exact * Fraction(10) ** places)) / Fraction(10) ** places
        try:
            return float(rounded)
        except OverflowError:
            raise Missing("overflow of float") from None
    if type_ == "decimal":
        step = Fraction(10) ** min(places, scale)
        return scaled(Fraction(nearest(Fraction(x) * step)) / step, scale)
    if places >= 0:
        return x
    found = nearest(Fraction(x, 10**-places)) * 10**-places
    if not (0 <= found < 2**64 if type_ == "unsigned" else -(2**63) <= found < 2**63):
        raise Missing("overflow of round_to")
    return found


def fit(x: Decimal, precision: int) -> Decimal:
    if abs(Fraction(x)) * 10 ** -int(x.as_tuple().exponent) >= 10**precision:
        raise Missing("too many digits")
    return x


def whole(x: Value, towards: Callable[[Fraction], int]) -> int:
    if isinstance(x, float) and not math.isfinite(x):
        raise Missing("no integer")
    return long(towards(Fraction(x)))


def absolute(type_: str, x: Value) -> Value:
    if type_ == "number":
        return long(-x if x < 0 else x)
    return x.copy_abs() if isinstance(x, Decimal) else abs(x)


def sign(x: Value) -> Value:
    if isinstance(x, float):
        return x if math.isnan(x) else float((x > 0) - (x < 0))
    return (x > 0) - (x < 0)


def sqrt(x: float) -> float:
    if x < 0:
        raise Missing("root of a negative number")
    return math.sqrt(x)


def power(x: float, y: float) -> float:
    """The nearest float, by decimals; a base of 1 is Java's, not C's."""
    if math.isnan(y) or (math.isinf(y) and abs(x) == 1.0):
        return math.nan
    if y == 0.0 or x == 0.0 or not math.isfinite(x) or not math.isfinite(y):
        return math.inf if x == 0.0 and y < 0 else math.pow(x, y)
    if x < 0 and not y.is_integer():
        return math.nan
    with localcontext(Context(prec=60)):
        logarithm = abs(Decimal(x)).ln() * Decimal(y)
        if abs(logarithm) > 2000:
            found = math.inf if logarithm > 0 else 0.0
        else:
            found = float(logarithm.exp())
    return -found if x < 0 and y % 2 else found


def to_integer(x: Value, bits: int) -> int:
    # Spark compares a float with 2^63 - 1 as a float, which is 2^63.
    found = 2**63 - 1 if isinstance(x, float) and x == 2.0**63 else whole(x, int)
    if not -(2 ** (bits - 1)) <= found < 2 ** (bits - 1):
        raise Missing("too large")
    return found


# ------------------------------------------------------------------------------------------- text


def short(text: str) -> str:
    if len(text) > TEXT_MAX:
        raise Missing("text too long")
    return text


def part(text: str, first: int, length: int) -> str:
    start = first - 1 if first > 0 else len(text) + first if first < 0 else 0
    return "".join(char for at, char in enumerate(text) if start <= at < start + length)


def pad(text: str, size: int, filling: str, at_left: bool) -> str:
    if size <= len(text) or not filling:
        return text[: max(size, 0)]
    if size > TEXT_MAX:
        raise Missing("text too long")
    more = (filling * size)[: size - len(text)]
    return more + text if at_left else text + more


def repeat(text: str, count: int) -> str:
    if len(text) * max(count, 0) > TEXT_MAX:
        raise Missing("text too long")
    return text * max(count, 0)


def split_part(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise Missing("part number 0")
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def regexp_replace(text: str, pattern: str, by: str) -> str:
    """`$1` in the replacement is a group, `\\x` is x."""
    compiled = re2.compile(pattern)
    if compiled.search(text) is None:  # so that the replacement is not read
        return text
    written: list[str | int] = []
    at = 0
    while at < len(by):
        if by[at] == "\\" and at + 1 < len(by):
            written.append(by[at + 1])
            at += 2
        elif by[at] == "$" and by[at + 1 : at + 2].isdigit():
            number = int(by[at + 1])
            if number > compiled.groups:
                raise Missing("no such group")
            written.append(number)
            at += 2
        elif by[at] in "\\$":
            raise Missing("bad replacement")
        else:
            written.append(by[at])
            at += 1
    out, end = [], 0
    for found in compiled.finditer(text):
        out.append(text[end : found.start()])
        out += [each if isinstance(each, str) else found.group(each) or "" for each in written]
        end = found.end()
    return short("".join(out) + text[end:])


def regexp_extract(text: str, pattern: str, group: int) -> str:
    found = re2.compile(pattern).search(text)
    return "" if found is None else found.group(group) or ""


def character(number: int) -> str:
    if number < 0:
        return ""
    if number % 256 == 0:
        raise Missing("no text has the character 0")
    return chr(number % 256)


# ------------------------------------------------------------------------------------------ casts


def trimmed(text: str) -> str:
    return text.strip("".join(map(chr, range(33))))


def parse_integer(text: str) -> int:
    text = trimmed(text)
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise Missing("no integer")
    return long(int(text)) if len(text) < 4000 else long(2**70)


def parse_float(text: str) -> float:
    text = trimmed(text)
    if re.fullmatch("[+-]?(inf|infinity|nan)", text.lower()):
        return float(text)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Missing("no float")
    return float(text)


def parse_decimal(text: str, scale: int) -> Decimal:
    found = re.fullmatch(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,6}))?", trimmed(text))
    if not found or not (found[2] or found[3]):
        raise Missing("no decimal")
    shift = int(found[4] or 0) - len(found[3])
    number = int(found[2] + found[3])
    if number and shift + len(str(number)) > 60:
        raise Missing("overflow of decimal")
    if not number or shift + len(str(number)) < -60:
        return digits(0, scale)
    value = Fraction(number) * Fraction(10) ** shift
    return scaled(-value if found[1] == "-" else value, scale)


def parse_bool(text: str) -> bool:
    word = trimmed(text).lower()
    if word in ("t", "true", "y", "yes", "1"):
        return True
    if word in ("f", "false", "n", "no", "0"):
        return False
    raise Missing("no bool")


def parse_day(text: str) -> date:
    head = re.split("[ T]", trimmed(text), maxsplit=1)
    parts = head[0].removeprefix("+").split("-")
    plain = all(part.isascii() and part.isdigit() for part in parts)
    if not plain or not 4 <= len(parts[0]) <= 7 or any(not 1 <= len(p) <= 2 for p in parts[1:]):
        raise Missing("no date")
    if len(parts) > 3 or (len(head) > 1 and len(parts) < 3):
        raise Missing("no date")
    try:
        return date(*(*map(int, parts), 1, 1)[:3])
    except ValueError:
        raise Missing("no date") from None


def parse_moment(text: str) -> datetime:
    text = trimmed(text)
    day = parse_day(text)
    clock = re.split("[ T]", text, maxsplit=1)[1:]
    if not clock:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    found = re.fullmatch(
        r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?"
        r" *(?:(Z|UTC|GMT)|(?:UTC|GMT)?([+-])([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?)?)?)?",
        clock[0],
    )
    if not found:
        raise Missing("no time")
    hour, minute, second, fraction, _, direction, *offset = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6] or 0)
    zone = timedelta()
    if direction:
        h, m, s = (int(each or 0) for each in offset)
        if h > 18 or m > 59 or s > 59 or (h == 18 and m + s):
            raise Missing("no zone")
        zone = timedelta(hours=h, minutes=m, seconds=s) * (-1 if direction == "-" else 1)
    try:
        local = datetime(
            day.year, day.month, day.day, int(hour), int(minute or 0), int(second or 0), micros,
            timezone(zone),
        )  # fmt: skip
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Missing("no time") from None


def show(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        text = value.strftime("%H:%M:%S")
        fraction = f".{value.microsecond:06}".rstrip("0").rstrip(".")
        return f"{value.year:04}-{value.month:02}-{value.day:02} {text}{fraction}"
    if isinstance(value, time):
        return f"{value:%H:%M:%S}" + f".{value.microsecond:06}".rstrip("0").rstrip(".")
    if isinstance(value, float):
        return show_float(value)
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, timedelta):
        sign, rest = ("-", -value) if value < timedelta(0) else ("", value)
        minutes, second = divmod(rest.seconds, 60)
        fraction = f".{rest.microseconds:06}".rstrip("0").rstrip(".")
        clock = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{fraction}"
        return f"INTERVAL '{sign}{rest.days} {clock}' DAY TO SECOND"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def show_float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0.0"
    minus, figures, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, figures)).rstrip("0")
    place = len(figures) + int(exponent)  # the point is behind so many digits
    front = "-" if minus else ""
    if 10**-3 <= abs(value) < 10**7:
        padded = "0" * max(0, 1 - place) + text.ljust(place, "0")
        place = max(place, 1)
        return f"{front}{padded[:place]}.{padded[place:] or '0'}"
    return f"{front}{text[0]}.{text[1:] or '0'}E{place - 1}"


# ----------------------------------------------------------------------------------------- tables


STRICT: dict[str, Callable[..., Value]] = {
    "not": lambda x: not x,
    **COMPARE,
    "like": like,
    "rlike": lambda text, pattern: re2.compile(pattern).search(text) is not None,
    "starts_with": lambda text, start: text[: len(start)] == start,
    "ends_with": lambda text, end: text[max(len(text) - len(end), 0) :] == end,
    "has_text": lambda text, inner: inner in text,
    "multiply": multiply,
    "divide": divide,
    "fit": fit,
    "floor": lambda x: whole(x, math.floor),
    "ceil": lambda x: whole(x, math.ceil),
    "sign": sign,
    "sqrt": sqrt,
    "power": power,
    "to_integer": to_integer,
    "upper": lambda text: text.upper(),
    "lower": lambda text: text.lower(),
    "trim": lambda text, characters=" ": text.strip(characters),
    "ltrim": lambda text, characters=" ": text.lstrip(characters),
    "rtrim": lambda text, characters=" ": text.rstrip(characters),
    "reverse": lambda text: "".join(reversed(text)),
    "initcap": initcap,
    "replace": lambda text, old, new: short(new.join(text.split(old)) if old else text),
    "substring": part,
    "left": lambda text, count: text[: max(count, 0)],
    "right": lambda text, count: text[max(len(text) - count, 0) :] if count > 0 else "",
    "position": lambda inner, text: text.find(inner) + 1,
    "lpad": lambda text, size, filling: pad(text, size, filling, at_left=True),
    "rpad": lambda text, size, filling: pad(text, size, filling, at_left=False),
    "repeat": repeat,
    "split_part": split_part,
    "regexp_replace": regexp_replace,
    "regexp_extract": regexp_extract,
    "chr": character,
    "ascii": lambda text: ord(text[0]) if text else 0,
    "parse_integer": parse_integer,
    "parse_float": parse_float,
    "parse_decimal": parse_decimal,
    "parse_bool": parse_bool,
    "parse_day": parse_day,
    "parse_moment": parse_moment,
    "show": show,
}  # fmt: skip
TYPED: dict[str, Callable[..., Value]] = {"rem": rem, "round_to": round_to}
"""Those that get the name of their type, and its scale, before the values."""

S, N, B, F, D = "symbol", "number", "bool", "float", "decimal"
RESULTS = {
    **dict.fromkeys(("and", "or", "not", *COMPARE, "same", "is_null"), B),
    **dict.fromkeys(("like", "rlike", "starts_with", "ends_with", "has_text", "parse_bool"), B),
    **dict.fromkeys(("floor", "ceil", "sign", "to_integer", "position", "ascii"), N),
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap"), S),
    **dict.fromkeys(("replace", "substring", "left", "right", "lpad", "rpad", "repeat"), S),
    **dict.fromkeys(("split_part", "regexp_replace", "regexp_extract", "chr", "show"), S),
    **dict.fromkeys(("sqrt", "power", "parse_float"), F),
    "parse_integer": N, "parse_day": "date", "parse_moment": "timestamp",
}  # fmt: skip
SCALED = {"multiply": 2, "divide": 2, "parse_decimal": 1}
LIKE_FIRST = ("try", "abs", "round_to", "fit", "null_if")
ALIKE = ("rem", "greatest", "least", "coalesce", "if")
PARAMETERS: dict[str, tuple[str | None, ...]] = {
    "not": (B,),
    **dict.fromkeys(("like", "rlike", "starts_with", "ends_with", "has_text", "position"), (S, S)),
    **dict.fromkeys(("multiply", "divide"), (D, D, N)),
    "fit": (D, N), "sqrt": (F,), "power": (F, F),
    **dict.fromkeys(("floor", "ceil", "abs", "sign", "try", "is_null", "show"), (None,)),
    **dict.fromkeys(("round_to", "to_integer"), (None, N)),
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap"), (S,)),
    "replace": (S, S, S), "substring": (S, N, N), "left": (S, N), "right": (S, N),
    "lpad": (S, N, S), "rpad": (S, N, S), "repeat": (S, N), "split_part": (S, S, N),
    "regexp_replace": (S, S, S), "regexp_extract": (S, S, N), "chr": (N,), "ascii": (S,),
    **dict.fromkeys(("parse_integer", "parse_float", "parse_bool", "parse_day"), (S,)),
    "parse_moment": (S,),
    "parse_decimal": (S, N),
}  # fmt: skip
COMPARED = (*COMPARE, "same", "null_if")
ARITIES = {
    **{name: (len(taken), len(taken)) for name, taken in PARAMETERS.items()},
    **dict.fromkeys((*COMPARED, "rem"), (2, 2)),
    **dict.fromkeys(("and", "or", "coalesce", "greatest", "least"), (2, 99)),
    "if": (3, 999),
}
NAMES = frozenset(ARITIES)
NUMERIC = ("floor", "ceil", "abs", "sign", "round_to", "rem", "to_integer")
LITERALS: dict[tuple[str, int], tuple[int, ...]] = {
    ("multiply", 2): tuple(range(39)), ("divide", 2): tuple(range(39)),
    ("parse_decimal", 1): tuple(range(39)), ("fit", 1): tuple(range(1, 39)),
    ("round_to", 1): tuple(range(-38, 39)), ("to_integer", 1): (8, 16, 32, 64),
}  # fmt: skip
