"""Conditions that must be true: their conjuncts become literals and comparisons."""

from dataclasses import replace

from corollary.core.logic import Truth
from corollary.core.types import BOOL
from corollary.frontends.sql.lowering import subqueries
from corollary.frontends.sql.lowering.bodies import COMPARISONS, NULL, OPPOSITES, Body
from corollary.frontends.sql.lowering.context import Lowering
from corollary.frontends.sql.lowering.tree_walk import conjuncts, has_subquery
from corollary.frontends.sql.query_tree import (
    ConstantValue,
    Exists,
    Expression,
    FunctionCall,
    Quantified,
)


def add_condition(lowering: Lowering, condition: Expression | None, body: Body) -> None:
    """Add that a condition is true; conjuncts without a query come first."""
    parts = [_simplified(each) for each in conjuncts(condition)]
    parts = [each for part in parts for each in conjuncts(part)]
    for part in sorted(parts, key=has_subquery):
        _add_conjunct(lowering, part, body)


def _simplified(condition: Expression) -> Expression:
    """Return a condition with a negation moved into it, where it stays exact."""
    match condition:
        case FunctionCall(functor="not", arguments=(FunctionCall() as inner,)):
            match inner:
                case FunctionCall(functor="not", arguments=(each,)):
                    return _simplified(each)
                case FunctionCall(functor=functor) if functor in OPPOSITES:
                    return replace(inner, functor=OPPOSITES[functor])
                case FunctionCall(functor="or", arguments=arguments):
                    parts = (FunctionCall("not", (each,), BOOL, each.span) for each in arguments)
                    return replace(inner, functor="and", arguments=tuple(map(_simplified, parts)))
                case _:
                    return condition
        case _:
            return condition


def _add_conjunct(lowering: Lowering, condition: Expression, body: Body) -> None:
    match condition:
        case ConstantValue(value=value):
            if value is not True:
                body.items.append(Truth(value=False))
        case Exists():
            body.items.append(subqueries.existence(lowering, condition, body))
        case FunctionCall(functor="not", arguments=(Exists() as exists,)):
            body.items.append(subqueries.negated(subqueries.existence(lowering, exists, body)))
        case Quantified():
            subqueries.add_quantified(lowering, condition, body, is_true=True)
        case FunctionCall(functor="not", arguments=(Quantified() as quantified,)):
            subqueries.add_quantified(lowering, quantified, body, is_true=False)
        case FunctionCall(functor=functor, arguments=(left, right)) if functor in COMPARISONS:
            one = lowering.term(left, body, drops_null=True)
            other = lowering.term(right, body, drops_null=True)
            body.compare(COMPARISONS[functor], one, other)
        case FunctionCall(functor="same", arguments=(left, right)):
            body.compare("is", lowering.term(left, body), lowering.term(right, body))
        case FunctionCall(functor="is_null", arguments=(inner,)):
            body.compare("is", lowering.term(inner, body), NULL)
        case FunctionCall(
            functor="not", arguments=(FunctionCall(functor="is_null", arguments=(inner,)),)
        ):
            term = lowering.term(inner, body, drops_null=True)
            if body.is_nullable(term) or has_subquery(inner):
                body.compare("=", term, term)
        case _:
            body.require(lowering.term(condition, body))
