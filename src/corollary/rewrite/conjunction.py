"""What passes work on: one head, one conjunction, its origin, and names not yet used in it."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

from corollary.core.origin import Origin
from corollary.core.rules import (
    Atom,
    BodyItem,
    terms_of,
    walk,
)
from corollary.core.terms import Aggregate, Functor, Term, Variable, variables_of
from corollary.core.types import Type


def unused(name: str, taken: Container[str]) -> str:
    """Return the name, with a number behind it where it is taken.

    >>> unused("t.base", {"t.base"})
    't.base2'
    """
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}{number}"
    return candidate


class Names:
    """Makes variables that do not occur yet."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._count = 0

    def fresh(self, type_: Type | None) -> Variable:
        """Return a new variable of a type."""
        while True:
            self._count += 1
            name = f"_{self._count}"
            if name not in self._taken:
                self._taken.add(name)
                return Variable(name, type_)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """One alternative of a clause on its way to a rule."""

    head: Atom
    items: tuple[BodyItem, ...]
    origin: Origin
    names: Names = field(compare=False, repr=False)
    is_lenient: bool = False

    def with_items(self, items: Iterable[BodyItem], by: str) -> "Conjunction":
        """Return the conjunction with other items, the pass noted."""
        return replace(self, items=tuple(items), origin=self.origin.by(by))


def all_variables(items: Iterable[BodyItem]) -> Iterator[Variable]:
    """Yield every variable of a body, those inside aggregates included."""
    for item in walk(tuple(items)):
        for term in terms_of(item):
            yield from deep_variables(term)


def deep_variables(term: Term) -> Iterator[Variable]:
    """Yield every variable of a term, those inside aggregates included."""
    match term:
        case Aggregate(target=target, body=body):
            if target is not None:
                yield from deep_variables(target)
            yield from all_variables(body)
        case Functor(arguments=arguments):
            for argument in arguments:
                yield from deep_variables(argument)
        case _:
            yield from variables_of(term)


def outer_variables(items: Iterable[BodyItem]) -> Iterator[Variable]:
    """Yield the variables of a body that stand outside of aggregates."""
    for item in walk(tuple(items)):
        for term in terms_of(item):
            yield from variables_of(term)


def has_aggregate(term: Term) -> bool:
    """Whether an aggregate stands in the term."""
    match term:
        case Aggregate():
            return True
        case Functor(arguments=arguments):
            return any(has_aggregate(argument) for argument in arguments)
        case _:
            return False
