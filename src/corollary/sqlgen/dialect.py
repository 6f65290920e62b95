"""What the compiler has to know of an SQL engine: how values look there, and which functors it has.

An SQL engine may compute an expression for rows that no later stage keeps, so nothing that we write
may raise: what can fail gives null instead, and the compiler tests for that.

Inference gives every decimal that is computed all digits that there are. Here a type with fewer
digits stands for what an expression can be at most, so that an engine may compute with narrow
integers, and need not look for an overflow that cannot happen.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

from sqlglot import exp

from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import Digits, FunctorSpec, find_template
from corollary.core.logic import Constant, Value
from corollary.core.types import Kind, Type
from corollary.core.values import unscaled_integer
from corollary.data_class import dataclass
from corollary.sqlgen import nodes
from corollary.sqlgen.nodes import Node, OperatorKind
from corollary.sqlgen.templates import fill_template

_TRIES = re.compile(r"\b(TRY|CASE)")
"""What gives null where there is no value, in templates of functors that can fail."""

AggregateForm = Callable[[Node, Type, Type], tuple[Node, Node | None]]
"""Makes the SQL of an aggregate from a column, its type and the type of the result.

It returns the value, and a test that is true where it is not exact, never null.
"""

TotalForm = Callable[[Node, Type], Sequence[Node]]
"""Makes the SQL of what running totals keep of a column after the count (`core/totals.py`)."""

Lowering = Callable[[Sequence[Node], Sequence[Type], Type], Node]
"""Makes the SQL of a functor from its arguments, their types and the type of the result.

The types of decimals say how many digits they can have at most.
"""


class DialectName(StrEnum):
    """The SQL engines that the compiler writes for."""

    DUCKDB = "duckdb"
    SPARK = "spark"


class NotExactError(Exception):
    """Something has no form in SQL that means exactly the same; the message says what."""


@dataclass(frozen=True, slots=True)
class SqlTemplate:
    """The form of a functor for operands of some kind.

    Attributes:
        lower: makes the SQL. Where an operand is null the result must be null.
        is_fallible: whether the result is null for some operands that are not. It may be so for
            more operands than those without a value: the engine then looks at the rows again.
        can_fail: whether it is so for operands of some types and the declared type of the result;
            None for always.
        fault: makes the test for a missing value, which is never null, if that is not simply that
            the result is null and no operand is.
    """

    lower: Lowering
    is_fallible: bool = False
    can_fail: Callable[[Sequence[Type], Type], bool] | None = None
    fault: Lowering | None = None


@dataclass(frozen=True)
class SqlDialect:
    """An SQL engine.

    Attributes:
        has_codes: whether relations come as codes, with the values of a column beside them where an
            expression needs these. Codes are never null, and equal where the values are.
        type_name: the SQL type that holds the values of a type.
        constant: makes a value of a type.
        functors: by name and the kind of the first operand: the forms that depend on more than
            these. Others are templates of `core/functors`; what has no form is not handed over.
        predicates: the same for conditions other than comparisons.
        semi_join: the side and the kind of a semi-join.
        anti_join: the side and the kind of an anti-join.
        align: brings two values to a common scale, so that they can be compared.
        from_test: makes a value of the type `bool` of a test.
        to_test: makes a test of a value of the type `bool`.
        aggregates: the aggregates of a column by name and its kind.
        totals: the running totals of a column by its kind.
        calls_udf: whether queries may call functions of our own (`udfs_in.py`), for what has
            no form.
        layers_max: of how many SELECTs within SELECTs a query may be.
        write: makes the text of a tree, if not sqlglot's generator.
    """

    name: DialectName
    has_codes: bool
    type_name: Callable[[Type], str]
    constant: Callable[[Value, Type], Node]
    functors: Mapping[tuple[str, Kind], SqlTemplate]
    predicates: Mapping[str, SqlTemplate]
    align: Callable[[Node, Type, Node, Type], tuple[Node, Node]]
    from_test: Callable[[Node], Node]
    to_test: Callable[[Node], Node]
    semi_join: tuple[str, str]
    anti_join: tuple[str, str]
    aggregates: Mapping[tuple[str, Kind], AggregateForm]
    totals: Mapping[Kind, TotalForm] = field(default_factory=dict)
    calls_udf: bool = False
    layers_max: int | None = None
    write: Callable[[Node], str] | None = None

    def text(self, query: Node) -> str:
        """Return a query as the engine reads it."""
        if self.write is not None:
            return self.write(query)
        return query.sql(dialect=str(self.name))

    def form(self, name: str, operand: Type) -> SqlTemplate:
        """Return the form of a functor.

        Raises:
            NotExactError: it has none.
        """
        found = self.functors.get((name, operand.kind)) or self._written(name, operand.logical_kind)
        if found is None:
            raise NotExactError(f"`{name}` of {operand.logical_kind} has no exact form in SQL")
        return found

    def _written(self, name: str, kind: Kind) -> SqlTemplate | None:
        """Return the form that the specification of a functor has, if any."""
        spec = FUNCTORS.get(name)
        text = None if spec is None else find_template(spec.exact, self.name, kind)
        if spec is None or text is None or kind not in spec.kinds(0):
            return None
        is_fallible = spec.is_fallible and _TRIES.search(text) is not None
        return SqlTemplate(partial(self._fill, text, spec), is_fallible)

    def _fill(
        self,
        text: str,
        spec: FunctorSpec,
        arguments: Sequence[Node],
        types: Sequence[Type],  # noqa: ARG002 - the shape of a `Lowering`
        result: Type,
    ) -> Node:
        made: Any = fill_template(text, spec, arguments, nodes.data_type(self.type_name(result)))
        return exp.Paren(this=made) if isinstance(made, exp.Binary | exp.Unary) else made


# --- forms that are the same in every dialect ----------------------------------------------------


def extreme(is_larger: bool) -> SqlTemplate:
    """Return the form of `min` and `max`; `least` and `greatest` skip null."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        best = arguments[0]
        for each in arguments[1:]:
            is_less = nodes.binary(exp.LT, best, each)
            is_not = nodes.binary(exp.GTE, best, each)
            best = nodes.case(
                (is_less, each if is_larger else best), (is_not, best if is_larger else each)
            )
        return best

    return SqlTemplate(lower)


def float_operator(kind: OperatorKind) -> SqlTemplate:
    """Return the form of an operator on floats: infinity from finite operands is an overflow."""
    infinity = nodes.cast(nodes.string("Infinity"), "DOUBLE")
    zero = nodes.cast(nodes.string("0.0"), "DOUBLE")

    def is_finite(value: Node) -> Node:
        return nodes.binary(exp.NEQ, nodes.call("ABS", value), infinity)

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        one, two = arguments
        divisor = two
        if kind is exp.Div:
            divisor = nodes.case((nodes.binary(exp.NEQ, two, zero), two))
        value = nodes.binary(kind, one, divisor)
        infinite = (nodes.negated(is_finite(each)) for each in (one, two))
        test = nodes.either(is_finite(value), *infinite)
        # Adding 0.0 turns -0.0 into 0.0.
        return nodes.case((test, nodes.binary(exp.Add, value, zero)))

    return SqlTemplate(lower, is_fallible=True)


def contains(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the test whether a text contains another one, which comes first."""
    return nodes.call("CONTAINS", arguments[1], arguments[0])


def aggregate(name: str) -> AggregateForm:
    """Return the form of an aggregate that is a function of SQL."""

    def lower(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
        return nodes.call(name, value), None

    return lower


# --- digits --------------------------------------------------------------------------------------


def _whole_digits(type_: Type) -> int:
    """Return the number of digits before the point."""
    return len(str(type_.spec.bounds[1])) if type_.is_integral else type_.precision - type_.scale


def most_digits(name: str, types: Sequence[Type], scale: int) -> int:
    """Return the number of digits, with those after the point, that the result can have at most.

    >>> from corollary.core.types import decimal
    >>> cents = decimal(12, 2)
    >>> most_digits("+", [cents, cents], 2), most_digits("*", [cents, cents], 2)
    (13, 22)
    """
    whole = [_whole_digits(type_) for type_ in types]
    match FUNCTORS[name].digits:
        case Digits.CARRY:
            return max(whole) + 1 + scale
        case Digits.PRODUCT:
            return sum(whole[:2]) + scale
        case Digits.FIRST:
            return whole[0] + scale
        case Digits.ROUNDED:
            return whole[0] + scale + 1
        case Digits.QUOTIENT:
            # The least divisor is one at the last place of its scale.
            return whole[0] + types[1].scale + scale
        case Digits.RESCALED:
            return whole[0] + scale + (scale < types[0].scale)
        case Digits.WIDEST:
            return max(whole) + scale


def narrow_result(name: str, types: Sequence[Type], result: Type) -> Type:
    """Return the type of what a functor can give at most; others than decimals stay.

    Args:
        name: the functor.
        types: what its operands can be.
        result: what inference says.
    """
    if not result.is_decimal:
        return result
    digits = most_digits(name, types, result.scale)
    return replace(result, precision=max(1, min(result.precision, digits)))


def can_overflow(name: str, types: Sequence[Type], result: Type) -> bool:
    """Whether a decimal can have more digits than its type."""
    return most_digits(name, types, result.scale) > result.precision


def narrow_constant(constant: Constant, type_: Type) -> Type:
    """Return the narrowest type that has a constant.

    >>> from corollary.core.types import decimal
    >>> money = decimal(38, 2)
    >>> narrow_constant(Constant(Decimal("1.19")), money).precision
    3
    """
    if not type_.is_decimal or not isinstance(constant.value, int | Decimal):
        return type_
    digits = len(str(abs(unscaled_integer(constant.value, type_.scale))))
    return replace(type_, precision=max(digits, type_.scale))
