"""Expressions become terms; the queries inside them become alternatives of the body."""

from collections.abc import Mapping
from typing import assert_never

from corollary.core.functors.catalog import is_strict
from corollary.core.logic import Constant, Functor, Term
from corollary.frontends.sql.lowering import subqueries
from corollary.frontends.sql.lowering.bodies import RuleBody, typed_decimals
from corollary.frontends.sql.lowering.context import ViewLowering
from corollary.frontends.sql.query_tree import (
    AggregateCall,
    ColumnReference,
    ConstantValue,
    Exists,
    Expression,
    FunctionCall,
    Quantified,
    ScalarSubquery,
    WindowCall,
)

DECIMAL_FUNCTORS = frozenset({"multiply", "divide", "fit"})
"""Those that take decimals only, and numbers of digits."""


def term_of(
    lowering: ViewLowering,
    expression: Expression,
    body: RuleBody,
    terms: Mapping[Expression, Term],
    *,
    drops_null: bool,
) -> Term:
    """Return the term of an expression."""
    known = terms.get(expression)
    if known is not None:
        return known
    match expression:
        case ConstantValue(value=value, type=type_):
            return Constant(value, type_)
        case ColumnReference(source=source, column=column):
            return lowering.columns[source][column]
        case FunctionCall(functor=functor, arguments=arguments, type=type_):
            drops = drops_null and is_strict(functor)
            inside = tuple(
                term_of(lowering, each, body, terms, drops_null=drops) for each in arguments
            )
            if functor not in DECIMAL_FUNCTORS:
                inside = typed_decimals(inside)
            return Functor(functor, inside, type_)
        case ScalarSubquery():
            return subqueries.scalar_value(lowering, expression, body, drops_null=drops_null)
        case Exists() | Quantified():
            return subqueries.truth_value(lowering, expression, body)
        case AggregateCall(name=name) | WindowCall(name=name):
            raise AssertionError(f"the binder lets `{name}` stand in select lists and HAVING only")
        case _:
            assert_never(expression)
