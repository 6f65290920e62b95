"""What a body binds, what depends on what in it, and which of its expressions may fail."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from corollary.analysis.traverse import aggregates_of, all_variables, bound_by_equations
from corollary.core import logic
from corollary.core.functors.catalog import can_fail
from corollary.core.graph import component_numbers
from corollary.rewrite.translation_unit import Conjunction, outer_variables


def liftable_aggregates(conjunction: Conjunction) -> Iterator[logic.AggregateTerm]:
    """Yield the outermost aggregates whose keys do not depend on another aggregate's value."""
    items = conjunction.items
    found = [each for item in (*items, conjunction.head) for each in _aggregates(item)]
    if not found:
        return
    available = _available(items)
    outside = {variable.name for variable in outer_variables(items)}
    for aggregate in found:
        inner = {variable.name for variable in all_variables(aggregate)}
        if inner & outside <= available:
            yield aggregate


def independent(items: tuple[logic.BodyItem, ...]) -> tuple[logic.BodyItem, ...]:
    """Return the items that have values before any aggregate has one."""
    available = _available(items)
    return tuple(item for item in items if not _aggregates(item) and names_of(item) <= available)


def _available(items: Iterable[logic.BodyItem]) -> set[str]:
    """Return the variables that have values before any aggregate has one."""
    return bound_by(tuple(item for item in items if not _aggregates(item)))


def bound_by(items: tuple[logic.BodyItem, ...]) -> set[str]:
    """Return the variables that a body binds by itself."""
    bound = {
        argument.name
        for item in items
        if isinstance(item, logic.Atom)
        for argument in item.arguments
        if isinstance(argument, logic.Variable)
    }
    return bound_by_equations(bound, items, all_variables)


def may_have_no_value(aggregate: logic.AggregateTerm) -> bool:
    """Whether an expression of the aggregate may fail (overflow, division by zero …)."""
    terms = [aggregate.target] if aggregate.target is not None else []
    terms += [term for item in logic.literals_of(aggregate.body) for term in logic.terms_of(item)]
    return any(_is_fallible(term) for term in terms)


def _is_fallible(term: logic.Term) -> bool:
    inner = (part for part in logic.subterms(term) if isinstance(part, logic.AggregateTerm))
    return can_fail(term) or any(map(may_have_no_value, inner))


def recursion_test(clauses: Sequence[logic.Clause]) -> Callable[[str, Iterable[str]], bool]:
    """Return a test whether a head and one of some relations depend on each other."""
    graph: dict[str, set[str]] = {}
    for clause in clauses:
        below = {
            item.relation for item in logic.literals_of(clause.body) if isinstance(item, logic.Atom)
        }
        for head in clause.heads:
            graph.setdefault(head.relation, set()).update(below)
    component = component_numbers(graph)

    def is_recursive(head: str, relations: Iterable[str]) -> bool:
        return any(component.get(name) == component.get(head, -1) for name in relations)

    return is_recursive


def names_of(item: logic.BodyItem) -> set[str]:
    """Return the names of the variables of an item, without those of aggregates only."""
    return {variable.name for variable in outer_variables((item,))}


def _aggregates(item: logic.BodyItem) -> list[logic.AggregateTerm]:
    """Return the outermost aggregates of an item."""
    return list(aggregates_of((item,)))
