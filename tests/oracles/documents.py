"""A second opinion on active documents, from the definitions only, without code of the package.

A tree is `(label, [trees])`, a call `("!f", [])`. A pattern is a `Q`. Nothing is clever here:

| question | how it is answered                                                                    |
|----------|---------------------------------------------------------------------------------------|
| sure     | every map of query nodes to data nodes is tried                                       |
| possible | every live function brings every tree that the query could want, with every label     |

Bringing everything at once is enough for `possible`, since what matches goes on matching whatever
else comes. `document_usefulness` and `document_types` answer further questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

Tree = tuple[str, list[Any]]
Answers = set[tuple[str, ...]]


@dataclass(eq=False)
class Q:
    """A pattern: a label or `*`, a variable, below it edges or choices between lists of edges."""

    label: str
    variable: str | None = None
    edges: list[tuple[str, Q] | list[list[tuple[str, Q]]]] = field(default_factory=list)


@dataclass
class Pattern:
    """A pattern with the variables that are returned, and pairs that have to be equal."""

    root: Q
    outputs: list[str]
    equal: list[tuple[str, str]] = field(default_factory=list)


# --- queries without choices ---------------------------------------------------------------------


@dataclass(eq=False)
class Flat:
    """A pattern without choices."""

    label: str
    variable: str | None
    edges: list[tuple[str, Flat]]


def flat(node: Q) -> Iterator[Flat]:
    """Yield the patterns that choices stand for."""
    options: list[list[list[tuple[str, Flat]]]] = []
    for edge in node.edges:
        if isinstance(edge, tuple):
            options.append([[(edge[0], each)] for each in flat(edge[1])])
        else:
            several = []
            for alternative in edge:
                parts = [[(axis, each) for each in flat(below)] for axis, below in alternative]
                several += [list(chosen) for chosen in product(*parts)]
            options.append(several)
    for chosen in product(*options):
        yield Flat(node.label, node.variable, [edge for part in chosen for edge in part])


def all_nodes(node: Flat) -> list[Flat]:
    return [node, *(each for _, below in node.edges for each in all_nodes(below))]


def classes(pattern: Pattern, names: set[str]) -> dict[str, str]:
    found = {name: name for name in names}
    for _ in names:
        for one, other in pattern.equal:
            if one in found and other in found:
                least = min(found[one], found[other])
                found = {
                    k: least if v in (found[one], found[other]) else v for k, v in found.items()
                }
    return found


# --- documents -----------------------------------------------------------------------------------


class Node:
    """A node that knows what is below it, and whether it was there in the beginning."""

    def __init__(self, label: str, is_new: bool) -> None:
        self.label = label
        self.is_new = is_new
        self.below: list[Node] = []
        self.has_calls: bool | None = None  # not looked at yet


def grown(tree: Tree, is_new: bool = False) -> Node:
    node = Node(tree[0], is_new)
    node.below = [grown(each, is_new) for each in tree[1]]
    return node


def added(tree: Tree, function: str, forest: list[Tree]) -> Tree:
    """Return a document after an update: calls are found before anything is inserted."""
    below = [added(each, function, forest) for each in tree[1]]
    number = sum(each[0] == f"!{function}" for each in tree[1])
    return tree[0], below + forest * number


def bring(node: Node, function: str, forest: list[Tree]) -> None:
    for each in list(node.below):
        if each.label == f"!{function}":
            node.below += [grown(tree, is_new=True) for tree in forest]
        elif not each.is_new:
            bring(each, function, forest)


def descendants(node: Node) -> Iterator[Node]:
    for each in node.below:
        yield each
        yield from descendants(each)


def labels_in(tree: Tree) -> set[str]:
    found = set() if tree[0].startswith("!") else {tree[0]}
    return found.union(*(labels_in(each) for each in tree[1]))


# --- matching ------------------------------------------------------------------------------------


def maps(query: Flat, node: Node) -> Iterator[list[tuple[Flat, Node]]]:
    """Yield every map of query nodes to data nodes that respects labels and edges."""
    if node.label.startswith("!") or query.label not in ("*", node.label):
        return
    options = []
    for axis, below in query.edges:
        places = node.below if axis == "/" else descendants(node)
        options.append([found for each in places for found in maps(below, each)])
    for chosen in product(*options):
        yield [(query, node), *(pair for part in chosen for pair in part)]


def witnessed(pattern: Pattern, root: Node) -> Answers:
    """Return the witnessed tuples of all valuations: `?` for what is new and not pinned."""
    found: Answers = set()
    for query in flat(pattern.root):
        names = {each.variable for each in all_nodes(query) if each.variable}
        same = classes(pattern, names)
        for pairs in maps(query, root):
            labels: dict[str, set[str]] = {}
            known: set[str] = set()
            for part, node in pairs:
                if part.variable:
                    name = same[part.variable]
                    labels.setdefault(name, set()).add(node.label)
                    if not node.is_new or part.label != "*":
                        known.add(name)
            if all(len(each) == 1 for each in labels.values()):
                found.add(
                    tuple(
                        next(iter(labels[same[name]])) if same[name] in known else "?"
                        for name in pattern.outputs
                    )
                )
    return found


def sure(pattern: Pattern, tree: Tree) -> Answers:
    """Return q(I)."""
    return witnessed(pattern, grown(tree))


# --- what may come -------------------------------------------------------------------------------


def wanted(pattern: Pattern, labels: set[str]) -> list[Tree]:
    """Return every tree that a query node could want, with every label for its variables."""
    found: list[Tree] = []
    for query in flat(pattern.root):
        names = {each.variable for each in all_nodes(query) if each.variable}
        same = classes(pattern, names)
        for node in all_nodes(query):
            inside = sorted({same[each.variable] for each in all_nodes(node) if each.variable})
            pool = [sorted(labels | {f"new {name}"}) for name in inside]
            found += [
                instance(node, dict(zip(inside, chosen, strict=True)), same)
                for chosen in product(*pool)
            ]
    return list({repr(each): each for each in found}.values())


def instance(node: Flat, labels: dict[str, str], same: dict[str, str]) -> Tree:
    label = node.label
    if label == "*":
        label = labels[same[node.variable]] if node.variable else "new"
    return label, [instance(below, labels, same) for _, below in node.edges]


def query_labels(pattern: Pattern) -> set[str]:
    return {
        each.label for query in flat(pattern.root) for each in all_nodes(query) if each.label != "*"
    }


def possible(pattern: Pattern, tree: Tree, live: set[str]) -> Answers:
    """Return the witnessed tuples W, sure ones included, if all functions are streams."""
    is_joined = bool(pattern.equal) or any(map(_repeats, flat(pattern.root)))
    labels = query_labels(pattern) | (labels_in(tree) if is_joined else set())
    everything = wanted(pattern, labels)
    root = grown(tree)
    for name in live:
        bring(root, name, everything)
    return witnessed(pattern, root)


def _repeats(query: Flat) -> bool:
    """Whether a variable stands at two nodes."""
    names = [each.variable for each in all_nodes(query) if each.variable]
    return len(set(names)) < len(names)
