"""Clauses become conjunctions: `a, (b ; c)` becomes `a, b` and `a, c`, each for every head.

`true` is dropped, and so is an alternative with `false`. A fact whose arguments are constants is a
tuple and needs no rule.
"""

from collections.abc import Iterator

from corollary.analysis.traverse import all_variables_in, conjunctions
from corollary.core.logic import Atom, BodyItem, Constant, Origin, Truth, Value
from corollary.core.printer import print_clause
from corollary.rewrite.clauses.expressions import fold_negative
from corollary.rewrite.translation_unit import Conjunction, FreshVariables, TranslationUnit


def disjunctions(unit: TranslationUnit) -> None:
    """Split the clauses into facts and conjunctions."""
    found: list[Conjunction] = []
    for clause in unit.clauses:
        variables = all_variables_in((*clause.body, *clause.heads))
        fresh = FreshVariables(variable.name for variable in variables)
        for head in clause.heads:
            row = None if clause.body else _row(head)
            if row is None:
                text, bodies = print_clause(clause), list(alternatives(clause.body))
                for number, items in enumerate(bodies, 1):
                    alternative = number if len(bodies) > 1 else None
                    origin = Origin(
                        text, clause.span, (), alternative, clause.plan, clause.may_never_end
                    )
                    found.append(
                        Conjunction(head, items, origin, fresh, is_null_safe=clause.is_null_safe)
                    )
            else:
                unit.facts.setdefault(head.relation, []).append(row)
    unit.conjunctions = found


def alternatives(items: tuple[BodyItem, ...]) -> Iterator[tuple[BodyItem, ...]]:
    """Yield the conjunctions of a body, without disjunctions and truth values.

    >>> list(alternatives((Truth(True),))), list(alternatives((Truth(True), Truth(False))))
    ([()], [])
    """
    for body in conjunctions(items):
        if Truth(value=False) not in body:
            yield tuple(item for item in body if not isinstance(item, Truth))


def _row(head: Atom) -> tuple[Value, ...] | None:
    """Return the tuple of a head with constants only; None if there are other terms."""
    terms = [fold_negative(argument) for argument in head.arguments]
    values = [term.value for term in terms if isinstance(term, Constant)]
    return tuple(values) if len(values) == len(terms) else None
