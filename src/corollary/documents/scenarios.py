"""Scenarios: ways in which functions can complete a match.

Reference: Section 5 of the paper, with the specification's repairs. A scenario is a set of pairs
(pattern that is brought, function), with what is known about the classes of variables:

    S(c, m) = { {(c, f)} }                       m is a call of f that can bring c
    S(p, n) = one choice of m for each branch    n is a data node; the pairs of all choices together

A branch without columns that is surely matched below n contributes nothing. Sets are made from the
leaves up, so that a thousand nodes which wait for the same function are one scenario, not many.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from corollary.documents.forest import Kind
from corollary.documents.matching import Tables, Tree, answer_of, fits
from corollary.documents.pattern import Axis
from corollary.documents.plain import Plain, classes_in, expansions
from corollary.documents.shape import Fork, Group, Node, Root, Shape
from corollary.documents.tuples import meet
from corollary.documents.unknown import UNKNOWN, stored

Labels = tuple[tuple[str, str], ...]
"""The labels of classes, as far as they are known, by the name of the class."""


class TooManyError(Exception):
    """There are more scenarios than asked for."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What functions bring, and what is known about the labels of classes.

    Attributes:
        brought: patterns and the functions that bring them.
        labels: of classes; one that is missing may be anything.
    """

    brought: frozenset[tuple[Plain, str]] = frozenset()
    labels: Labels = ()

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
        limit: so many scenarios of a node at most.
    """

    tree: Tree
    possible: Tables
    sure: Tables
    limit: int
    _memo: dict[tuple[int, int], frozenset[Scenario]] = field(default_factory=dict)

    def of_root(self, root: Root) -> frozenset[Scenario]:
        """Return the scenarios of one of the alternatives of a query.

        Raises:
            TooManyError: there are more than the limit.
        """
        if root.node.number not in self.possible.here[self.tree.root]:
            return frozenset()
        return self._of_node(root.node, self.tree.root)

    def of_query(self, shape: Shape) -> frozenset[Scenario]:
        """Return the scenarios of all alternatives."""
        return frozenset().union(*map(self.of_root, shape.roots))

    def _of_node(self, node: Node, number: int) -> frozenset[Scenario]:
        """Return the ways in which a query node can be matched at a node of the document."""
        if (node.number, number) not in self._memo:
            found = (
                self._of_call(node, self.tree.label[number])
                if self.tree.kind[number] is Kind.FUNCTION
                else self._of_data(node, number)
            )
            self._memo[node.number, number] = found
        return self._memo[node.number, number]

    @staticmethod
    def _of_call(node: Node, function: str) -> frozenset[Scenario]:
        found = set()
        for plain in expansions(node):
            known = _known(plain, {})
            if known is not None:
                found.add(Scenario(frozenset({(plain, function)}), tuple(sorted(known.items()))))
        return frozenset(found)

    def _of_data(self, node: Node, number: int) -> frozenset[Scenario]:
        if not fits(node, self.tree, number):
            return frozenset()
        label = stored(self.tree.label[number])
        own: Labels = () if node.carried is None else ((node.carried, label),)
        found = self._of_group(node.group, number, frozenset({Scenario(labels=own)}))
        return frozenset(_without_idle(each, node) for each in found)

    def _of_group(
        self, group: Group, number: int, found: frozenset[Scenario]
    ) -> frozenset[Scenario]:
        """Return the ways in which all branches of a group can be matched, beside some others."""
        for branch in group.branches:
            if branch.columns or not self._is_sure(branch, number):
                found = self._both(found, self._of_branch(branch, number))
        return found

    def _of_branch(self, branch: Node | Fork, number: int) -> frozenset[Scenario]:
        """Return the ways in which a branch can be matched in range of a node."""
        match branch:
            case Node():
                every = (self._of_node(branch, each) for each in self._in_range(branch, number))
            case Fork(alternatives=alternatives):
                one = frozenset({Scenario()})
                every = (self._of_group(each, number, one) for each in alternatives)
            case _:
                assert_never(branch)
        return self._limited({each for some in every for each in some})

    def _both(self, left: frozenset[Scenario], right: frozenset[Scenario]) -> frozenset[Scenario]:
        """Return what two parts of a match need together, wherever their labels agree."""
        found = set()
        for one in left:
            for other in right:
                labels = _merged(one.labels, other.labels)
                if labels is not None:
                    found.add(Scenario(one.brought | other.brought, labels))
            self._limited(found)
        return frozenset(found)

    def _limited(self, found: set[Scenario]) -> frozenset[Scenario]:
        if len(found) > self.limit:
            raise TooManyError
        return frozenset(found)

    def _in_range(self, node: Node, number: int) -> Iterator[int]:
        """Yield the nodes below another one that a query node may match at."""
        return in_range(self.tree, self.possible, node, number)

    def _is_sure(self, branch: Node | Fork, number: int) -> bool:
        """Whether a branch without columns is surely matched in range of a node."""
        match branch:
            case Node():
                return branch.number in self.sure.within[number]
            case Fork(alternatives=alternatives):
                return any(
                    all(self._is_sure(each, number) for each in alternative.branches)
                    for alternative in alternatives
                )
            case _:
                assert_never(branch)


def in_range(tree: Tree, tables: Tables, node: Node, number: int) -> Iterator[int]:
    """Yield the nodes below another one at which tables say that a query node matches."""
    stack = list(tree.below[number])
    while stack:
        child = stack.pop()
        if node.number in tables.here[child]:
            yield child
        if node.axis is Axis.DESCENDANT and node.number in tables.within[child]:
            stack += tree.below[child]


def _without_idle(scenario: Scenario, node: Node) -> Scenario:
    """Return a scenario without the labels that neither the outside nor a brought pattern needs."""
    needed = {*node.columns, *(name for plain, _ in scenario.brought for name in classes_in(plain))}
    kept = tuple(each for each in scenario.labels if each[0] in needed)
    return Scenario(scenario.brought, kept)


def _merged(left: Labels, right: Labels) -> Labels | None:
    if not left or not right:
        return left or right
    found: dict[str, str] | None = dict(left)
    for name, label in right:
        found = None if found is None else _with(found, name, label)
    return None if found is None else tuple(sorted(found.items()))


def _with(labels: Mapping[str, str], name: str, label: str) -> dict[str, str] | None:
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
