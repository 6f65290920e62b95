"""What a body binds, what depends on what in it, and what of it may have no value."""

from corollary.core.functors import may_fail
from corollary.core.rules import Atom, BodyItem, Comparison, terms_of, walk
from corollary.core.terms import Aggregate, Functor, Term, Variable
from corollary.rewrite.conjunction import deep_variables, has_aggregate, outer_variables


def independent(items: tuple[BodyItem, ...], result: Variable) -> tuple[BodyItem, ...]:
    """Return the items that depend neither on the result nor on another aggregate."""
    bound = {
        variable.name
        for item in items
        if isinstance(item, Atom)
        for variable in outer_variables((item,))
    } - {result.name}
    dependent = {result.name}
    changed = True
    while changed:
        changed = False
        for item in items:
            names = {variable.name for variable in outer_variables((item,))}
            if isinstance(item, Comparison) and (names & dependent or _aggregates_in(item)):
                fresh = names - dependent - bound
                dependent |= fresh
                changed |= bool(fresh)
    return tuple(
        item
        for item in items
        if not _aggregates_in(item)
        and not {variable.name for variable in outer_variables((item,))} & dependent
    )


def _aggregates_in(item: BodyItem) -> bool:
    return any(has_aggregate(term) for each in walk((item,)) for term in terms_of(each))


def bound_by(items: tuple[BodyItem, ...]) -> set[str]:
    """Return the variables that a body binds by itself."""
    bound = {
        variable.name
        for item in items
        if isinstance(item, Atom)
        for argument in item.arguments
        if isinstance(argument, Variable)
        for variable in (argument,)
    }
    changed = True
    while changed:
        changed = False
        for item in items:
            if isinstance(item, Comparison) and item.operator == "=":
                for one, other in ((item.left, item.right), (item.right, item.left)):
                    if (
                        isinstance(one, Variable)
                        and one.name not in bound
                        and {variable.name for variable in deep_variables(other)} <= bound
                    ):
                        bound.add(one.name)
                        changed = True
    return bound


def has_fault(aggregate: Aggregate) -> bool:
    """Whether an expression of the aggregate may have no value."""
    terms = [aggregate.target] if aggregate.target is not None else []
    terms += [term for item in walk(aggregate.body) for term in terms_of(item)]
    return any(_is_fallible(term) for term in terms)


def _is_fallible(term: Term) -> bool:
    match term:
        case Functor(name=name, arguments=arguments):
            return may_fail(name, term.type) or any(_is_fallible(each) for each in arguments)
        case Aggregate():
            return has_fault(term)
        case _:
            return False
