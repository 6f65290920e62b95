"""Patterns without forks: a fork's alternatives are patterns of their own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from corollary.documents.shape import Fork, Group, Node


@dataclass(frozen=True, slots=True)
class Plain:
    """A query node without forks below it."""

    node: Node
    below: tuple["Plain", ...]

    @property
    def label(self) -> str | None:
        """The label that is asked for."""
        return self.node.label


def expansions(node: Node) -> list[Plain]:
    """Return the patterns without forks that a node with everything below it stands for."""
    return [Plain(node, below) for below in _expanded(node.group)]


def _expanded(group: Group) -> list[tuple[Plain, ...]]:
    options: list[list[tuple[Plain, ...]]] = []
    for branch in group.branches:
        match branch:
            case Node():
                options.append([(each,) for each in expansions(branch)])
            case Fork(alternatives=alternatives):
                options.append([each for one in alternatives for each in _expanded(one)])
            case _:
                assert_never(branch)
    return [tuple(each for part in parts for each in part) for parts in product(*options)]


def classes_in(plain: Plain) -> Iterator[str]:
    """Yield the classes whose labels a pattern tells."""
    if plain.node.carried is not None:
        yield plain.node.carried
    for each in plain.below:
        yield from classes_in(each)


def fixed_in(plain: Plain) -> Iterator[tuple[str, str]]:
    """Yield the classes of a pattern at whose nodes a label is asked for, with the label."""
    if plain.node.carried is not None and plain.node.label is not None:
        yield plain.node.carried, plain.node.label
    for each in plain.below:
        yield from fixed_in(each)


def labels_in(plain: Plain) -> Iterator[str]:
    """Yield the labels that a pattern asks for."""
    if plain.label is not None:
        yield plain.label
    for each in plain.below:
        yield from labels_in(each)


def labelled(plain: Plain, labels: Mapping[str, str]) -> Plain | None:
    """Return a pattern that asks for the labels of classes; None if it asks for others."""
    node = plain.node
    label = node.label
    if node.carried is not None and node.carried in labels:
        if label not in (None, labels[node.carried]):
            return None
        label = labels[node.carried]
    below = []
    for each in plain.below:
        found = labelled(each, labels)
        if found is None:
            return None
        below.append(found)
    return Plain(replace(node, label=label), tuple(below))
