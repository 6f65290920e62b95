"""A conjunction without disjunctions and aggregates becomes a rule: expressions leave its atoms.

`p(x + 1)` in a body becomes `p(y), y = x + 1`, and in a head the same with `is`, which lets null
through. A decimal that may have more digits than its column in the head is converted to the type of
the column, which is an overflow where it does have more.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from corollary.core import logic
from corollary.core.program import Relation
from corollary.core.types import NUMBER, Kind, Type
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit


def expressions(unit: TranslationUnit) -> None:
    """Turn the conjunctions into rules with plain literals."""
    unit.rules += [_rule(conjunction, unit.relations) for conjunction in unit.conjunctions]
    unit.conjunctions = ()


def _rule(conjunction: Conjunction, relations: Mapping[str, Relation]) -> logic.Rule:
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

    def fitted(slot: logic.Slot, column: Type) -> logic.Slot:
        if not isinstance(slot, logic.Variable) or column.kind is not Kind.DECIMAL:
            return slot
        if slot.type is None or slot.type.precision <= column.precision:
            return slot
        type_ = column.with_null(slot.type.nullable)
        scale = logic.Constant(column.scale, NUMBER)
        variable = conjunction.fresh.variable(type_)
        made = logic.Functor("to_decimal", (slot, scale), type_)
        conditions.append(logic.Condition("is", variable, made))
        return variable

    def literal(atom: logic.Atom, operator: str, negated: bool = False) -> logic.Literal:
        slots = tuple(slot(term, operator) for term in atom.arguments)
        return logic.Literal(atom.relation, slots, negated, atom.sign, atom.state)

    for item in conjunction.items:
        match item:
            case logic.Atom():
                literals.append(literal(item, "="))
            case logic.Negation(atom=atom):
                literals.append(literal(atom, "=", negated=True))
            case logic.Comparison(operator=operator, left=left, right=right):
                conditions.append(logic.Condition(operator, _expression(left), _expression(right)))
            case _:
                raise AssertionError("the pass `disjunctions` leaves none")
    # The head is last: its expressions may use variables that conditions of the body compute.
    head = literal(conjunction.head, "is")
    relation = relations.get(head.relation)
    if relation is not None:
        slots = zip(head.slots, relation.types, strict=True)
        head = replace(head, slots=tuple(fitted(slot, type_) for slot, type_ in slots))
    return logic.Rule(
        head, tuple(literals), tuple(conditions), conjunction.origin, conjunction.is_lenient
    )


def fold_negative(term: logic.Term) -> logic.Term:
    """Return a negated number as a constant: `-5` is a value, not a computation."""
    match term:
        case logic.Functor(name="neg", arguments=(logic.Constant(value=value) as constant,)):
            if isinstance(value, Decimal):  # the minus sign would round to the context's digits
                return replace(constant, value=value.copy_negate() if value else value)
            if isinstance(value, int | float) and not isinstance(value, bool):
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
