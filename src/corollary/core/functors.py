"""The signatures of functors: the number and types of arguments, and the type of the result.

>>> result_type("+", (decimal(12, 2), decimal(5, 3)))
Type(kind=<Kind.DECIMAL: 'decimal'>, nullable=False, precision=38, scale=3)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from corollary.core.logic import Functor, Term, Wildcard
from corollary.core.records.record_terms import BRANCH_OF, FIELD_OF, RECORD_OF
from corollary.core.syntax import COUNTER
from corollary.core.types import DECIMAL_MAX_DIGITS, NUMERIC, Kind, Type, decimal
from corollary.core.user_functors.user_functor import UserCall
from corollary.core.windows import WINDOW

Kinds = frozenset[Kind]

ANY: Kinds = frozenset(Kind)
INTEGRAL: Kinds = frozenset({Kind.NUMBER, Kind.UNSIGNED})
_NUMBER: Kinds = frozenset({Kind.NUMBER})
_FLOAT: Kinds = frozenset({Kind.FLOAT})
_DECIMAL: Kinds = frozenset({Kind.DECIMAL})
_BOOL: Kinds = frozenset({Kind.BOOL})
_SYMBOL: Kinds = frozenset({Kind.SYMBOL})
_RECORD: Kinds = frozenset({Kind.RECORD})
ORDERED: Kinds = ANY - _RECORD
"""The kinds whose values have an order."""
_DATES: Kinds = frozenset({Kind.DATE})
_MOMENTS: Kinds = frozenset({Kind.TIMESTAMP})
_DAYS: Kinds = _DATES | _MOMENTS
_COUNTABLE: Kinds = INTEGRAL | {Kind.FLOAT}
_CONVERTIBLE: Kinds = NUMERIC | {Kind.SYMBOL, Kind.BOOL}


class Nullness(StrEnum):
    """When the result of a functor is null."""

    STRICT = "strict"
    """Where an argument is null."""

    LOGIC = "logic"
    """Where no argument decides, and one is null."""

    CHOICE = "choice"
    """Where the argument that is chosen is null."""

    ALL = "all"
    """Where all arguments are null."""

    NEVER = "never"

    ALWAYS = "always"
    """It may be null even where no argument is."""


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
        nullness: when its result is null.
        is_lazy: whether an argument without a value does not matter where others decide.
        is_paired: whether arguments are pairs of a test and a value, and one more value.
    """

    name: str
    parameters: tuple[Kinds, ...]
    optional: int = 0
    is_variadic: bool = False
    result: Kind | None = None
    is_fallible: bool = False
    is_expanding: bool = False
    is_like_first: bool = False
    nullness: Nullness = Nullness.STRICT
    is_lazy: bool = False
    is_paired: bool = False

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
        is_enough = self.min_arguments <= count and (
            self.max_arguments is None or count <= self.max_arguments
        )
        return is_enough and (count % 2 == 1 or not self.is_paired)

    def kinds(self, position: int, count: int = 1) -> Kinds:
        """Return the kinds that the argument at a position of `count` may have."""
        if self.is_paired:
            return self.parameters[position % 2 if position < count - 1 else -1]
        return self.parameters[min(position, len(self.parameters) - 1)]

    def alike(self, count: int) -> Sequence[int]:
        """Return which of `count` arguments have one kind, and give their digits to the result."""
        if self.is_paired:
            return (*range(1, count, 2), count - 1)
        return range(min(count, _LAST_ALIKE.get(self.name, count)))

    def may_be_null(self, arguments: Sequence[bool]) -> bool:
        """Whether the result may be null, given which of the arguments may be."""
        match self.nullness:
            case Nullness.STRICT | Nullness.LOGIC:
                return any(arguments)
            case Nullness.CHOICE:
                return any(arguments[at] for at in self.alike(len(arguments)))
            case Nullness.ALL:
                return all(arguments)
            case Nullness.NEVER:
                return False
            case Nullness.ALWAYS:
                return True


def _arithmetic() -> Iterable[FunctorSignature]:
    for name, kinds in (("+", NUMERIC | _SYMBOL), *((each, NUMERIC) for each in "-*/")):
        yield FunctorSignature(name, (kinds, kinds), is_fallible=True, is_expanding=True)
    yield FunctorSignature("%", (INTEGRAL, INTEGRAL), is_fallible=True)
    yield FunctorSignature("^", (_COUNTABLE, _COUNTABLE), is_fallible=True, is_expanding=True)
    yield FunctorSignature("neg", (NUMERIC,), is_fallible=True)
    for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"):
        yield FunctorSignature(name, (INTEGRAL, INTEGRAL))
    for name in ("bnot", "lnot"):
        yield FunctorSignature(name, (INTEGRAL,))
    for name in ("min", "max"):
        yield FunctorSignature(name, (ORDERED, ORDERED), is_variadic=True)
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


COMPARISON_OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""The functors that compare as operators do; their result is null where an argument is."""

_CHOOSING = frozenset({"min", "max", "if", "coalesce", "greatest", "least"})
"""The functors that bring decimals to one scale."""

CHOICES = ("if", "coalesce", "greatest", "least", "null_if")
"""The functors whose result is one of their arguments."""

_LAST_ALIKE = {"null_if": 1, "round_to": 1, "fit": 1}


def _logic() -> Iterable[FunctorSignature]:
    for name in ("and", "or"):
        yield FunctorSignature(
            name,
            (_BOOL, _BOOL),
            is_variadic=True,
            result=Kind.BOOL,
            nullness=Nullness.LOGIC,
            is_lazy=True,
        )
    yield FunctorSignature("not", (_BOOL,), result=Kind.BOOL)
    for name in COMPARISON_OPERATORS:
        kinds = ANY if name in ("eq", "ne") else ORDERED
        yield FunctorSignature(name, (kinds, kinds), result=Kind.BOOL)
    yield FunctorSignature("same", (ANY, ANY), result=Kind.BOOL, nullness=Nullness.NEVER)
    yield FunctorSignature("is_null", (ANY,), result=Kind.BOOL, nullness=Nullness.NEVER)
    for name in ("like", "rlike", "starts_with", "ends_with", "has_text"):
        yield FunctorSignature(name, (_SYMBOL, _SYMBOL), result=Kind.BOOL)


def _choices() -> Iterable[FunctorSignature]:
    yield FunctorSignature(
        "if",
        (_BOOL, ANY, ANY),
        is_variadic=True,
        nullness=Nullness.CHOICE,
        is_lazy=True,
        is_paired=True,
    )
    yield FunctorSignature(
        "coalesce", (ANY, ANY), is_variadic=True, nullness=Nullness.ALL, is_lazy=True
    )
    yield FunctorSignature("null_if", (ANY, ANY), nullness=Nullness.ALWAYS)
    for name in ("greatest", "least"):
        yield FunctorSignature(name, (ORDERED, ORDERED), is_variadic=True, nullness=Nullness.ALL)
    yield FunctorSignature(
        "try", (ANY,), is_like_first=True, nullness=Nullness.ALWAYS, is_lazy=True
    )


def _numbers() -> Iterable[FunctorSignature]:
    for name in ("multiply", "divide"):
        yield FunctorSignature(
            name,
            (_DECIMAL, _DECIMAL, _NUMBER),
            result=Kind.DECIMAL,
            is_fallible=True,
            is_expanding=True,
        )
    yield FunctorSignature("rem", (NUMERIC, NUMERIC), is_fallible=True)
    yield FunctorSignature("fit", (_DECIMAL, _NUMBER), is_fallible=True)
    yield FunctorSignature("round_to", (NUMERIC, _NUMBER), is_fallible=True)
    for name in ("floor", "ceil"):
        yield FunctorSignature(name, (NUMERIC,), result=Kind.NUMBER, is_fallible=True)
    yield FunctorSignature("abs", (NUMERIC,), is_fallible=True)
    yield FunctorSignature("sign", (NUMERIC,), result=Kind.NUMBER)
    yield FunctorSignature(
        "sqrt", (_FLOAT,), result=Kind.FLOAT, is_fallible=True, is_expanding=True
    )
    yield FunctorSignature(
        "power", (_FLOAT, _FLOAT), result=Kind.FLOAT, is_fallible=True, is_expanding=True
    )
    yield FunctorSignature("to_integer", (NUMERIC, _NUMBER), result=Kind.NUMBER, is_fallible=True)


def _more_text() -> Iterable[FunctorSignature]:
    for name in ("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap"):
        yield FunctorSignature(name, (_SYMBOL,), result=Kind.SYMBOL)
    for name, parameters in (
        ("substring", (_SYMBOL, _NUMBER, _NUMBER)),
        ("left", (_SYMBOL, _NUMBER)),
        ("right", (_SYMBOL, _NUMBER)),
        ("regexp_extract", (_SYMBOL, _SYMBOL, _NUMBER)),
    ):
        yield FunctorSignature(name, parameters, result=Kind.SYMBOL)
    for name, parameters in (
        ("replace", (_SYMBOL, _SYMBOL, _SYMBOL)),
        ("lpad", (_SYMBOL, _NUMBER, _SYMBOL)),
        ("rpad", (_SYMBOL, _NUMBER, _SYMBOL)),
        ("repeat", (_SYMBOL, _NUMBER)),
        ("regexp_replace", (_SYMBOL, _SYMBOL, _SYMBOL)),
    ):
        yield FunctorSignature(
            name, parameters, result=Kind.SYMBOL, is_fallible=True, is_expanding=True
        )
    yield FunctorSignature(
        "split_part", (_SYMBOL, _SYMBOL, _NUMBER), result=Kind.SYMBOL, is_fallible=True
    )
    yield FunctorSignature("position", (_SYMBOL, _SYMBOL), result=Kind.NUMBER)
    yield FunctorSignature("chr", (_NUMBER,), result=Kind.SYMBOL, is_fallible=True)
    yield FunctorSignature("ascii", (_SYMBOL,), result=Kind.NUMBER)


def _casts() -> Iterable[FunctorSignature]:
    for name, kind in (
        ("parse_integer", Kind.NUMBER),
        ("parse_float", Kind.FLOAT),
        ("parse_bool", Kind.BOOL),
        ("parse_day", Kind.DATE),
        ("parse_moment", Kind.TIMESTAMP),
    ):
        yield FunctorSignature(name, (_SYMBOL,), result=kind, is_fallible=True)
    yield FunctorSignature(
        "parse_decimal", (_SYMBOL, _NUMBER), result=Kind.DECIMAL, is_fallible=True
    )
    yield FunctorSignature("show", (ANY,), result=Kind.SYMBOL)


SCALE_ARGUMENTS = {"to_decimal": 1, "multiply": 2, "divide": 2, "parse_decimal": 1}
"""The functors that say how many digits their result has after the point, and where they do."""

LITERAL_ARGUMENTS: dict[tuple[str, int], Sequence[int]] = {
    **{place: range(DECIMAL_MAX_DIGITS + 1) for place in SCALE_ARGUMENTS.items()},
    ("fit", 1): range(1, DECIMAL_MAX_DIGITS + 1),
    ("round_to", 1): range(-DECIMAL_MAX_DIGITS, DECIMAL_MAX_DIGITS + 1),
    ("to_integer", 1): (8, 16, 32, 64),
}
"""The arguments that must be literals, by functor and position, and their values."""

PATTERN_ARGUMENTS = {"rlike": 1, "regexp_replace": 1, "regexp_extract": 1}
"""The functors with a pattern that must be a literal, and its position."""

CHECKED_SUM = "•sum"
"""The value of a sum that was read; it fails where the sum was too large. No user writes it."""

CAST = "as"
"""`as(x, Type)`: the name of the type is a constant, as text. Inference replaces it."""

SINGLE = "•single"
"""A float in single precision. No user writes it."""

AS_NUMBER, AS_UNSIGNED, AS_FLOAT = "•as_number", "•as_unsigned", "•as_float"
SAME_BITS = {Kind.NUMBER: AS_NUMBER, Kind.UNSIGNED: AS_UNSIGNED, Kind.FLOAT: AS_FLOAT}
"""The value of another type with the same bits: `as(x, number)`."""

SINGLE_OF_BITS, BITS_OF_SINGLE = "•single_of_bits", "•bits_of_single"
"""The float of single precision with the 32 bits of a `number`, and the reverse."""

PARTITION_OF = "•share"
"""The number of the partition of a value, which may be null. No user writes it."""


def _internal() -> Iterable[FunctorSignature]:
    yield FunctorSignature(
        RECORD_OF, (_SYMBOL, ANY), optional=1, is_variadic=True, result=Kind.RECORD
    )
    yield FunctorSignature(
        FIELD_OF, (_RECORD, _SYMBOL, _NUMBER), result=Kind.RECORD, nullness=Nullness.ALWAYS
    )
    yield FunctorSignature(BRANCH_OF, (_RECORD,), result=Kind.SYMBOL)
    yield FunctorSignature(CHECKED_SUM, (NUMERIC,), is_fallible=True)
    yield FunctorSignature(COUNTER, (), result=Kind.NUMBER)
    yield FunctorSignature(
        WINDOW, (_SYMBOL, ANY), optional=1, is_variadic=True, nullness=Nullness.ALWAYS
    )
    yield FunctorSignature(CAST, (ANY, _SYMBOL), is_like_first=True)
    yield FunctorSignature(SINGLE, (_FLOAT,), result=Kind.FLOAT, is_fallible=True)
    yield FunctorSignature(SINGLE_OF_BITS, (_NUMBER,), result=Kind.FLOAT)
    yield FunctorSignature(BITS_OF_SINGLE, (_FLOAT,), result=Kind.NUMBER)
    for kind, name in SAME_BITS.items():
        yield FunctorSignature(name, (_COUNTABLE,), result=kind)
    yield FunctorSignature(PARTITION_OF, (ANY, _NUMBER), result=Kind.NUMBER)


FUNCTORS = {
    signature.name: signature
    for signatures in (
        _arithmetic(),
        _text(),
        _conversions(),
        _times(),
        _logic(),
        _choices(),
        _numbers(),
        _more_text(),
        _casts(),
        _internal(),
    )
    for signature in signatures
}
"""Every functor by its name (unary minus is `neg`)."""


def signature_of(functor: Functor) -> FunctorSignature | None:
    """Return the signature of a functor that is applied; None if there is no such functor."""
    if not isinstance(functor, UserCall):
        return FUNCTORS.get(functor.name)
    declared = functor.functor
    return FunctorSignature(
        functor.name,
        tuple(frozenset({each.kind}) for each in declared.parameters),
        result=declared.result.kind,
        is_fallible=True,
        is_expanding=True,
        nullness=Nullness.ALWAYS if declared.result.nullable else Nullness.STRICT,
    )


def is_expanding(functor: Functor) -> bool:
    """Whether applying a functor repeatedly can make new values without end."""
    signature = signature_of(functor)
    return signature is not None and signature.is_expanding


def may_fail(functor: Functor) -> bool:
    """Whether a functor can fail at run time; a decimal that is chosen may not fit."""
    signature = signature_of(functor)
    if signature is None or signature.is_fallible:
        return True
    type_ = functor.type
    if type_ is None or type_.kind is not Kind.DECIMAL or functor.name not in _CHOOSING:
        return False
    types = [None if isinstance(each, Wildcard) else each.type for each in functor.arguments]
    return any(each is None or each.scale != type_.scale for each in types)


def can_fail(term: Term) -> bool:
    """Whether a term, aggregates in it apart, may have no value; `try` always has one."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, Functor) and part.name != "try":
            if may_fail(part):
                return True
            stack += part.arguments
    return False


def result_type(name: str, arguments: Sequence[Type], digits: int = 0) -> Type:
    """Return the type of a functor's result.

    Args:
        name: the functor.
        arguments: the types of its arguments, as its signature allows them.
        digits: the scale that `to_decimal` and others are given, or the precision of `fit`.
    """
    signature = FUNCTORS[name]
    nullable = signature.may_be_null([argument.nullable for argument in arguments])
    if name in SCALE_ARGUMENTS:
        return decimal(DECIMAL_MAX_DIGITS, digits).with_null(nullable)
    if name == "sign" and arguments[0].kind is Kind.FLOAT:
        return arguments[0]
    if signature.result is not None:
        return Type(signature.result, nullable)
    alike = [arguments[at] for at in signature.alike(len(arguments))]
    if alike[0].kind is Kind.DECIMAL and not signature.is_like_first:
        widest = max(argument.scale for argument in alike)
        precision = digits if name == "fit" else DECIMAL_MAX_DIGITS
        return decimal(precision, widest).with_null(nullable)
    return alike[0].with_null(nullable)
