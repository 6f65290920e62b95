"""Diagnostics about types that do not match."""

from collections.abc import Sequence

from corollary.analysis.phrases import (
    DATE_OR_TIMESTAMP,
    FRACTION_LITERAL,
    conversion_note,
    kinds_text,
    one_of,
    related_spans,
    term_text,
)
from corollary.analysis.resolution import RelationSchema
from corollary.analysis.types.unify import PartialType, Reason
from corollary.core.functors.spec import INTEGRAL, Kinds
from corollary.core.logic import Constant, Functor, Term, Variable
from corollary.core.types import NESTED, Branch, Kind, RecordType, Type, decimal
from corollary.errors import Diagnostic
from corollary.source import Span

Related = tuple[tuple[Span, str], ...]
TypedTerm = tuple[Term, PartialType]


def column_mismatch(
    term: Term, known: PartialType, schema: RelationSchema, position: int, expected: PartialType
) -> Diagnostic:
    """Report an argument whose column has another type."""
    column = f"column `{schema.columns[position]}` of `{schema.name}`"
    return _misplaced("C0301", (term, known), column, expected, _declared(schema, position))


def _misplaced(
    code: str, typed: TypedTerm, where: str, expected: PartialType, related: Related = ()
) -> Diagnostic:
    term, known = typed
    if known.record is not None and expected.record is not None:
        return _records(term, known, where, expected, related)
    if known.kinds & expected.kinds:
        return _scales(term, known, where, expected, related)
    return Diagnostic(
        code,
        f"`{term_text(term)}` is {_type(known)}, but {where} is {_type(expected)}.",
        term.span,
        conversion_note(term, known.kinds, expected.kinds, expected.scale),
        _origins(typed) + related,
    )


def comparison_mismatch(
    operator: str, sides: tuple[TypedTerm, TypedTerm], span: Span | None
) -> Diagnostic:
    """Report two sides of a comparison with different types."""
    (left, known), (right, expected) = sides
    if known.record is not None and expected.record is not None:
        related = _origins((left, known))
        return _records(right, expected, f"`{term_text(left)}`", known, related)
    if known.kinds & expected.kinds:
        return _scales(right, expected, f"`{term_text(left)}`", known, _origins((left, known)))
    return Diagnostic(
        "C0302",
        f"`{term_text(left)}` is {_type(known)}, but `{term_text(right)}` is "
        f"{_type(expected)}, and `{operator}` compares values of one type.",
        span,
        _conversion(*sides),
        _origins(*sides),
    )


def parameter_mismatch(term: Term, known: PartialType, taker: str, expected: Kinds) -> Diagnostic:
    """Report an argument of a functor, an aggregate or `match` that is not of its kinds."""
    return Diagnostic(
        "C0303",
        f"`{term_text(term)}` is {_type(known)}, but `{taker}` takes {_taken(expected)}.",
        term.span,
        conversion_note(term, known.kinds, expected),
        _origins((term, known)),
    )


def user_parameter_mismatch(term: Term, known: PartialType, taker: str, type_: Type) -> Diagnostic:
    """Report an argument of a program's own functor that is not of the declared type."""
    expected = PartialType.of(type_)
    if known.kinds & expected.kinds:
        return _scales(term, known, f"the parameter of `{taker}`", expected, ())
    return parameter_mismatch(term, known, taker, expected.kinds)


def record_mismatch(term: Functor, record: RecordType) -> Diagnostic:
    """Report a record with another number of fields than its type has, or of another form."""
    names = ", ".join(next(iter(record.branches.values())).fields)
    forms = (f"${each.name}" for each in record.branches.values())
    cure = f"its branches are {', '.join(map('`{}`'.format, forms))}"
    return Diagnostic(
        "C0316",
        f"`{term_text(term)}` is not a value of the type `{record.name}`.",
        term.span,
        cure if record.is_algebraic else f"write `[{names}]`, with `_` for the rest",
    )


def field_mismatch(
    term: Term, known: PartialType, record: RecordType, branch: Branch, at: int
) -> Diagnostic:
    """Report a field of a record that is not of its type."""
    expected = PartialType.of(branch.types[at])
    where = f"field `{branch.fields[at]}` of `{record.name}`"
    return _misplaced("C0318", (term, known), where, expected)


def _records(
    term: Term, known: PartialType, where: str, expected: PartialType, related: Related
) -> Diagnostic:
    return Diagnostic(
        "C0317",
        f"`{term_text(term)}` is {_type(known)}, but {where} is {_type(expected)}: "
        "records of different types are never equal.",
        term.span,
        "give both one type, or take the record apart and make another one of its fields",
        _origins((term, known)) + related,
    )


def operand_mismatch(name: str, operands: Sequence[TypedTerm]) -> Diagnostic:
    """Report two operands of a functor with different types."""
    (left, known), (right, other) = operands
    return Diagnostic(
        "C0304",
        f"`{term_text(left)}` is {_type(known)}, but `{term_text(right)}` is "
        f"{_type(other)}, and `{name}` needs operands of one type.",
        right.span,
        _conversion(*operands),
        _origins(*operands),
    )


def scale_mismatch(functor: Functor, scale: int, known: PartialType) -> Diagnostic:
    """Report a computed decimal whose digits differ from those that its position needs."""
    computed = PartialType(frozenset({Kind.DECIMAL}), None, scale)
    reason = known.reason or Reason("its place", None)
    is_here = reason.span is None or reason.span == functor.span
    origin = () if is_here else related_spans((reason.span, _origin(known)))
    return _scales(functor, computed, reason.words, known, origin)


def _scales(
    term: Term, known: PartialType, where: str, expected: PartialType, related: Related
) -> Diagnostic:
    if known.kinds & NESTED:
        return Diagnostic(
            "C0301",
            f"`{term_text(term)}` has members of other names or types than {where}.",
            term.span,
            "convert them one by one",
            _origins((term, known)) + related,
        )
    return Diagnostic(
        "C0305",
        f"`{term_text(term)}` has {_digits(known.scale)} after the point, "
        f"but {where} has {_digits(expected.scale)}.",
        term.span,
        f"round it: `to_decimal({term_text(term)}, {expected.scale})`",
        _origins((term, known)) + related,
    )


def _conversion(left: TypedTerm, right: TypedTerm) -> str | None:
    """Return how to convert one of two terms: not a literal, and rather an integer."""
    is_literal = isinstance(right[0], Constant) and not left[1].kinds <= DATE_OR_TIMESTAMP
    if is_literal or (left[1].kinds <= INTEGRAL and right[1].kinds <= FRACTION_LITERAL):
        left, right = right, left
    return conversion_note(right[0], right[1].kinds, left[1].kinds, left[1].scale)


def _digits(scale: int | None) -> str:
    return f"{scale} digit{'' if scale == 1 else 's'}"


def _taken(kinds: Kinds) -> str:
    return one_of(f"`{kind}`" for kind in Kind if kind in kinds)


def _origins(*terms: TypedTerm) -> Related:
    """Return where the types of variables come from; it is plain for other terms."""
    found: list[tuple[Span | None, str]] = []
    for term, known in terms:
        if isinstance(term, Variable) and known.reason and known.reason.span:
            found.append((known.reason.span, f"`{term_text(term)}` is {_origin(known)}"))
    return related_spans(*found)


def _origin(known: PartialType) -> str:
    reason = known.reason or Reason("", None)
    return f"{_type(known)}: {reason.words}"


def _type(known: PartialType) -> str:
    if known.record is not None:
        return f"`{known.record.name}`"
    if known.scale is not None:
        return f"`{decimal(known.precision, known.scale)}`"
    return kinds_text(known.kinds)


def _declared(schema: RelationSchema, position: int) -> Related:
    if schema.declaration is None:
        return ()
    column = schema.declaration.columns[position]
    return related_spans((column.span, f"`{column.name}` is declared here"))
