"""Checks whether the trees that a function brings are those of its grammar.

Children are unordered. Each has to be given to a child of the rule that takes it: at most one to a
single one, at least one to a required one. By Mendelsohn and Dulmage, a matching that covers some
nodes on the left and one that covers some on the right make one that covers both; so that is
possible iff the required ones can be given different children, and the children that nothing but
single ones takes can be given to different ones.

A call is not a tree, and what it brings comes in any number. So it may stand where the rule names
its function, or where there may be any number of anything; it takes the place of no other child.
"""

from collections.abc import Mapping, Sequence

from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind, children_of
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
        trees = [types[at] for at in below[place] if forest[at].kind is not NodeKind.FUNCTION]
        for name, rule in grammar.rules.items():
            is_labelled = rule.labels is None or row.label in rule.labels
            fits = row.kind is not NodeKind.FUNCTION and is_labelled and _may_call(rule, calls)
            if fits and _are_children(rule, trees):
                types[place].add(name)
    return [
        row
        for place, row in enumerate(forest)
        if row.parent == ROOT and grammar.start not in types[place]
    ]


def _may_call(rule: Production, functions: set[str]) -> bool:
    """Whether calls of functions may stand among the children that a rule says."""
    return functions <= rule.calls or any(
        child.type == ANY and not child.is_single for child in rule.children
    )


def _are_children(rule: Production, types: Sequence[set[str]]) -> bool:
    """Whether nodes, given by their types, can be the children that a rule says."""
    # Both sides of the bipartite graph: the nodes that each child of the rule takes, the children
    # of the rule that take each node.
    takes = {
        at: [place for place, each in enumerate(types) if child.type in each]
        for at, child in enumerate(rule.children)
    }
    taken_by: dict[int, list[int]] = {place: [] for place in range(len(types))}
    for at, places in takes.items():
        for place in places:
            taken_by[place].append(at)
    required = {at: takes[at] for at, child in enumerate(rule.children) if child.is_required}
    single = {
        place: several
        for place, several in taken_by.items()
        if all(rule.children[at].is_single for at in several)
    }
    return _have_partners(required) and _have_partners(single)


def _have_partners(options: Mapping[int, Sequence[int]]) -> bool:
    """Whether each of some can have a partner of its own, found by augmenting paths."""
    partners: dict[int, int] = {}

    def find(one: int, seen: set[int]) -> bool:
        for other in options[one]:
            if other not in seen:
                seen.add(other)
                if other not in partners or find(partners[other], seen):
                    partners[other] = one
                    return True
        return False

    return all(find(one, set()) for one in options)
