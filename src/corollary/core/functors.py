"""The signatures of functors: the number and types of arguments, and the type of the result.

>>> result_type("+", (decimal(12, 2), decimal(5, 3)))
Type(kind=<Kind.DECIMAL: 'decimal'>, nullable=False, precision=18, scale=3)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corollary.core.types import DECIMAL_MAX_DIGITS, NUMERIC, Kind, Type, decimal

Kinds = frozenset[Kind]

ANY: Kinds = frozenset(Kind)
INTEGRAL: Kinds = frozenset({Kind.NUMBER, Kind.UNSIGNED})
_NUMBER: Kinds = frozenset({Kind.NUMBER})
_SYMBOL: Kinds = frozenset({Kind.SYMBOL})
_DATES: Kinds = frozenset({Kind.DATE})
_MOMENTS: Kinds = frozenset({Kind.TIMESTAMP})
_DAYS: Kinds = _DATES | _MOMENTS
_COUNTABLE: Kinds = INTEGRAL | {Kind.FLOAT}
_CONVERTIBLE: Kinds = NUMERIC | {Kind.SYMBOL, Kind.BOOL}


@dataclass(frozen=True, slots=True)
class FunctorSignature:
    """The parameters and the result of a functor.

    Attributes:
        name: the operator's sign or the function's name.
        parameters: the kinds that each argument may have.
        optional: the number of parameters at the end that may be left out.
        is_variadic: whether the last parameter may be repeated.
        result: the kind of the result; None where all operands and the result have one kind, or
            where it is that of the first operand.
        is_like_first: whether the result has the kind of the first operand, and others their own.
        is_fallible: whether it can fail at run time (overflow, division by zero, conversion).
        is_expanding: whether applying it repeatedly can make new values without end.
    """

    name: str
    parameters: tuple[Kinds, ...]
    optional: int = 0
    is_variadic: bool = False
    result: Kind | None = None
    is_fallible: bool = False
    is_expanding: bool = False
    is_like_first: bool = False

    @property
    def min_arguments(self) -> int:
        """The smallest number of arguments."""
        return len(self.parameters) - self.optional

    @property
    def max_arguments(self) -> int | None:
        """The largest number of arguments; None without a bound."""
        return None if self.is_variadic else len(self.parameters)

    def accepts(self, count: int) -> bool:
        """Whether it can be applied to `count` arguments."""
        return self.min_arguments <= count and (
            self.max_arguments is None or count <= self.max_arguments
        )

    def kinds(self, position: int) -> Kinds:
        """Return the kinds that the argument at a position may have."""
        return self.parameters[min(position, len(self.parameters) - 1)]


def _arithmetic() -> Iterable[FunctorSignature]:
    for name in "+-*/":
        yield FunctorSignature(name, (NUMERIC, NUMERIC), is_fallible=True, is_expanding=True)
    yield FunctorSignature("%", (INTEGRAL, INTEGRAL), is_fallible=True)
    yield FunctorSignature("^", (_COUNTABLE, _COUNTABLE), is_fallible=True, is_expanding=True)
    yield FunctorSignature("neg", (NUMERIC,), is_fallible=True)
    for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"):
        yield FunctorSignature(name, (INTEGRAL, INTEGRAL))
    for name in ("bnot", "lnot"):
        yield FunctorSignature(name, (INTEGRAL,))
    for name in ("min", "max"):
        yield FunctorSignature(name, (ANY, ANY), is_variadic=True)
    yield FunctorSignature(
        "range",
        (_COUNTABLE, _COUNTABLE, _COUNTABLE),
        optional=1,
        is_fallible=True,
        is_expanding=True,
    )


def _text() -> Iterable[FunctorSignature]:
    yield FunctorSignature(
        "cat", (_SYMBOL, _SYMBOL), is_variadic=True, result=Kind.SYMBOL, is_expanding=True
    )
    yield FunctorSignature("strlen", (_SYMBOL,), result=Kind.NUMBER)
    yield FunctorSignature("substr", (_SYMBOL, _NUMBER, _NUMBER), result=Kind.SYMBOL)
    yield FunctorSignature("ord", (_SYMBOL,), result=Kind.NUMBER, is_expanding=True)


def _conversions() -> Iterable[FunctorSignature]:
    for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT):
        yield FunctorSignature(f"to_{kind}", (_CONVERTIBLE,), result=kind, is_fallible=True)
    yield FunctorSignature("to_string", (ANY,), result=Kind.SYMBOL)
    yield FunctorSignature(
        "to_decimal", (NUMERIC | _SYMBOL, _NUMBER), result=Kind.DECIMAL, is_fallible=True
    )
    yield FunctorSignature(
        "to_date",
        (frozenset({Kind.SYMBOL, Kind.TIMESTAMP}),),
        result=Kind.DATE,
        is_fallible=True,
    )
    yield FunctorSignature(
        "to_timestamp",
        (frozenset({Kind.SYMBOL, Kind.DATE}),),
        result=Kind.TIMESTAMP,
        is_fallible=True,
    )


TIME_FORMATS = {
    "format_time": "YmdHMSfjuGVaAbB",
    "parse_date": "YmdjbB",
    "parse_time": "YmdHMSfjbB",
}
"""The functors whose second argument is a format, and the letters that may follow `%` in it."""

_SHORT_FORMATS = {"%F": ("%Y", "-", "%m", "-", "%d"), "%T": ("%H", ":", "%M", ":", "%S")}


def read_time_format(name: str, text: str) -> tuple[str, ...]:
    """Return the parts of a format: directives such as `%Y`, and texts.

    >>> read_time_format("format_time", "on %F, 100%%")
    ('on ', '%Y', '-', '%m', '-', '%d', ', 100', '%%')

    Raises:
        ValueError: the format makes no sense; the message says why.
    """
    written = re.findall(r"%.?|[^%]+", text, re.DOTALL)
    parts = tuple(each for part in written for each in _SHORT_FORMATS.get(part, (part,)))
    directives = [part for part in parts if part.startswith("%") and part != "%%"]
    for part in directives:
        if len(part) == 1 or part[1] not in TIME_FORMATS[name]:
            known = ", ".join(f"`%{letter}`" for letter in TIME_FORMATS[name])
            raise ValueError(f"`{part}` is not known in it; there are {known} and `%%`")
    if name != "format_time":
        read = ["%m" if part in ("%b", "%B") else part for part in directives]
        if "%Y" not in read:
            raise ValueError("it has no year, `%Y`")
        if len(set(read)) < len(read):
            raise ValueError("it has a part of the date or time twice")
        if "%j" in read and not {"%m", "%d"}.isdisjoint(read):
            raise ValueError("the day of the year, `%j`, goes without month and day")
    return parts


def _times() -> Iterable[FunctorSignature]:
    for name in ("year", "quarter", "month", "day", "week_year", "week", "weekday", "day_of_year"):
        yield FunctorSignature(name, (_DAYS,), result=Kind.NUMBER)
    for name in ("hour", "minute", "second", "microsecond"):
        yield FunctorSignature(name, (_MOMENTS,), result=Kind.NUMBER)
    yield FunctorSignature("days_between", (_DATES, _DATES), result=Kind.NUMBER)
    for name in ("seconds_between", "microseconds_between"):
        yield FunctorSignature(name, (_MOMENTS, _MOMENTS), result=Kind.NUMBER)
    for name, kinds in (("add_days", _DAYS), ("add_months", _DAYS), ("add_seconds", _MOMENTS)):
        yield FunctorSignature(
            name, (kinds, _NUMBER), is_fallible=True, is_expanding=True, is_like_first=True
        )
    for unit in ("year", "quarter", "month", "week"):
        yield FunctorSignature(f"start_of_{unit}", (_DAYS,), is_like_first=True)
    for unit in ("day", "hour", "minute", "second"):
        yield FunctorSignature(f"start_of_{unit}", (_MOMENTS,), is_like_first=True)
    yield FunctorSignature("format_time", (_DAYS, _SYMBOL), result=Kind.SYMBOL)
    for name, kind in (("parse_date", Kind.DATE), ("parse_time", Kind.TIMESTAMP)):
        yield FunctorSignature(name, (_SYMBOL, _SYMBOL), result=kind, is_fallible=True)


CHECKED_SUM = "•sum"
"""The value of a sum that was read; it fails where the sum was too large. No user writes it."""

PARTITION_OF = "•share"
"""The number of the partition of a value, which may be null. No user writes it."""


def _internal() -> Iterable[FunctorSignature]:
    yield FunctorSignature(CHECKED_SUM, (NUMERIC,), is_fallible=True)
    yield FunctorSignature(PARTITION_OF, (ANY, _NUMBER), result=Kind.NUMBER)


FUNCTORS = {
    signature.name: signature
    for signature in (*_arithmetic(), *_text(), *_conversions(), *_times(), *_internal())
}
"""Every functor by its name (unary minus is `neg`)."""


def may_fail(name: str, type_: Type | None) -> bool:
    """Whether a functor can fail at run time; the larger of two decimals may not fit."""
    is_decimal = type_ is not None and type_.kind is Kind.DECIMAL
    return FUNCTORS[name].is_fallible or (is_decimal and name in ("min", "max"))


def result_type(name: str, arguments: Sequence[Type], scale: int = 0) -> Type:
    """Return the type of a functor's result.

    Args:
        name: the functor.
        arguments: the types of its arguments, as its signature allows them.
        scale: the scale that `to_decimal` is given.
    """
    kind = FUNCTORS[name].result
    nullable = any(argument.nullable for argument in arguments)
    if name == "to_decimal":
        return decimal(DECIMAL_MAX_DIGITS, scale).with_null(nullable)
    if kind is not None:
        return Type(kind, nullable)
    if arguments[0].kind is Kind.DECIMAL:
        widest = max(argument.scale for argument in arguments)
        return decimal(DECIMAL_MAX_DIGITS, widest).with_null(nullable)
    return arguments[0].with_null(nullable)
