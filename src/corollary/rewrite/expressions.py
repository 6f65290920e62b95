"""A conjunction without disjunctions and aggregates becomes a rule: expressions leave its atoms.

`p(x + 1)` in a body becomes `p(y), y = x + 1`, and in a head the same with `is`, which lets null
through.
"""

from dataclasses import replace
from decimal import Decimal

from corollary.core import logic
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit


def expressions(unit: TranslationUnit) -> None:
    """Turn the conjunctions into rules with plain literals."""
    unit.rules += [_rule(conjunction) for conjunction in unit.conjunctions]
    unit.conjunctions = ()


def _rule(conjunction: Conjunction) -> logic.Rule:
    literals: list[logic.Literal] = []
    conditions: list[logic.Condition] = []

    def slot(term: logic.Term, operator: str) -> logic.Slot:
        term = fold_negative(term)
        match term:
            case logic.Variable() | logic.Constant() | logic.Wildcard():
                return term
            case logic.Functor(type=type_):
                variable = conjunction.fresh.variable(type_)
                conditions.append(logic.Condition(operator, variable, _expression(term)))
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
                conditions.append(logic.Condition(operator, _expression(left), _expression(right)))
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


def _expression(term: logic.Term) -> logic.Expression:
    term = fold_negative(term)
    match term:
        case logic.Variable() | logic.Constant():
            return term
        case logic.Functor():
            return replace(term, arguments=tuple(_expression(each) for each in term.arguments))
        case _:
            raise AssertionError(f"{term} is not an expression")
