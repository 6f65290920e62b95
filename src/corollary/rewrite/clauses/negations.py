"""`!q(x, _)` becomes `!q.some1(x)` with `q.some1(x) :- q(x, _)`, so negated literals are bound."""

from dataclasses import replace

from corollary.core.logic import Literal, Origin, Rule, Wildcard, has_wildcard
from corollary.rewrite.translation_unit import TranslationUnit


def negations(unit: TranslationUnit) -> None:
    """Replace relations under a negation by projections, so that negated literals are bound."""
    projections = _Projections(unit)
    rules = [
        replace(
            rule,
            literals=tuple(
                projections.bind(literal, rule.origin)
                if literal.negated and has_wildcard(literal)
                else literal
                for literal in rule.literals
            ),
        )
        for rule in unit.rules
    ]
    unit.rules = rules + projections.rules


class _Projections:
    """Projections of relations to some of their columns; equal ones are made once."""

    def __init__(self, unit: TranslationUnit) -> None:
        self._unit = unit
        self._names: dict[tuple[str, tuple[int, ...]], str] = {}
        self.rules: list[Rule] = []

    def bind(self, literal: Literal, origin: Origin) -> Literal:
        """Return the literal without its wildcards, on the projection to the other columns."""
        columns = tuple(
            column for column, slot in enumerate(literal.slots) if not isinstance(slot, Wildcard)
        )
        key = literal.relation, columns
        if key not in self._names:
            number = sum(relation == literal.relation for relation, _ in self._names) + 1
            self._names[key] = self._unit.unused_name(f"{literal.relation}.some{number}")
            self._define(self._names[key], *key, origin)
        slots = tuple(literal.slots[column] for column in columns)
        return replace(literal, relation=self._names[key], slots=slots)

    def _define(self, name: str, source: str, columns: tuple[int, ...], origin: Origin) -> None:
        relation = self._unit.relations[source]
        variables = relation.variables
        self._unit.declare(
            name,
            [relation.columns[column] for column in columns],
            [relation.types[column] for column in columns],
        )
        head = Literal(name, tuple(variables[column] for column in columns))
        body = tuple(
            variable if column in columns else Wildcard()
            for column, variable in enumerate(variables)
        )
        self.rules.append(Rule(head, (Literal(source, body),), (), origin.with_pass("negations")))
