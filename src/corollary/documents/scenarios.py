"""Scenarios: ways in which functions can complete a match.

Reference: Section 5 of the paper, with the specification's repairs. A scenario is a set of pairs
(pattern that is brought, function), with what is known about the classes of variables:

    S(c, m) = { {(c, f)} }                       m is a call of f that can bring c
    S(p, n) = one choice of m for each branch    n is a data node; the pairs of all choices together

A branch without columns that is surely matched below n contributes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from corollary.documents.forest import Kind
from corollary.documents.matching import Tables, Tree, answer_of, fits
from corollary.documents.pattern import Axis
from corollary.documents.shape import Fork, Group, Node, Root, Shape
from corollary.documents.tuples import meet
from corollary.documents.types import Plain, expansions
from corollary.documents.unknown import UNKNOWN, stored

Labels = Mapping[str, str]
"""The labels of classes, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What functions bring, and what is known about the labels of classes.

    Attributes:
        brought: patterns and the functions that bring them.
        labels: of classes; one that is missing may be anything.
        nodes: for query nodes that are matched by the document itself, its node.
    """

    brought: frozenset[tuple[Plain, str]] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    nodes: tuple[tuple[int, int], ...] = ()

    @property
    def functions(self) -> frozenset[str]:
        """The functions that have to bring something."""
        return frozenset(name for _, name in self.brought)

    def answer(self, root: Root) -> tuple[str, ...]:
        """Return the answer of a match that comes about like this."""
        known = dict(self.labels)
        return answer_of(root, {name: known.get(name, UNKNOWN) for name in root.node.columns})


@dataclass(frozen=True, slots=True)
class Searching:
    """Finds scenarios on a document.

    Attributes:
        tree: the document.
        possible: what may match where, with functions.
        sure: what matches where.
        is_full: whether branches that match surely are gone through, too, for their nodes.
    """

    tree: Tree
    possible: Tables
    sure: Tables
    is_full: bool = False

    def of_query(self, shape: Shape) -> Iterator[tuple[Root, Scenario]]:
        """Yield the scenarios of a query, each with the root it is for."""
        for root in shape.roots:
            if root.node.number in self.possible.here[self.tree.root]:
                for each in self.of_node(root.node, self.tree.root, Scenario()):
                    yield root, each

    def of_node(self, node: Node, number: int, so_far: Scenario) -> Iterator[Scenario]:
        """Yield the ways in which a query node can be matched at a node of the document."""
        if self.tree.kind[number] is Kind.FUNCTION:
            for plain in expansions(node):
                known = _known(plain, dict(so_far.labels))
                if known is not None:
                    pair = (plain, self.tree.label[number])
                    made = so_far.brought | {pair}
                    yield Scenario(made, tuple(sorted(known.items())), so_far.nodes)
            return
        if not fits(node, self.tree, number):
            return
        labels = so_far.labels
        if node.carried is not None:
            known = _with(dict(labels), node.carried, stored(self.tree.label[number]))
            if known is None:
                return
            labels = tuple(sorted(known.items()))
        nodes = (*so_far.nodes, (node.number, number))
        yield from self.of_group(node.group, 0, number, Scenario(so_far.brought, labels, nodes))

    def of_group(self, group: Group, at: int, number: int, so_far: Scenario) -> Iterator[Scenario]:
        """Yield the ways in which the branches of a group from one on can be matched."""
        if at == len(group.branches):
            yield so_far
            return
        branch = group.branches[at]
        if not self.is_full and not branch.columns and self.is_sure(branch, number):
            yield from self.of_group(group, at + 1, number, so_far)
            return
        for each in self.of_branch(branch, number, so_far):
            yield from self.of_group(group, at + 1, number, each)

    def of_branch(self, branch: Node | Fork, number: int, so_far: Scenario) -> Iterator[Scenario]:
        """Yield the ways in which a branch can be matched in range of a node."""
        match branch:
            case Node():
                for child in self.in_range(branch, number):
                    yield from self.of_node(branch, child, so_far)
            case Fork(alternatives=alternatives):
                for alternative in alternatives:
                    yield from self.of_group(alternative, 0, number, so_far)
            case _:
                assert_never(branch)

    def in_range(self, node: Node, number: int) -> Iterator[int]:
        """Yield the nodes below another one that a query node may match at."""
        stack = list(self.tree.below[number])
        while stack:
            child = stack.pop()
            if node.number in self.possible.here[child]:
                yield child
            if node.axis is Axis.DESCENDANT and node.number in self.possible.within[child]:
                stack += self.tree.below[child]

    def is_sure(self, branch: Node | Fork, number: int) -> bool:
        """Whether a branch without columns is surely matched in range of a node."""
        within = self.sure.within[number]
        match branch:
            case Node():
                return branch.number in within
            case Fork(alternatives=alternatives):
                return any(
                    all(self.is_sure(each, number) for each in alternative.branches)
                    for alternative in alternatives
                )
            case _:
                assert_never(branch)


def _with(labels: dict[str, str], name: str, label: str) -> dict[str, str] | None:
    both = meet(labels.get(name, UNKNOWN), label)
    return None if both is None else {**labels, name: both}


def _known(plain: Plain, labels: dict[str, str]) -> dict[str, str] | None:
    """Return what is known of classes if a pattern is brought; None if it cannot be."""
    found: dict[str, str] | None = labels
    node = plain.node
    if node.carried is not None and node.label is not None:
        found = _with(labels, node.carried, stored(node.label))
    for each in plain.below:
        if found is None:
            return None
        found = _known(each, found)
    return found
