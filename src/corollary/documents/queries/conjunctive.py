"""Conjunctive patterns: those without forks, whose alternatives become patterns of their own."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.queries.shape import Fork, Group, Node


@dataclass(frozen=True, slots=True)
class ConjunctivePattern:
    """A query node without forks below it."""

    node: Node
    children: tuple["ConjunctivePattern", ...]

    @property
    def label(self) -> str | None:
        """The label that a node has to have."""
        return self.node.label


def expand_alternatives(node: Node) -> list[ConjunctivePattern]:
    """Return the conjunctive patterns that a node with everything below it stands for."""
    return [ConjunctivePattern(node, children) for children in _expand(node.group)]


def _expand(group: Group) -> list[tuple[ConjunctivePattern, ...]]:
    options: list[list[tuple[ConjunctivePattern, ...]]] = []
    for branch in group.branches:
        match branch:
            case Node():
                options.append([(each,) for each in expand_alternatives(branch)])
            case Fork(alternatives=alternatives):
                options.append([each for one in alternatives for each in _expand(one)])
            case _:
                assert_never(branch)
    return [tuple(each for part in parts for each in part) for parts in product(*options)]


def classes_in(pattern: ConjunctivePattern) -> Iterator[str]:
    """Yield the classes whose labels a pattern gives."""
    if pattern.node.carried is not None:
        yield pattern.node.carried
    for each in pattern.children:
        yield from classes_in(each)


def fixed_labels_in(pattern: ConjunctivePattern) -> Iterator[tuple[str, str]]:
    """Yield the classes of a pattern that have a label in the query, with the label."""
    if pattern.node.carried is not None and pattern.node.label is not None:
        yield pattern.node.carried, pattern.node.label
    for each in pattern.children:
        yield from fixed_labels_in(each)


def labels_in(pattern: ConjunctivePattern) -> Iterator[str]:
    """Yield the labels that a pattern asks for."""
    if pattern.label is not None:
        yield pattern.label
    for each in pattern.children:
        yield from labels_in(each)


def with_labels(
    pattern: ConjunctivePattern, labels: Mapping[str, str]
) -> ConjunctivePattern | None:
    """Return a pattern that asks for the labels of classes; None if it asks for others."""
    node = pattern.node
    label = node.label
    if node.carried is not None and node.carried in labels:
        if label not in (None, labels[node.carried]):
            return None
        label = labels[node.carried]
    children = []
    for each in pattern.children:
        found = with_labels(each, labels)
        if found is None:
            return None
        children.append(found)
    return ConjunctivePattern(replace(node, label=label), tuple(children))
