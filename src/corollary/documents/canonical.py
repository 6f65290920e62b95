"""Canonical trees: the least that a function can bring for a pattern."""

from collections.abc import Iterator, Mapping
from itertools import count

from corollary.documents.forest import ROOT, Row
from corollary.documents.nodes import Nodes
from corollary.documents.pattern import Axis
from corollary.documents.plain import Plain
from corollary.documents.scenarios import Scenario
from corollary.documents.shape import Fork, Group, Node, Shape
from corollary.documents.unknown import Unknown, read

Canonical = Mapping[str, list[Row]]
"""For each function what it brings."""


def star_length(shape: Shape) -> int:
    """Return the greatest number of `*` on a path of `/` edges of a query."""
    longest = 0

    def walk(node: Node, before: int) -> None:
        nonlocal longest
        here = (before if node.axis is Axis.CHILD else 0) + (node.label is None)
        longest = max(longest, here)
        walk_group(node.group, here)

    def walk_group(group: Group, here: int) -> None:
        for branch in group.branches:
            if isinstance(branch, Fork):
                for alternative in branch.alternatives:
                    walk_group(alternative, here)
            else:
                walk(branch, here)

    for root in shape.roots:
        walk(root.node, 0)
    return longest


def edges_of(plain: Plain) -> list[Plain]:
    """Return the nodes of a pattern that a `//` edge leads to, its root included."""
    below = [each for child in plain.below for each in edges_of(child)]
    return [plain, *below] if plain.node.axis is Axis.DESCENDANT else below


def canonical(scenario: Scenario, lengths: tuple[int, ...], nodes: Nodes) -> Canonical:
    """Return what each function of a scenario brings, with chains of these lengths."""
    labels = {
        name: label
        for name, each in scenario.labels
        if not isinstance(label := read(each), Unknown)
    }
    fresh = _fresh(set(nodes.label.values()))
    chains = iter(lengths)
    found: dict[str, list[Row]] = {}
    for plain, function in sorted(
        scenario.brought, key=lambda pair: (pair[0].node.number, pair[1])
    ):
        rows = found.setdefault(function, [])
        _grow(plain, rows, ROOT, chains=chains, labels=labels, fresh=fresh)
    return found


def _grow(
    plain: Plain,
    rows: list[Row],
    parent: int,
    *,
    chains: Iterator[int],
    labels: dict[str, str],
    fresh: Iterator[str],
) -> None:
    node = plain.node
    if node.axis is Axis.DESCENDANT:
        for _ in range(next(chains)):
            rows.append(Row(parent, next(fresh)))
            parent = len(rows) - 1
    label = node.label
    if label is None and node.carried is not None:
        label = labels.setdefault(node.carried, next(fresh))
    here = len(rows)
    rows.append(Row(parent, next(fresh) if label is None else label))
    for each in plain.below:
        _grow(each, rows, here, chains=chains, labels=labels, fresh=fresh)


def _fresh(taken: set[str]) -> Iterator[str]:
    """Yield labels that occur nowhere: neither in the document nor in a query, by their blank."""
    return (label for at in count() if (label := f"new {at}") not in taken)
