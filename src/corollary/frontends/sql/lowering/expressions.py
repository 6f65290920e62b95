"""Expressions become terms, conjuncts of conditions literals and comparisons.

The queries inside them become alternatives of the body.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from corollary.core.functors.catalog import COMPARISON_OPERATORS, OPPOSITES, can_fail, is_strict
from corollary.core.logic import Constant, Functor, Term, Truth
from corollary.core.types import BOOL
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering import subqueries
from corollary.frontends.sql.lowering.bodies import NULL, RuleBody, typed_decimals
from corollary.frontends.sql.lowering.context import ViewLowering

DECIMAL_FUNCTORS = frozenset({"multiply", "divide", "fit"})
"""Those that take decimals only, and numbers of digits."""


def term_of(
    lowering: ViewLowering,
    expression: tree.Expression,
    body: RuleBody,
    terms: Mapping[tree.Expression, Term],
    *,
    drops_null: bool,
) -> Term:
    """Return the term of an expression."""
    known = terms.get(expression)
    if known is not None:
        return known
    match expression:
        case tree.ConstantValue(value=value, type=type_):
            return Constant(value, type_)
        case tree.ColumnReference(source=source, column=column):
            return lowering.columns[source][column]
        case tree.FunctionCall(functor=functor, arguments=arguments, type=type_):
            drops = drops_null and is_strict(functor)
            inside = tuple(
                term_of(lowering, each, body, terms, drops_null=drops) for each in arguments
            )
            if functor not in DECIMAL_FUNCTORS:
                inside = typed_decimals(inside)
            return Functor(functor, inside, type_)
        case tree.ScalarSubquery():
            return subqueries.scalar_value(lowering, expression, body, drops_null=drops_null)
        case tree.Exists() | tree.Quantified():
            return subqueries.truth_value(lowering, expression, body)
        case tree.AggregateCall(name=name) | tree.WindowCall(name=name):
            raise AssertionError(f"the binder lets `{name}` stand in select lists and HAVING only")
        case _:
            assert_never(expression)


# --- conditions ----------------------------------------------------------------------------------


def add_condition(
    lowering: ViewLowering, condition: tree.Expression | None, body: RuleBody
) -> None:
    """Add that a condition is true; conjuncts without a query come first."""
    parts = [_simplified(each) for each in tree.conjuncts(condition)]
    parts = [each for part in parts for each in tree.conjuncts(part)]
    for part in sorted(parts, key=tree.has_subquery):
        _add_conjunct(lowering, part, body)


def _simplified(condition: tree.Expression) -> tree.Expression:
    """Return a condition with a negation moved into it, and what alternatives share moved out."""
    match condition:
        case tree.FunctionCall(functor="or"):
            return _factored(condition)
        case tree.FunctionCall(functor="not", arguments=(tree.FunctionCall() as inner,)):
            match inner:
                case tree.FunctionCall(functor="not", arguments=(each,)):
                    return _simplified(each)
                case tree.FunctionCall(functor=functor) if functor in OPPOSITES:
                    return replace(inner, functor=OPPOSITES[functor])
                case tree.FunctionCall(functor="or", arguments=arguments):
                    parts = (
                        tree.FunctionCall("not", (each,), BOOL, each.span) for each in arguments
                    )
                    return replace(inner, functor="and", arguments=tuple(map(_simplified, parts)))
                case _:
                    return condition
        case _:
            return condition


def _factored(condition: tree.FunctionCall) -> tree.Expression:
    """Return `a AND b OR a AND c` as `a AND (b OR c)`, so that a join on `a` is one."""
    arms = [list(tree.conjuncts(each)) for each in _disjuncts(condition)]
    shared = [part for part in arms[0] if all(part in arm for arm in arms)]
    if not shared:
        return condition
    rests = [[part for part in arm if part not in shared] for arm in arms]
    if not all(rests):
        return _joined("and", shared, condition)
    alternatives = [_joined("and", rest, condition) for rest in rests]
    return _joined("and", [*shared, _joined("or", alternatives, condition)], condition)


def _disjuncts(condition: tree.Expression) -> Iterator[tree.Expression]:
    """Yield the parts of a condition that `OR` joins."""
    if isinstance(condition, tree.FunctionCall) and condition.functor == "or":
        for each in condition.arguments:
            yield from _disjuncts(each)
    else:
        yield condition


def _joined(
    functor: str, parts: list[tree.Expression], whole: tree.FunctionCall
) -> tree.Expression:
    return parts[0] if len(parts) == 1 else replace(whole, functor=functor, arguments=tuple(parts))


def _add_conjunct(lowering: ViewLowering, condition: tree.Expression, body: RuleBody) -> None:
    match condition:
        case tree.ConstantValue(value=value):
            if value is not True:
                body.items.append(Truth(value=False))
        case tree.Exists():
            body.items.append(subqueries.existence(lowering, condition, body))
        case tree.FunctionCall(functor="not", arguments=(tree.Exists() as exists,)):
            body.items.append(subqueries.negated(subqueries.existence(lowering, exists, body)))
        case tree.Quantified():
            subqueries.add_quantified(lowering, condition, body, is_true=True)
        case tree.FunctionCall(functor="not", arguments=(tree.Quantified() as quantified,)):
            subqueries.add_quantified(lowering, quantified, body, is_true=False)
        case tree.FunctionCall(functor=functor, arguments=(left, right)) if (
            functor in COMPARISON_OPERATORS
        ):
            one = lowering.term(left, body, drops_null=True)
            other = lowering.term(right, body, drops_null=True)
            body.compare(COMPARISON_OPERATORS[functor], one, other)
        case tree.FunctionCall(functor="same", arguments=(left, right)):
            body.compare("is", lowering.term(left, body), lowering.term(right, body))
        case tree.FunctionCall(functor="is_null", arguments=(inner,)):
            body.compare("is", lowering.term(inner, body), NULL)
        case tree.FunctionCall(
            functor="not", arguments=(tree.FunctionCall(functor="is_null", arguments=(inner,)),)
        ):
            term = lowering.term(inner, body, drops_null=True)
            if body.is_nullable(term) or tree.has_subquery(inner) or can_fail(term):
                body.compare("=", term, term)
        case _:
            body.require(lowering.term(condition, body))
