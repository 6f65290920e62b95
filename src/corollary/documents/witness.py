"""One match behind an answer that is sure: the nodes of the document that it maps to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from corollary.documents.matching import Tables, Tree, fits
from corollary.documents.scenarios import in_range
from corollary.documents.shape import Constant, Fork, Group, Node, Root
from corollary.documents.unknown import stored

Labels = dict[str, str]
Match = tuple[Labels, tuple[int, ...]]
"""The labels of classes, and the nodes that are matched so far."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Finds matches, given what matches where without functions."""

    tree: Tree
    sure: Tables

    def of_root(self, root: Root, answer: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the nodes of a match that gives an answer, if there is one."""
        labels: Labels = {}
        for output, label in zip(root.outputs, answer, strict=True):
            known = stored(output.label) if isinstance(output, Constant) else None
            known = known or labels.setdefault(str(output), label)
            if known != label:
                return None
        if root.node.number not in self.sure.here[self.tree.root]:
            return None
        found = next(self._node(root.node, self.tree.root, (labels, ())), None)
        return None if found is None else found[1]

    def _node(self, node: Node, number: int, so_far: Match) -> Iterator[Match]:
        labels, nodes = so_far
        if not fits(node, self.tree, number):
            return
        if node.carried is not None:
            label = stored(self.tree.label[number])
            if labels.get(node.carried, label) != label:
                return
            labels = {**labels, node.carried: label}
        yield from self._group(node.group, 0, number, (labels, (*nodes, number)))

    def _group(self, group: Group, at: int, number: int, so_far: Match) -> Iterator[Match]:
        if at == len(group.branches):
            yield so_far
            return
        for each in self._branch(group.branches[at], number, so_far):
            yield from self._group(group, at + 1, number, each)

    def _branch(self, branch: Node | Fork, number: int, so_far: Match) -> Iterator[Match]:
        match branch:
            case Node():
                for child in in_range(self.tree, self.sure, branch, number):
                    yield from self._node(branch, child, so_far)
            case Fork(alternatives=alternatives):
                for each in alternatives:
                    yield from self._group(each, 0, number, so_far)
            case _:
                assert_never(branch)
