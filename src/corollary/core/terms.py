"""Terms: what stands in the argument places of atoms and on the sides of comparisons."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from corollary.core.types import Type
from corollary.source import Span

if TYPE_CHECKING:
    from corollary.core.rules import BodyItem

Value = int | Decimal | float | str | bool | date | datetime | None
"""A value in Python's clothes; integers and fractions without a type take it from the context."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named variable; `type` is known after type inference."""

    name: str
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: a variable used nowhere else."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value; `type` is known after type inference (or by a suffix, as in `7u`)."""

    value: Value
    type: Type | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and str(self.value) == str(other.value)
            and self.type == other.type
        )

    def __hash__(self) -> int:
        return hash((type(self.value), str(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Functor:
    """An operator or function applied to terms, such as `x + 1` or `cat(a, b)`.

    `name` is the operator's sign (`+ - * / % ^`, unary minus is `neg`) or the function's name.
    """

    name: str
    arguments: tuple["Term", ...]
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum e : { body }`; variables of the body that are bound outside are the group's keys."""

    operator: str
    target: "Term | None"
    body: tuple["BodyItem", ...]
    type: Type | None = field(default=None, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


Term = Variable | Wildcard | Constant | Functor | Aggregate
Expression = Variable | Constant | Functor
"""What is left of terms in normal rules."""
Slot = Variable | Constant | Wildcard
"""What stands in the argument places of a normal rule's atoms."""


def variables_of(term: Term) -> Iterator[Variable]:
    """Yield the variables of a term, left to right, with repetitions; an aggregate's are its own.

    >>> [v.name for v in variables_of(Functor("+", (Variable("x"), Variable("y"))))]
    ['x', 'y']
    """
    match term:
        case Variable():
            yield term
        case Functor(arguments=arguments):
            for argument in arguments:
                yield from variables_of(argument)
        case Wildcard() | Constant() | Aggregate():
            return
        case _:
            assert_never(term)
