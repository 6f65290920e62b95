"""Candidates: groups of literals that became one literal, as trees down to the input.

A candidate keeps the variable names of its clause, so that putting its body back in its place is
textual. One made by the disjunct phase has several bodies.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Union

from corollary.advisor.clauses import Test
from corollary.core.rules import Literal, names_in
from corollary.core.terms import Variable

Leaf = Literal | Test
Node = Union[Literal, Test, "Candidate"]
Body = tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A new predicate: its variables in order, its bodies, and the step that made it.

    Attributes:
        carried: literals of the clause that were added as filters (they carry dependencies).
    """

    variables: tuple[str, ...]
    bodies: tuple[Body, ...]
    step: str
    carried: tuple[Literal, ...] = ()

    @property
    def children(self) -> Iterator["Candidate"]:
        """The candidates in its bodies."""
        for body in self.bodies:
            for node in body:
                if isinstance(node, Candidate):
                    yield node

    def nodes(self) -> Iterator["Candidate"]:
        """Yield it and all candidates below it."""
        yield self
        for child in self.children:
            yield from child.nodes()


def variables_of(node: Node) -> frozenset[str]:
    """Return the variables that a node shows to the rest of its clause."""
    if isinstance(node, Literal):
        return frozenset(names_in(node))
    return frozenset(node.variables)


def shown_by(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the variables that some nodes show."""
    return frozenset().union(*(variables_of(each) for each in nodes))


def in_order(nodes: Iterable[Node], wanted: frozenset[str] | set[str]) -> tuple[str, ...]:
    """Return variables in the order in which nodes first mention them."""
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, Literal):
            names = [each.name for each in node.slots if isinstance(each, Variable)]
        elif isinstance(node, Candidate):
            names = list(node.variables)
        else:
            names = []
        found.update(dict.fromkeys(name for name in names if name in wanted))
    return tuple(found)


def expanded(node: Node) -> list[tuple[Leaf, ...]]:
    """Return the bodies of a node over the input, as many as its unions multiply out to."""
    if not isinstance(node, Candidate):
        return [(node,)]
    return [flat for body in node.bodies for flat in expanded_body(body)]


def expanded_body(body: Iterable[Node]) -> list[tuple[Leaf, ...]]:
    """Return the conjunctions over the input that a body stands for."""
    choices = [expanded(each) for each in body]
    return [
        tuple(dict.fromkeys(leaf for part in choice for leaf in part))
        for choice in product(*choices)
    ]
