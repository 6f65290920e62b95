"""A conjunction without disjunctions and aggregates becomes a rule: expressions leave its atoms.

`p(x + 1)` in a body becomes `p(y), y = x + 1`, and in a head the same with `is`, which lets null
through.
"""

from dataclasses import dataclass, replace
from decimal import Decimal

from corollary.core import logic
from corollary.rewrite.translation_unit import (
    Conjunction,
    FreshVariables,
    TranslationUnit,
)

EXPRESSION_MAX_DEPTH = 50
"""How deep an expression of a normal rule is, so that no later pass exhausts the stack."""


def expressions(unit: TranslationUnit) -> None:
    """Turn the conjunctions into rules with plain literals."""
    unit.rules += [_rule(conjunction) for conjunction in unit.conjunctions]
    unit.conjunctions = ()


def _rule(conjunction: Conjunction) -> logic.Rule:
    literals: list[logic.Literal] = []
    conditions: list[logic.Condition] = []
    expressions = _Expressions(conjunction.fresh, conditions)

    def slot(term: logic.Term, operator: str) -> logic.Slot:
        term = fold_negative(term)
        match term:
            case logic.Variable() | logic.Constant() | logic.Wildcard():
                return term
            case logic.Functor(type=type_):
                variable = conjunction.fresh.variable(type_)
                conditions.append(logic.Condition(operator, variable, expressions.make(term)))
                return variable
            case _:
                raise AssertionError("the pass `aggregates` leaves none")

    def literal(atom: logic.Atom, operator: str, negated: bool = False) -> logic.Literal:
        slots = tuple(slot(term, operator) for term in atom.arguments)
        return logic.Literal(atom.relation, slots, negated, atom.sign, atom.state)

    equals = "is" if conjunction.is_null_safe else "="
    for item in conjunction.items:
        match item:
            case logic.Atom():
                literals.append(literal(item, equals))
            case logic.Negation(atom=atom):
                literals.append(literal(atom, equals, negated=True))
            case logic.Comparison(operator=operator, left=left, right=right):
                sides = expressions.make(left), expressions.make(right)
                conditions.append(logic.Condition(operator, *sides))
            case _:
                raise AssertionError("the pass `disjunctions` leaves none")
    # The head is last: its expressions may use variables that conditions of the body compute.
    head = literal(conjunction.head, "is")
    return logic.Rule(
        head,
        tuple(literals),
        tuple(conditions),
        conjunction.origin,
        conjunction.is_lenient,
        conjunction.is_null_safe,
    )


def fold_negative(term: logic.Term) -> logic.Term:
    """Return a negated number as a constant: `-5` is a value, not a computation."""
    match term:
        case logic.Functor(name="neg", arguments=(logic.Constant(value=value) as constant,)):
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                return replace(constant, value=-value)
        case _:
            pass
    return term


@dataclass(slots=True)
class _Expressions:
    """Makes the expressions of a conjunction; a long sum is computed in parts.

    Attributes:
        conditions: what computes the parts; a part may be null, as the whole may.
    """

    fresh: FreshVariables
    conditions: list[logic.Condition]

    def make(self, term: logic.Term) -> logic.Expression:
        """Return the expression of a term."""
        return logic.fold_term(term, self._combine)[0]

    def _combine(
        self, term: logic.Term, inside: tuple[tuple[logic.Expression, int], ...]
    ) -> tuple[logic.Expression, int]:
        """Return an expression and its depth."""
        match fold_negative(term):
            case logic.Variable() | logic.Constant() as leaf:
                return leaf, 0
            case logic.Functor() as functor:
                parts = [self._part(*each) for each in inside]
                depth = 1 + max((deep for _, deep in parts), default=0)
                return replace(functor, arguments=tuple(part for part, _ in parts)), depth
            case _:
                raise AssertionError(f"{term} is not an expression")

    def _part(self, expression: logic.Expression, depth: int) -> tuple[logic.Expression, int]:
        if depth < EXPRESSION_MAX_DEPTH:
            return expression, depth
        variable = self.fresh.variable(expression.type)
        self.conditions.append(logic.Condition("is", variable, expression))
        return variable, 0
