"""Windows whose readers only ask for the first rows of partitions have no others.

    v.window1(x, n)   the tuples of p, numbered
    v(x) :- v.window1(x, n), n <= 10.

Nobody sees a number above 10: `v.window1` keeps the first ten rows. The same holds for `rank`, and
through rules that hand the number on.
"""

from collections import defaultdict
from dataclasses import replace

from corollary.core import logic
from corollary.rewrite.translation_unit import TranslationUnit


def top_rows(unit: TranslationUnit) -> None:
    """Note the greatest number of a row that is asked for."""
    if not any(isinstance(each, logic.Windowing) for each in unit.aggregations):
        return
    readers = _Readers(unit)
    unit.aggregations = [
        replace(each, top=readers.top(each)) if isinstance(each, logic.Windowing) else each
        for each in unit.aggregations
    ]


class _Readers:
    """The rules that read each relation."""

    def __init__(self, unit: TranslationUnit) -> None:
        self._unit = unit
        self._rules: dict[str, list[tuple[logic.Rule, logic.Literal]]] = defaultdict(list)
        for rule in unit.rules:
            for literal in rule.literals:
                self._rules[literal.relation].append((rule, literal))
        self._bodies = {each.body for each in unit.aggregations}

    def top(self, windowing: logic.Windowing) -> tuple[int, int] | None:
        """Return a function of a window, and the greatest of its values that is asked for."""
        first = self._unit.relations[windowing.relation].arity - len(windowing.functions)
        for at, function in enumerate(windowing.functions):
            if function.name in ("row_number", "rank"):
                most = self._most(windowing.relation, first + at, ())
                if most is not None:
                    return at, most
        return None

    def _most(self, relation: str, column: int, seen: tuple[str, ...]) -> int | None:
        """Return the greatest value of a column that rules ask for; None if there is no such."""
        is_seen = self._unit.relations[relation].is_declared or relation in self._bodies
        if is_seen or relation in seen or not self._rules[relation]:
            return None
        found = [
            self._most_in(rule, literal, column, (*seen, relation))
            for rule, literal in self._rules[relation]
        ]
        known = [each for each in found if each is not None]
        return max(known) if len(known) == len(found) else None

    def _most_in(
        self, rule: logic.Rule, literal: logic.Literal, column: int, seen: tuple[str, ...]
    ) -> int | None:
        slot = literal.slots[column]
        if literal.negated or rule.is_lenient:
            return None
        if isinstance(slot, logic.Constant):
            return slot.value if isinstance(slot.value, int) else None
        if not isinstance(slot, logic.Variable):
            return None
        bounds = [
            bound for condition in rule.conditions if (bound := _bound(condition, slot)) is not None
        ]
        if bounds:
            return min(bounds)
        if slot in rule.head.slots:
            return self._most(rule.head.relation, rule.head.slots.index(slot), seen)
        return None


def _bound(condition: logic.Condition, variable: logic.Variable) -> int | None:
    """Return the greatest value of a variable for which a condition holds; None if it has none."""
    operator = condition.operator
    one: logic.Expression = condition.left
    other: logic.Expression = condition.right
    if other == variable and operator in logic.MIRRORED_OPERATORS:
        one, other, operator = other, one, logic.MIRRORED_OPERATORS[operator]
    if one != variable or not isinstance(other, logic.Constant) or not isinstance(other.value, int):
        return None
    return {"<=": other.value, "<": other.value - 1, "=": other.value}.get(operator)
