"""A second opinion on usefulness: sets of updates are made with and without a function's own.

`useful` looks for a difference, so bringing everything at once does not do: all sets of updates, up
to a size, are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count, product

from oracles import documents as oracle
from oracles.document_types import Matches
from oracles.documents import Answers, Flat, Pattern, Tree

Updates = Sequence[tuple[str, Tree]]
"""Functions, and what they bring."""


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
    pool = update_pool(pattern, oracle.labels_in(tree))
    pairs = [(name, each) for name in sorted(live) for each in pool]
    sets = (chosen for size in range(1, most + 1) for chosen in combinations(pairs, size))
    return any(makes_a_difference(pattern, tree, chosen, function) for chosen in sets)


def makes_a_difference(pattern: Pattern, tree: Tree, chosen: Updates, function: str) -> bool:
    """Whether some updates give another answer with those of a function than without them."""
    if all(name != function for name, _ in chosen):
        return False
    return _after(pattern, tree, chosen, None) != _after(pattern, tree, chosen, function)


def allowed_sets(pairs: Updates, once: set[str], most: int) -> Iterator[Updates]:
    """Yield the sets of at most so many updates in which none answers twice who answers once."""
    for size in range(1, most + 1):
        for chosen in combinations(pairs, size):
            single = [name for name, _ in chosen if name in once]
            if len(set(single)) == len(single):
                yield chosen


def update_pool(pattern: Pattern, labels: set[str]) -> list[Tree]:
    """Return the trees that updates are made of: one of each shape for each choice of labels."""
    fresh = count()
    pool: list[Tree] = []
    for query in oracle.flat(pattern.root):
        stars = max(1, sum(each.label == "*" for each in oracle.all_nodes(query)))
        edges = [edge for each in oracle.all_nodes(query) for edge in each.edges]
        names = {each.variable for each in oracle.all_nodes(query) if each.variable}
        same = oracle.classes(pattern, names)
        groups = sorted(set(same.values()))
        known_labels = sorted(labels | oracle.query_labels(pattern))
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


def _after(pattern: Pattern, tree: Tree, chosen: Updates, without: str | None) -> Answers:
    root = oracle.grown(tree)
    for name, each in chosen:
        if name != without:
            oracle.bring(root, name, [each])
    for node in (root, *oracle.descendants(root)):
        node.is_new = False
    matches = (Matches(pattern, query) for query in oracle.flat(pattern.root))
    return set().union(*(each.answers(root) for each in matches))
