"""Clauses as the advisor reads them: what may be folded, and what is pinned.

| kind of literal | here |
|---|---|
| positive, below the head's own recursion | a foldable `Literal` |
| of the head's own recursion, or with a function in it | `Pinned` with a literal: only joined |
| negated, comparison | `Pinned`: a filter |
| simple comparison under `absorb` | `Test`: moves into a candidate with all its variables |

The *significant* variables of a clause (`sig`) are those of its head and of pinned literals: a
candidate has to hand them out. Wherever the paper says "non-head variable", read "not in `sig`".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from corollary.core.rules import Atom, BodyItem, Comparison, Literal, names_in
from corollary.core.terms import Term, Variable


@dataclass(frozen=True, slots=True)
class Pinned:
    """A body item that stays where it is.

    Attributes:
        item: as it is written.
        variables: all its variables.
        why: `recursive`, `negated`, `function` or `comparison`.
        literal: what is joined, for a positive one; None for a filter.
    """

    item: BodyItem
    variables: frozenset[str]
    why: str
    literal: Literal | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison that may move into a candidate."""

    __test__ = False  # no test for pytest

    item: Comparison
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClauseForm:
    """One head and one conjunction.

    Attributes:
        literals: the foldable ones, without duplicates.
        positions: where literals and pinned items stood in the text, for printing.
        obstacle: why nothing in it may be folded (`aggregate`), or nothing.
    """

    head: Atom
    literals: tuple[Literal, ...]
    pinned: tuple[Pinned, ...] = ()
    tests: tuple[Test, ...] = ()
    obstacle: str = ""
    positions: dict[object, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def head_variables(self) -> frozenset[str]:
        """The variables of the head."""
        return frozenset(each.name for each in term_variables(self.head.arguments))

    @property
    def significant(self) -> frozenset[str]:
        """`sig`: the variables of the head and of pinned items."""
        return self.head_variables.union(*(each.variables for each in self.pinned))


def term_variables(node: object) -> Iterator[Variable]:
    """Yield the variables anywhere in a part of a clause, left to right, with repetitions.

    >>> [each.name for each in term_variables((Variable("x"), Variable("y"), Variable("x")))]
    ['x', 'y', 'x']
    """
    if isinstance(node, Variable):
        yield node
    elif isinstance(node, tuple):
        for each in node:
            yield from term_variables(each)
    elif hasattr(node, "__dataclass_fields__"):
        for name, about in node.__dataclass_fields__.items():
            if about.compare:
                yield from term_variables(getattr(node, name))


def names_of(literals: Iterable[Literal]) -> frozenset[str]:
    """Return the names of the variables of some literals."""
    return frozenset().union(*(names_in(each) for each in literals))


def as_atom(literal: Literal) -> Atom:
    """Return a literal as a body item of a program."""
    arguments: tuple[Term, ...] = literal.slots
    return Atom(literal.relation, arguments, literal.sign, literal.state)
