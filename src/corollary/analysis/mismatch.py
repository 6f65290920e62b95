"""The sentences about types that do not go together."""

from collections.abc import Sequence

from corollary.analysis.survey import Shape
from corollary.analysis.unify import Known, Reason
from corollary.analysis.wording import (
    DATED,
    FRACTION_LITERAL,
    alternatives,
    conversion,
    phrase,
    places,
    text_of,
)
from corollary.core.functors import INTEGRAL, Kinds
from corollary.core.program import Column
from corollary.core.terms import Aggregate, Constant, Functor, Term, Variable, Wildcard
from corollary.core.types import Kind, Type
from corollary.errors import Diagnostic
from corollary.source import Span


def against_column(
    term: Term, known: Known, shape: Shape, position: int, wanted: Known
) -> Diagnostic:
    """A term in an argument place whose column has another type."""
    column = f"column `{shape.columns[position]}` of `{shape.name}`"
    if known.kinds & wanted.kinds:
        return _scales(term, known, column, wanted, _declared(shape, position))
    return Diagnostic(
        "C0301",
        f"`{text_of(term)}` is {phrase(known.kinds)}, but {column} is {phrase(wanted.kinds)}.",
        span_of(term),
        conversion(term, wanted.kinds),
        _origins((term, known)) + _declared(shape, position),
    )


def between_sides(
    operator: str,
    sides: tuple[tuple[Term, Known], tuple[Term, Known]],
    span: Span | None,
) -> Diagnostic:
    """Two sides of a comparison with different types."""
    (left, known), (right, wanted) = sides
    if known.kinds & wanted.kinds:
        return _scales(right, wanted, f"`{text_of(left)}`", known, _origins((left, known)))
    return Diagnostic(
        "C0302",
        f"`{text_of(left)}` is {phrase(known.kinds)}, but `{text_of(right)}` is "
        f"{phrase(wanted.kinds)}, and `{operator}` compares values of one type.",
        span,
        _conversion(*sides),
        _origins(*sides),
    )


def against_parameter(term: Term, known: Known, taker: str, wanted: Kinds) -> Diagnostic:
    """An argument of a functor, an aggregate or a constraint whose type it does not take."""
    return Diagnostic(
        "C0303",
        f"`{text_of(term)}` is {phrase(known.kinds)}, but `{taker}` takes {_taken(wanted)}.",
        span_of(term),
        conversion(term, wanted),
        _origins((term, known)),
    )


def between_operands(name: str, operands: Sequence[tuple[Term, Known]]) -> Diagnostic:
    """Two operands of a functor with different types."""
    (left, known), (right, other) = operands
    return Diagnostic(
        "C0304",
        f"`{text_of(left)}` is {phrase(known.kinds)}, but `{text_of(right)}` is "
        f"{phrase(other.kinds)}, and `{name}` needs operands of one type.",
        span_of(right),
        _conversion(*operands),
        _origins(*operands),
    )


def between_scales(functor: Functor, scale: int, known: Known) -> Diagnostic:
    """A computed decimal whose digits differ from those that its place asks for."""
    computed = Known(frozenset({Kind.DECIMAL}), None, scale)
    reason = known.reason or Reason("its place", None)
    is_here = reason.span is None or reason.span == functor.span
    origin = () if is_here else places((reason.span, _origin(known)))
    return _scales(functor, computed, reason.words, known, origin)


def _scales(
    term: Term, known: Known, where: str, wanted: Known, related: tuple[tuple[Span, str], ...]
) -> Diagnostic:
    return Diagnostic(
        "C0305",
        f"`{text_of(term)}` has {_digits(known.scale)} behind the point, "
        f"but {where} has {_digits(wanted.scale)}.",
        span_of(term),
        f"round it: `to_decimal({text_of(term)}, {wanted.scale})`",
        _origins((term, known)) + related,
    )


def _conversion(left: tuple[Term, Known], right: tuple[Term, Known]) -> str | None:
    """Return how to bring two terms together: by converting a whole number or no literal."""
    is_literal = isinstance(right[0], Constant) and not left[1].kinds <= DATED
    if is_literal or (left[1].kinds <= INTEGRAL and right[1].kinds <= FRACTION_LITERAL):
        left, right = right, left
    return conversion(right[0], left[1].kinds)


def _digits(scale: int | None) -> str:
    return f"{scale} digit{'' if scale == 1 else 's'}"


def _taken(kinds: Kinds) -> str:
    return alternatives(f"`{kind}`" for kind in Kind if kind in kinds)


def _origins(*terms: tuple[Term, Known]) -> tuple[tuple[Span, str], ...]:
    """Return where the types of variables come from; other terms show it themselves."""
    found: list[tuple[Span | None, str]] = []
    for term, known in terms:
        if isinstance(term, Variable) and known.reason and known.reason.span:
            found.append((known.reason.span, f"`{text_of(term)}` is {_origin(known)}"))
    return places(*found)


def _origin(known: Known) -> str:
    reason = known.reason or Reason("", None)
    return f"{_type(known)}: {reason.words}"


def _type(known: Known) -> str:
    if known.scale is not None:
        return f"`{Type(Kind.DECIMAL, precision=known.precision, scale=known.scale)}`"
    return phrase(known.kinds)


def _declared(shape: Shape, position: int) -> tuple[tuple[Span, str], ...]:
    if shape.declaration is None:
        return ()
    column: Column = shape.declaration.columns[position]
    return places((column.span, f"`{column.name}` is declared here"))


def span_of(term: Term) -> Span | None:
    """Return where a term stands."""
    match term:
        case Variable() | Wildcard() | Constant() | Functor() | Aggregate():
            return term.span
