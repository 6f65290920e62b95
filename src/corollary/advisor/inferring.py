"""What rules say about the relations they define: what views are made of, inferred dependencies."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from corollary.advisor.candidates import variables_of
from corollary.advisor.clauses import ClauseForm
from corollary.advisor.degree import closure
from corollary.advisor.scheme import Dependence, Scheme, View
from corollary.advisor.shapes import Numbers, Shapes
from corollary.core.rules import Literal
from corollary.core.terms import Slot, Variable

WIDEST = 6
"""Dependencies of views are inferred up to so many columns."""


def with_views(scheme: Scheme, filled: set[str], component: Mapping[str, int]) -> Scheme:
    """Return the scheme, with what follows from rules for the relations that they define.

    Of stored views it is what they are made of; of other relations with one rule, which functional
    dependencies it keeps.

    Args:
        scheme: the scheme so far.
        filled: the relations that have tuples beside those of their rules.
        component: the numbers of strongly connected components of relations.
    """
    relations = dict(scheme.relations)
    for name in sorted(scheme.clauses, key=lambda each: component.get(each, 0)):
        relation, clauses = relations[name], scheme.clauses[name]
        is_recursive = any(
            component.get(each) == component.get(name) for each in scheme.reads(name)
        )
        if name in filled or is_recursive or not all(_is_plain(each) for each in clauses):
            continue
        if relation.is_kept:
            relation = replace(relation, view=_view(clauses))
        if not relation.is_stored and len(clauses) == 1 and relation.arity <= WIDEST:
            known = Shapes(Scheme(relations, scheme.clauses))
            inferred = tuple(_inferred(clauses[0], known))
            relation = replace(relation, dependences=(*relation.dependences, *inferred))
        relations[name] = relation
    return Scheme(relations, scheme.clauses, scheme.queries)


def _is_plain(clause: ClauseForm) -> bool:
    """Whether the head has distinct variables, and literals alone bind them."""
    names = [each.name for each in clause.head.arguments if isinstance(each, Variable)]
    is_distinct = len(names) == len(set(names)) == len(clause.head.arguments)
    bound = frozenset().union(*(variables_of(each) for each in clause.literals))
    return is_distinct and not clause.obstacle and set(names) <= bound


def _view(clauses: tuple[ClauseForm, ...]) -> View:
    first = [each.name for each in clauses[0].head.arguments if isinstance(each, Variable)]
    bodies = []
    for number, clause in enumerate(clauses):
        own = [each.name for each in clause.head.arguments if isinstance(each, Variable)]
        renamed = dict(zip(own, first, strict=True))

        def slot(each: Slot, renamed: dict[str, str] = renamed, number: int = number) -> Slot:
            if not isinstance(each, Variable):
                return each
            return Variable(renamed.get(each.name, f"{each.name}•{number}"))

        bodies.append(
            tuple(Literal(each.relation, tuple(map(slot, each.slots))) for each in clause.literals)
        )
    is_whole = not any(each.pinned or each.tests for each in clauses)
    return View(tuple(first), tuple(bodies), is_whole)


def _inferred(clause: ClauseForm, shapes: Shapes) -> Iterator[Dependence]:
    """Yield the functional dependencies among the columns of a view with one rule."""
    numbers = Numbers()
    masks = [
        (numbers.mask(left), numbers.mask(right))
        for literal in clause.literals
        for left, right in shapes.of(literal).dependencies
    ]
    columns = [
        numbers.mask([each.name]) for each in clause.head.arguments if isinstance(each, Variable)
    ]
    every = range(len(columns))
    found: list[Dependence] = []
    for size in every:
        for left in combinations(every, size):
            have = closure(sum(columns[at] for at in left), masks)
            right = frozenset(at for at in every if columns[at] & have and at not in left)
            known = {at for one in found if one.left <= set(left) for at in one.right}
            if right - known:
                found.append(Dependence(frozenset(left), right))
                yield found[-1]
