"""`!q(x, _)` becomes `!q.some1(x)` with `q.some1(x) :- q(x, _)`, so negated literals are bound."""

from collections.abc import Container
from dataclasses import replace

from corollary.core.origin import Origin
from corollary.core.program import Relation
from corollary.core.rules import Literal, Rule, has_wildcard
from corollary.core.terms import Variable, Wildcard
from corollary.rewrite.conjunction import unused


class Projections:
    """Makes the projections that negated literals need; equal ones are made once."""

    def __init__(self, taken: Container[str]) -> None:
        self._taken = taken
        self.relations: dict[str, Relation] = {}
        self.rules: list[Rule] = []
        self._made: dict[tuple[str, tuple[int, ...]], str] = {}

    def negations(self, rule: Rule, relations: dict[str, Relation]) -> Rule:
        """Return the rule with every negated literal fully bound."""
        literals = tuple(
            self._bound(literal, relations[literal.relation], rule.origin)
            if literal.negated and has_wildcard(literal)
            else literal
            for literal in rule.literals
        )
        return replace(rule, literals=literals)

    def _bound(self, literal: Literal, relation: Relation, origin: Origin) -> Literal:
        kept = tuple(
            column for column, slot in enumerate(literal.slots) if not isinstance(slot, Wildcard)
        )
        name = self._made.get((literal.relation, kept))
        if name is None:
            number = sum(made == literal.relation for made, _ in self._made) + 1
            name = unused(f"{literal.relation}.some{number}", self._taken)
            self._made[literal.relation, kept] = name
            variables = [
                Variable(column, type_)
                for column, type_ in zip(relation.columns, relation.types, strict=True)
            ]
            self.relations[name] = Relation(
                name,
                tuple(relation.columns[column] for column in kept),
                tuple(relation.types[column] for column in kept),
                is_derived=True,
                is_declared=False,
            )
            body = tuple(
                variable if column in kept else Wildcard()
                for column, variable in enumerate(variables)
            )
            head = Literal(name, tuple(variables[column] for column in kept))
            self.rules.append(
                Rule(head, (Literal(literal.relation, body),), (), origin.by("negations"))
            )
        return replace(literal, relation=name, slots=tuple(literal.slots[at] for at in kept))
