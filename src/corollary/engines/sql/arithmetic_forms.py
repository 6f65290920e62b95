"""Forms of functors that are the same in every dialect."""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.types import Type
from corollary.engines.sql import nodes
from corollary.engines.sql.dialect import AggregateForm, FunctorForm
from corollary.engines.sql.nodes import Node, OperatorKind


def extreme(is_larger: bool) -> FunctorForm:
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

    return FunctorForm(lower)


def float_operator(kind: OperatorKind) -> FunctorForm:
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
        finite = [is_finite(value), nodes.negated(is_finite(one)), nodes.negated(is_finite(two))]
        test = nodes.any_of(finite)
        assert test is not None
        # Adding 0.0 turns -0.0 into 0.0.
        return nodes.case((test, nodes.binary(exp.Add, value, zero)))

    return FunctorForm(lower, is_fallible=True)


def contains(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the test whether a text contains another one, which comes first."""
    return nodes.call("CONTAINS", arguments[1], arguments[0])


def aggregate(name: str) -> AggregateForm:
    """Return the form of an aggregate that is a function of SQL."""

    def lower(value: Node, source: Type, result: Type) -> tuple[Node, Node | None]:  # noqa: ARG001
        return nodes.call(name, value), None

    return lower
