"""Every functor in one table; whether those that are applied can fail, and the types they give.

>>> result_type("+", (decimal(12, 2), decimal(5, 3)))
Type(kind=<Kind.DECIMAL: 'decimal'>, nullable=False, precision=38, scale=3)
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from corollary.core.functors.arrays import arrays, higher_order, maps, structs
from corollary.core.functors.conversions import (
    casts,
    conversions,
    internal,
    intervals,
    stored_alike,
)
from corollary.core.functors.lambdas import LAMBDA, PARAMETER, SIGN
from corollary.core.functors.logic import choices, logic
from corollary.core.functors.numbers import arithmetic, more_of_numbers
from corollary.core.functors.spec import LETTERS, NESTED_SHAPES, FunctorSpec, Nullness
from corollary.core.functors.texts import binaries, json_texts, more_texts, texts
from corollary.core.functors.times import times
from corollary.core.logic import NEGATED_OPERATORS, Functor, Term, Wildcard
from corollary.core.types import DECIMAL_MAX_DIGITS, Kind, Type, decimal, nested
from corollary.core.user_functors.user_functor import UserCall

FUNCTORS: dict[str, FunctorSpec] = {
    spec.name: spec
    for family in (
        *(arithmetic, texts, conversions, times, logic, choices, more_of_numbers, more_texts),
        *(binaries, stored_alike, casts, intervals, arrays, structs, maps, json_texts),
        *(higher_order, internal),
    )
    for spec in family()
}
"""Every functor by its name (unary minus is `neg`)."""

HIGHER_ORDER = frozenset(
    spec.name for spec in FUNCTORS.values() if any("->" in each for each in spec.shape)
)
"""Those that take a lambda."""

COMPARISON_OPERATORS = {spec.name: spec.comparison for spec in FUNCTORS.values() if spec.comparison}
"""The functors that compare as operators do; their result is null where an argument is."""


_NAMES = {operator: name for name, operator in COMPARISON_OPERATORS.items()}
OPPOSITES = {_NAMES[one]: _NAMES[NEGATED_OPERATORS[one]] for one in _NAMES}
"""For each of them the one that holds where it does not, nulls apart."""


def is_strict(name: str) -> bool:
    """Whether a functor is null where an argument is, and never for another reason."""
    return name not in FUNCTORS or FUNCTORS[name].nullness is Nullness.STRICT


def functor_of_sql(name: str) -> FunctorSpec | None:
    """Return the functor that a function of SQL is, argument by argument; None if it is more."""
    return next((spec for spec in FUNCTORS.values() if name in spec.sql_names), None)


SIZED_LETTERS = "YmdHIkKMSfjqz"
"""Those of parts that may have a number of digits: `%1d` has as many as it needs, `%2d` two."""

_ALTERNATIVES = ("Yy", "mbB", "HIkK")
"""The letters that a format that is read has only one of."""

_SHORT_FORMATS = {"%F": ("%Y", "-", "%m", "-", "%d"), "%T": ("%H", ":", "%M", ":", "%S")}


def read_time_format(name: str, text: str) -> tuple[str, ...]:
    """Return the parts of a format: directives such as `%Y` or `%1d`, and texts.

    >>> read_time_format("format_time", "on %F, 100%%")
    ('on ', '%Y', '-', '%m', '-', '%d', ', 100', '%%')

    Raises:
        ValueError: the format makes no sense; the message says why.
    """
    spec = FUNCTORS[name]
    written = re.findall(r"%[1-9]?.?|[^%]+", text, re.DOTALL)
    parts = tuple(each for part in written for each in _SHORT_FORMATS.get(part, (part,)))
    directives = [part for part in parts if part.startswith("%") and part != "%%"]
    for part in directives:
        is_known = part[-1] in spec.time_letters and not part[1:].isdigit()
        if not is_known or (len(part) > 2 and part[-1] not in SIZED_LETTERS):
            known = ", ".join(f"`%{letter}`" for letter in spec.time_letters)
            raise ValueError(f"`{part}` is not known in it; there are {known} and `%%`")
    if spec.result is not Kind.SYMBOL:
        letters = [part[-1] for part in directives]
        read = [next((each for each in _ALTERNATIVES if one in each), one) for one in letters]
        if len(set(read)) < len(read):
            raise ValueError("it has a part of the date or time twice")
        if "j" in letters and not {"mbB", "d"}.isdisjoint(read):
            raise ValueError("the day of the year, `%j`, goes without month and day")
        for pair in pairwise(parts):
            if all(map(_is_number, pair)) and any(map(_has_any_length, pair)):
                raise ValueError("a number of any length stands beside another one")
    return parts


def _has_any_length(part: str) -> bool:
    is_sized = len(part) == 3 and part[0] == "%" and part[2] != "z"
    return is_sized and (part[1] == "1" or part[2] == "f" or part in ("%3Y", "%2j"))


def _is_number(part: str) -> bool:
    if part[0] == "%":
        return part[-1] != "z" and part[-1] in SIZED_LETTERS + "y"
    return part[0].isdigit()


def count_groups(pattern: str) -> int:
    """Return the number of groups of a pattern of RE2.

    Raises:
        ValueError: it is none; the message says why.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        groups: int = re2.compile(pattern, options).groups
    except re2.error as error:
        raise ValueError(error.args[0].decode() if error.args else "it is not valid") from None
    return groups


def signature_of(functor: Functor) -> FunctorSpec | None:
    """Return the signature of a functor that is applied; None if there is no such functor."""
    if functor.name.startswith(SIGN):
        return LAMBDA if functor.arguments else PARAMETER
    if not isinstance(functor, UserCall):
        return FUNCTORS.get(functor.name)
    declared = functor.functor
    return FunctorSpec(
        functor.name,
        tuple(frozenset({each.logical_kind}) for each in declared.parameters),
        result=declared.result.logical_kind,
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
    brings_to_one_scale = signature.is_choice and signature.nullness is not Nullness.ALWAYS
    if type_ is None or not type_.is_decimal or not brings_to_one_scale:
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
    if signature.scale_at is not None:
        return decimal(DECIMAL_MAX_DIGITS, digits).with_null(nullable)
    if name == "sign" and arguments[0].is_float:
        return arguments[0]
    if signature.shape:
        return _shaped(signature, arguments).with_null(nullable)
    if signature.result is not None:
        return Type(signature.result, nullable)
    alike = [arguments[at] for at in signature.alike(len(arguments))]
    if alike[0].is_decimal and not signature.is_like_first:
        widest = max(argument.scale for argument in alike)
        precision = digits if name == "fit" else DECIMAL_MAX_DIGITS
        return decimal(precision, widest).with_null(nullable)
    return alike[0].with_null(nullable)


def _shaped(signature: FunctorSpec, arguments: Sequence[Type]) -> Type:
    """Return the type of the result of a functor of arrays or maps."""
    known: dict[str, Type] = {}
    for at, argument in enumerate(arguments):
        _read_members(signature.shape_at(at).rpartition("->")[2], argument, known)
    return _made_of(signature.shape[-1], known)


def _inside(shape: str) -> list[str]:
    return [shape[1:-1]] if shape[0] == "[" else shape[1:-1].split(",")


def _read_members(shape: str, type_: Type, known: dict[str, Type]) -> None:
    if shape[0] not in NESTED_SHAPES:
        known.setdefault(shape, type_)
        return
    for word, (_, each) in zip(_inside(shape), type_.members, strict=False):
        _read_members(word, each, known)


def _made_of(shape: str, known: Mapping[str, Type]) -> Type:
    if shape[0] not in NESTED_SHAPES:
        return known[shape] if shape in LETTERS else Type(Kind(shape))
    kind = NESTED_SHAPES[shape[0]]
    names = ("element",) if kind is Kind.ARRAY else ("key", "value")
    types = (_made_of(word, known) for word in _inside(shape))
    return nested(kind, zip(names, types, strict=True))
