"""A conjunction without disjunctions and aggregates becomes a rule: expressions leave its atoms.

`p(x + 1)` in a body becomes `p(y), y = x + 1`, and in a head the same with `is`, which lets null
through. A decimal that may have more digits than its column in the head is converted to the type of
the column, which is an overflow where it does have more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal

from corollary.core import logic
from corollary.core.functors.catalog import can_fail, signature_of
from corollary.core.functors.lambdas import has_parameter
from corollary.core.program import Relation
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.rewrite.translation_unit import Conjunction, FreshVariables, TranslationUnit

EXPRESSION_MAX_DEPTH = 50
"""How deep an expression of a normal rule is, so that no later pass exhausts the stack."""


def expressions(unit: TranslationUnit) -> None:
    """Turn the conjunctions into rules with plain literals."""
    unit.rules += [_rule(conjunction, unit.relations) for conjunction in unit.conjunctions]
    unit.conjunctions = ()


def _rule(conjunction: Conjunction, relations: Mapping[str, Relation]) -> logic.Rule:
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

    def fitted(slot: logic.Slot, column: Type) -> logic.Slot:
        if not isinstance(slot, logic.Variable) or not column.is_decimal:
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
    relation = relations.get(head.relation)
    if relation is not None:
        slots = zip(head.slots, relation.types, strict=True)
        head = replace(head, slots=tuple(fitted(slot, type_) for slot, type_ in slots))
    return logic.Rule(
        head,
        tuple(literals),
        tuple(conditions),
        conjunction.origin,
        conjunction.is_lenient,
        conjunction.is_null_safe,
    )


def fold_negative(term: logic.Term) -> logic.Term:
    """Return a negated number as a constant: `-5` is a value, not a computation.

    The least integer stays a computation, which overflows.
    """
    match term:
        case logic.Functor(name="neg", arguments=(logic.Constant(value=value) as constant,)):
            if isinstance(value, Decimal):  # the minus sign would round to the context's digits
                return replace(constant, value=value.copy_negate() if value else value)
            if isinstance(value, int | float) and not isinstance(value, bool) and value != -(2**63):
                return replace(constant, value=-value)
        case _:
            pass
    return term


@dataclass(slots=True)
class _Expressions:
    """Makes the expressions of a conjunction; a long sum is computed in parts.

    A part that may fail stays where a lazy functor decides whether that counts.

    Attributes:
        conditions: what computes the parts; a part may be null, as the whole may.
        lazy: the terms below lazy functors, by identity.
    """

    fresh: FreshVariables
    conditions: list[logic.Condition]
    lazy: set[int] = field(default_factory=set)

    def make(self, term: logic.Term) -> logic.Expression:
        """Return the expression of a term."""
        self.lazy = _terms_below_lazy(term)
        return logic.fold_term(term, self._combine)[0]

    def _combine(
        self, term: logic.Term, inside: tuple[tuple[logic.Expression, int], ...]
    ) -> tuple[logic.Expression, int]:
        """Return an expression and its depth."""
        match fold_negative(term):
            case logic.Variable() | logic.Constant() as leaf:
                return leaf, 0
            case logic.Functor() as functor:
                is_kept = id(term) in self.lazy or _is_lazy(functor)
                parts = [self._part(*each, is_kept=is_kept) for each in inside]
                return _flattened(functor, parts)
            case _:
                raise AssertionError(f"{term} is not an expression")

    def _part(
        self, expression: logic.Expression, depth: int, *, is_kept: bool
    ) -> tuple[logic.Expression, int]:
        is_inside = is_kept and (can_fail(expression) or has_parameter(expression))
        if depth < EXPRESSION_MAX_DEPTH or is_inside:
            return expression, depth
        variable = self.fresh.variable(expression.type)
        self.conditions.append(logic.Condition("is", variable, expression))
        return variable, 0


def _is_lazy(functor: logic.Functor) -> bool:
    signature = signature_of(functor)
    return signature is not None and signature.is_lazy


def _terms_below_lazy(term: logic.Term) -> set[int]:
    found: set[int] = set()
    for part in logic.subterms(term):
        if isinstance(part, logic.Functor) and (id(part) in found or _is_lazy(part)):
            found |= {id(argument) for argument in part.arguments}
    return found


def _flattened(
    functor: logic.Functor, parts: Sequence[tuple[logic.Expression, int]]
) -> tuple[logic.Expression, int]:
    """Return a functor of some arguments, and its depth.

    `and` in `and`, `or` in `or` and `if` after the last comma of `if` are one functor: a choice of
    hundreds of cases is not deep.
    """
    depth = 1
    arguments: list[logic.Term] = []
    for at, (part, deep) in enumerate(parts):
        is_last = functor.name == "if" and at == len(parts) - 1
        match part:
            case logic.Functor(name=name, arguments=inner) if name == functor.name and (
                is_last or name in ("and", "or")
            ):
                arguments += inner
                depth = max(depth, deep)
            case _:
                arguments.append(part)
                depth = max(depth, deep + 1)
    return replace(functor, arguments=tuple(arguments)), depth
