"""Checks whether the trees that a function brings are those of its grammar.

A tree is of a type if one of its productions has the label, and the children fit (`content_fit`).

A call is not a tree, and what it brings comes in any number. So it may stand where the production
names its function, or where there may be any number of anything; it takes the place of no child.
"""

from collections import Counter

from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind, children_of
from corollary.documents.types.content_fit import has_fit
from corollary.documents.types.function_types import ANY, Grammar, Production


def nonconforming_roots(grammar: Grammar, forest: Forest) -> list[ForestNode]:
    """Return the roots of a forest whose trees are not of a grammar.

    Types of trees are found from the leaves up: parents stand before their children.
    """
    below = children_of(forest)
    types: list[set[str]] = [{ANY} for _ in forest]
    for place in reversed(range(len(forest))):
        row = forest[place]
        calls = {forest[at].label for at in below[place] if forest[at].kind is NodeKind.FUNCTION}
        below_types = Counter(
            frozenset(types[at]) for at in below[place] if forest[at].kind is not NodeKind.FUNCTION
        )
        for name in grammar.rules:
            for production in grammar.productions(name):
                fits = production.has_label(row.label, row.kind) and _may_call(production, calls)
                if fits and has_fit(production, below_types):
                    types[place].add(name)
                    break
    return [
        row
        for place, row in enumerate(forest)
        if row.parent == ROOT and grammar.start not in types[place]
    ]


def _may_call(production: Production, functions: set[str]) -> bool:
    """Whether calls of functions may stand among the children of a production."""
    return functions <= production.calls or any(
        child.type == ANY and not child.is_single for child in production.children
    )
