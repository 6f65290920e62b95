"""A second opinion on active documents, from the definitions only, without code of the package.

A tree is `(label, [trees])`, a call `("!f", [])`. A pattern is a `Q`. Nothing is clever here:

| question | how it is answered                                                                    |
|----------|---------------------------------------------------------------------------------------|
| sure     | every map of query nodes to data nodes is tried                                       |
| possible | every live function brings every tree that the query could want, with every label     |
| useful   | every small set of updates is made with and without the function                      |

Bringing everything at once is enough for `possible`, since what matches goes on matching whatever
else comes. `useful` looks for a difference, so there all sets up to a size have to be tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, count, product
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


def minimal(answers: Answers) -> Answers:
    def is_below(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
        return all(a in ("?", b) for a, b in zip(one, other, strict=True))

    return {u for u in answers if not any(v != u and is_below(v, u) for v in answers)}


# --- usefulness ----------------------------------------------------------------------------------


def chained(
    node: Flat, longest: int, labels: dict[str, str], fresh: Iterator[int]
) -> Iterator[Tree]:
    """Yield the trees of a pattern with every `//` edge as a chain of new nodes, up to a length."""
    options = []
    for axis, below in node.edges:
        several = list(chained(below, longest, labels, fresh))
        if axis == "//":
            several = [hung(each, size, fresh) for each in several for size in range(longest + 1)]
        options.append(several)
    for chosen in product(*options):
        label = node.label
        if label == "*":
            label = labels[node.variable] if node.variable else f"new {next(fresh)}"
        yield label, list(chosen)


def hung(tree: Tree, size: int, fresh: Iterator[int]) -> Tree:
    for _ in range(size):
        tree = (f"new {next(fresh)}", [tree])
    return tree


def is_useful(pattern: Pattern, tree: Tree, live: set[str], function: str, most: int = 3) -> bool:
    """Whether some set of at most so many updates gives another answer with the function's."""
    if function not in live:
        return False
    pool = update_pool(pattern, labels_in(tree))
    pairs = [(name, each) for name in sorted(live) for each in pool]
    for size in range(1, most + 1):
        for chosen in combinations(pairs, size):
            if not any(name == function for name, _ in chosen):
                continue
            if _after(pattern, tree, chosen, None) != _after(pattern, tree, chosen, function):
                return True
    return False


def update_pool(pattern: Pattern, labels: set[str]) -> list[Tree]:
    """Return the trees that updates are made of: one of each shape for each choice of labels."""
    fresh = count()
    pool: list[Tree] = []
    for query in flat(pattern.root):
        stars = max(1, sum(each.label == "*" for each in all_nodes(query)))
        edges = [edge for each in all_nodes(query) for edge in each.edges]
        names = {each.variable for each in all_nodes(query) if each.variable}
        same = classes(pattern, names)
        groups = sorted(set(same.values()))
        known_labels = sorted(labels | query_labels(pattern))
        options = [[*known_labels, f"mark{name}"] for name in groups]
        for chosen in product(*options):
            known = dict(zip(groups, chosen, strict=True))
            marked = {name: known[same[name]] for name in names}
            for axis, node in edges:
                for each in chained(node, stars + 1, marked, fresh):
                    sizes = range(stars + 2) if axis == "//" else (0,)
                    pool += [hung(each, size, fresh) for size in sizes]
    return list({_shape(each): each for each in pool}.values())


def _shape(tree: Tree) -> str:
    label = "new" if tree[0].startswith("new ") else tree[0]
    return f"{label}[{' '.join(sorted(_shape(each) for each in tree[1]))}]"


def _after(pattern: Pattern, tree: Tree, chosen: Any, without: str | None) -> Answers:
    root = grown(tree)
    for name, each in chosen:
        if name != without:
            bring(root, name, [each])
    for node in (root, *descendants(root)):
        node.is_new = False
    return witnessed(pattern, root)
