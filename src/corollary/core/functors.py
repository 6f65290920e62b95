"""The signatures of functors: the number and types of arguments, and the type of the result.

>>> result_type("+", (decimal(12, 2), decimal(5, 3)))
Type(kind=<Kind.DECIMAL: 'decimal'>, nullable=False, precision=38, scale=3)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corollary.core.types import DECIMAL_MAX_DIGITS, NUMERIC, Kind, Type, decimal

Kinds = frozenset[Kind]

ANY: Kinds = frozenset(Kind)
INTEGRAL: Kinds = frozenset({Kind.NUMBER, Kind.UNSIGNED})
_NUMBER: Kinds = frozenset({Kind.NUMBER})
_SYMBOL: Kinds = frozenset({Kind.SYMBOL})
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
        result: the kind of the result; None where all operands and the result have one kind.
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


CHECKED_SUM = "•sum"
"""The value of a sum that was read; it fails where the sum was too large. No user writes it."""

PARTITION_OF = "•share"
"""The number of the partition of a value, which may be null. No user writes it."""


def _internal() -> Iterable[FunctorSignature]:
    yield FunctorSignature(CHECKED_SUM, (NUMERIC,), is_fallible=True)
    yield FunctorSignature(PARTITION_OF, (ANY, _NUMBER), result=Kind.NUMBER)


FUNCTORS = {
    signature.name: signature
    for signature in (*_arithmetic(), *_text(), *_conversions(), *_internal())
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
