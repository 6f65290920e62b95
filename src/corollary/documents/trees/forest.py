"""Forests: what documents begin with, and what functions bring.

A forest is a flat sequence of rows, parents before their children, so that nothing recurses however
deep a document is. Elements, text and attributes are all labels; a function node is a leaf.

| term         | rows                                                     |
|--------------|----------------------------------------------------------|
| `r[a !f]`    | `(-1, "r", ELEMENT) (0, "a", ELEMENT) (0, "f", FUNCTION)` |
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

ROOT = -1
"""The parent of the roots of a forest."""


class NodeKind(StrEnum):
    """What a node of a document is; queries test it by `text()`, `number()` and `literal()`."""

    ELEMENT = "e"
    TEXT = "t"
    ATTRIBUTE = "a"
    FUNCTION = "f"
    NUMBER = "n"
    """A number of JSON, in its spelling."""
    LITERAL = "l"
    """Of JSON: `true`, `false`, `null`, and the array without elements."""
    COLLECTION = "c"
    """The root of several documents, which are below their names."""


class ForestNode(NamedTuple):
    """A node of a forest: the position of its parent in the forest, its label, its kind."""

    parent: int
    label: str
    kind: NodeKind = NodeKind.ELEMENT


Forest = Sequence[ForestNode]
SCALARS = (NodeKind.TEXT, NodeKind.NUMBER, NodeKind.LITERAL)
"""The kinds of leaves that queries can ask for."""
TESTED = (*SCALARS, NodeKind.COLLECTION)
"""The kinds of nodes that queries test."""
EMPTY_ARRAY = "[]"
"""How the label of a literal ends that stands for an array without elements."""


def json_kind(label: str) -> NodeKind:
    """Return the kind of a value of JSON that is not a string, by its spelling."""
    is_literal = label in ("true", "false", "null") or label.endswith(EMPTY_ARRAY)
    return NodeKind.LITERAL if is_literal else NodeKind.NUMBER


def roots_of(forest: Forest) -> list[ForestNode]:
    """Return the roots of a forest."""
    return [row for row in forest if row.parent == ROOT]


def children_of(forest: Forest) -> list[list[int]]:
    """Return for each node of a forest the positions of its children.

    Of `r[a !f]` these are `[[1, 2], [], []]`.
    """
    below: list[list[int]] = [[] for _ in forest]
    for position, row in enumerate(forest):
        if row.parent != ROOT:
            below[row.parent].append(position)
    return below
