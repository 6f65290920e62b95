"""`autoinc()` becomes the number of a row: rules that count read rows that were numbered before.

`q(autoinc(), x) :- p(x, y).` becomes

    q.rows1(x, y) :- p(x, y).
    q(n, x) :- q.numbered1(x, y, n).

where `q.numbered1` is a base relation. Whoever evaluates the program fills it: with the rows in the
order of their values, and a number for each `autoinc()` in each row.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.analysis.traverse import replace_terms
from corollary.core import logic
from corollary.core.functors.conversions import COUNTER
from corollary.core.program import Relation
from corollary.core.types import NUMBER
from corollary.rewrite.clauses import bindings
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit, outer_variables


def counters(unit: TranslationUnit) -> None:
    """Split the conjunctions that count: into the rows to number, and what reads them."""
    if any(logic.applies_functor(clause, (COUNTER,)) for clause in unit.clauses):
        found = [made for each in unit.conjunctions for made in _split(each, unit)]
        unit.conjunctions = found


def _split(conjunction: Conjunction, unit: TranslationUnit) -> Iterator[Conjunction]:
    numbers: list[logic.Variable] = []

    def swap(term: logic.Term) -> logic.Term:
        return logic.fold_term(term, swap_part)

    def swap_part(term: logic.Term, arguments: tuple[logic.Term, ...]) -> logic.Term:
        if not isinstance(term, logic.Functor):
            return term
        if term.name == COUNTER:
            numbers.append(conjunction.fresh.variable(NUMBER))
            return numbers[-1]
        return replace(term, arguments=arguments)

    head = replace_terms(conjunction.head, swap)
    items = tuple(replace_terms(item, swap) for item in conjunction.items)
    if not numbers:
        yield conjunction
        return
    early, late = _divide(items, {each.name for each in numbers})
    bound = bindings.bound_by(early)
    columns = [each for each in dict.fromkeys(outer_variables(early)) if each.name in bound]
    at = len(unit.counters) + 1
    rows = unit.unused_name(f"{head.relation}.rows{at}")
    numbered = unit.unused_name(f"{head.relation}.numbered{at}")
    names, types = [each.name for each in columns], [logic.type_of(each) for each in columns]
    unit.declare(rows, names, types)
    every = (*columns, *numbers)
    unit.relations[numbered] = Relation(
        numbered,
        tuple(each.name for each in every),
        tuple(map(logic.type_of, every)),
        is_derived=False,
        is_declared=False,
    )
    unit.counters[numbered] = rows
    origin = conjunction.origin.with_pass("counters")
    yield replace(conjunction, head=logic.Atom(rows, tuple(columns)), items=early, origin=origin)
    read = logic.Atom(numbered, every)
    yield replace(conjunction, head=head, items=(read, *late), origin=origin)


def _divide(
    items: tuple[logic.BodyItem, ...], numbers: set[str]
) -> tuple[tuple[logic.BodyItem, ...], tuple[logic.BodyItem, ...]]:
    """Return the items that hold without the numbers, and those that need them."""
    late = [item for item in items if numbers & bindings.names_of(item)]
    while True:
        early = tuple(item for item in items if item not in late)
        bound = bindings.bound_by(early)
        more = [
            item
            for item in early
            if not isinstance(item, logic.Atom) and bindings.names_of(item) - bound
        ]
        if not more:
            return early, tuple(item for item in items if item in late)
        late += more
