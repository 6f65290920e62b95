"""A conjunction without disjunctions and aggregates becomes a rule: expressions leave its atoms.

`p(x + 1)` in a body becomes `p(y), y = x + 1`, and in a head the same with `is`, which lets null
through.
"""

from dataclasses import replace
from decimal import Decimal

from corollary.core.logic import (
    Atom,
    Comparison,
    Condition,
    Constant,
    Expression,
    Functor,
    Literal,
    Negation,
    Rule,
    Slot,
    Term,
    Variable,
    Wildcard,
)
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit


def expressions(unit: TranslationUnit) -> None:
    """Turn the conjunctions into rules with plain literals."""
    unit.rules += [_rule(conjunction) for conjunction in unit.conjunctions]
    unit.conjunctions = ()


def _rule(conjunction: Conjunction) -> Rule:
    literals: list[Literal] = []
    conditions: list[Condition] = []

    def slot(term: Term, operator: str) -> Slot:
        term = fold_negative(term)
        match term:
            case Variable() | Constant() | Wildcard():
                return term
            case Functor(type=type_):
                variable = conjunction.fresh.variable(type_)
                conditions.append(Condition(operator, variable, _expression(term)))
                return variable
            case _:
                raise AssertionError("the pass `aggregates` leaves none")

    def literal(atom: Atom, operator: str, negated: bool = False) -> Literal:
        slots = tuple(slot(term, operator) for term in atom.arguments)
        return Literal(atom.relation, slots, negated, atom.sign, atom.state)

    for item in conjunction.items:
        match item:
            case Atom():
                literals.append(literal(item, "="))
            case Negation(atom=atom):
                literals.append(literal(atom, "=", negated=True))
            case Comparison(operator=operator, left=left, right=right):
                conditions.append(Condition(operator, _expression(left), _expression(right)))
            case _:
                raise AssertionError("the pass `disjunctions` leaves none")
    # The head is last: its expressions may use variables that conditions of the body compute.
    head = literal(conjunction.head, "is")
    return Rule(
        head, tuple(literals), tuple(conditions), conjunction.origin, conjunction.is_lenient
    )


def fold_negative(term: Term) -> Term:
    """Return a negated number as a constant: `-5` is a value, not a computation."""
    match term:
        case Functor(name="neg", arguments=(Constant(value=value) as constant,)):
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                return replace(constant, value=-value)
        case _:
            pass
    return term


def _expression(term: Term) -> Expression:
    term = fold_negative(term)
    match term:
        case Variable() | Constant():
            return term
        case Functor():
            return replace(term, arguments=tuple(_expression(each) for each in term.arguments))
        case _:
            raise AssertionError(f"{term} is not an expression")
