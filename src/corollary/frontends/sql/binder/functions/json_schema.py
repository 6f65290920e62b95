"""`schema_of_json`: the type that Spark infers of a text of JSON.

A type is the one of a column, or, while it is inferred, None for null, a list with the type of its
elements, or a tuple of fields by name for a struct, which may have a name twice.

>>> infer_schema('{"b": [1, 2.5], "a": null}', {})
'STRUCT<a: STRING, b: ARRAY<DOUBLE>>'
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from corollary.core.functors.json_reading import (
    STRINGS,
    NoJsonError,
    check_digits,
    json_decoder,
    read_json,
)
from corollary.core.types import (
    BOOL,
    DECIMAL_MAX_DIGITS,
    FLOAT,
    NUMBER,
    NUMBER_RANGE,
    SYMBOL,
    Type,
    decimal,
)

SCHEMA_OPTIONS: Mapping[str, bool] = {
    "allownonnumericnumbers": True,
    "allownumericleadingzeros": False,
    "allowsinglequotes": True,
    "allowunquotedfieldnames": False,
    "dropfieldifallnull": False,
    "prefersdecimal": False,
    "primitivesasstring": False,
}
"""What the options of `schema_of_json` are if nothing is said, by their names in small letters."""

_LONG = decimal(20, 0)
"""The decimal that holds a BIGINT."""

_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NAMES = re.compile(
    STRINGS.pattern + r"| ([{,][ \t\r\n]*) ((?:[\w$@#*+-]|[^\0-\x7f])+) (?=[ \t\r\n]*:)",
    STRINGS.flags,
)
_ZEROS = re.compile(STRINGS.pattern + "| (?<![0-9.eE+-]) (-?) 0+ (?=[0-9])", STRINGS.flags)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def infer_schema(text: str, options: Mapping[str, bool]) -> str:
    """Return the type of a text of JSON in SQL.

    Args:
        text: the text.
        options: those of `SCHEMA_OPTIONS` that are said.

    Raises:
        ValueError: it is no JSON.
    """
    said = {**SCHEMA_OPTIONS, **options}
    if not text.strip(" \t\r\n"):
        return SYMBOL.spark_name
    if not said["allowsinglequotes"] and "'" in _DOUBLE_QUOTED.sub("", text):
        raise ValueError("It has single quotes")
    if said["allowunquotedfieldnames"]:
        text = _NAMES.sub(lambda found: f'{found[1]}"{found[2]}"' if found[2] else found[0], text)
    if said["allownumericleadingzeros"]:
        text = _ZEROS.sub(lambda found: found[0] if found[1] is None else found[1], text)

    def read_fraction(digits: str) -> bytes:
        check_digits(digits)
        if not (said["allownonnumericnumbers"] or digits[-1].isdigit()):
            raise ValueError(digits)
        return digits.encode()

    try:
        value = read_json(text, json_decoder(read_fraction, is_exact=True))
    except (NoJsonError, RecursionError):
        raise ValueError("It is no JSON") from None
    found = _infer(value, said)
    if isinstance(found, tuple):
        return _name(_canonical(found, said) or ())
    if isinstance(found, list) and isinstance(found[0], tuple):
        return _name([_canonical(found[0], said) or ()])
    return _name(_canonical(found, said) or SYMBOL)


def _infer(value: Any, options: Mapping[str, bool]) -> Any:
    match value:
        case None | "":
            return None
        case tuple():
            fields = [(name, _infer(each, options)) for name, each in value]
            # In the order of Java, which is the one of units of 16 bits.
            return tuple(sorted(fields, key=lambda field: field[0].encode("utf-16-be", "replace")))
        case list():
            found = None
            for each in value:
                found = _common(found, _infer(each, options))
            return [found]
        case str() if options["prefersdecimal"]:
            return _decimal_of_text(value.replace(",", "")) or SYMBOL
        case str():
            return SYMBOL
        case _ if options["primitivesasstring"]:
            return SYMBOL
        case bytes():
            return _number(value.decode(), is_decimal=options["prefersdecimal"])
        case _:
            return BOOL


def _number(digits: str, *, is_decimal: bool) -> Type:
    is_integer = digits.lstrip("-").isdigit()
    if is_integer and NUMBER_RANGE[0] <= int(digits) <= NUMBER_RANGE[1]:
        return NUMBER
    if not (is_integer or is_decimal):
        return FLOAT
    if not digits[-1].isdigit():
        raise ValueError(f"`{digits}` is no decimal")
    _, figures, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    if exponent > 0:
        raise ValueError(f"The decimal `{digits}` has a scale below 0")
    precision = max(len(figures), -exponent)
    return FLOAT if precision > DECIMAL_MAX_DIGITS else decimal(precision, -exponent)


def _decimal_of_text(text: str) -> Type | None:
    if not _NUMBER.fullmatch(text):
        return None
    _, figures, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    fits = 0 <= -exponent <= len(figures) <= DECIMAL_MAX_DIGITS
    return decimal(len(figures), -exponent) if fits else None


def _tightest(one: Any, other: Any) -> Any:
    """Return the type of both without a loss, in which capitals of names do not matter.

    Raises:
        LookupError: there is none.
    """
    if one is None or other is None or one == other:
        return other if one is None else one
    match one, other:
        case list(), list():
            return [_tightest(one[0], other[0])]
        case tuple(), tuple() if _names(one) == _names(other):
            pairs = zip(one, other, strict=True)
            return tuple((name, _tightest(each, there)) for (name, each), (_, there) in pairs)
        case Type(), Type() if {one, other} == {NUMBER, FLOAT}:
            return FLOAT
        case Type(), Type() if NUMBER in (one, other):
            wide = other if one == NUMBER else one
            if wide.is_decimal and wide.precision - wide.scale >= _LONG.precision:
                return wide
    raise LookupError


def _names(fields: tuple[tuple[str, Any], ...]) -> list[str]:
    return [name.lower() for name, _ in fields]


def _common(one: Any, other: Any) -> Any:
    """Return the type of values of both; in the end it is a text."""
    try:
        return _tightest(one, other)
    except LookupError:
        pass
    match one, other:
        case tuple(), tuple():
            return _merged(one, other)
        case list(), list():
            return [_common(one[0], other[0])]
        case Type(), Type() if one.is_decimal or other.is_decimal:
            if FLOAT in (one, other):
                return FLOAT
            one, other = (_LONG if each == NUMBER else each for each in (one, other))
            if one.is_decimal and other.is_decimal:
                scale = max(one.scale, other.scale)
                digits = scale + max(one.precision - one.scale, other.precision - other.scale)
                return FLOAT if digits > DECIMAL_MAX_DIGITS else decimal(digits, scale)
    return SYMBOL


def _merged(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the fields of two structs, those of equal names in pairs."""
    rest, found = list(other), []
    for name, each in one:
        key = name.encode("utf-16-be", "replace")
        while rest and rest[0][0].encode("utf-16-be", "replace") < key:
            found.append(rest.pop(0))
        same = bool(rest) and rest[0][0] == name
        found.append((name, _common(each, rest.pop(0)[1]) if same else each))
    return (*found, *rest)


def _canonical(type_: Any, options: Mapping[str, bool]) -> Any:
    """Return a type without structs that have no fields; None if nothing is left."""
    match type_:
        case list():
            element = _canonical(type_[0], options)
            return element and [element]
        case tuple():
            fields = ((name, _canonical(each, options)) for name, each in type_ if name)
            return tuple((name, each) for name, each in fields if each) or None
        case None if options["dropfieldifallnull"]:
            return None
        case _:
            return type_ or SYMBOL


def _name(type_: Any) -> str:
    match type_:
        case list():
            return f"ARRAY<{_name(type_[0])}>"
        case tuple():
            return f"STRUCT<{', '.join(f'{_quoted(name)}: {_name(x)}' for name, x in type_)}>"
        case _:
            return str(type_.spark_name)


def _quoted(name: str) -> str:
    text = name.encode(errors="replace").decode()  # half of a surrogate pair is "?" in Java
    return text if _WORD.fullmatch(text) else f"`{text.replace('`', '``')}`"
