"""What a function can bring for a subquery: brought(c), the rows of a match of new nodes only.

A new node with a label in the query is known by it; any other is `?`. Where two labels of a class
meet, nothing can be brought; a fork may bring any of its alternatives.
"""

from functools import cache
from typing import assert_never

from corollary.documents.shape import Fork, Group, Node
from corollary.documents.tuples import NOTHING, YES, Tuples, join
from corollary.documents.unknown import UNKNOWN, one_of, stored


@cache
def brought(node: Node) -> Tuples:
    """Return the rows, over the columns of a node, of all matches that functions can bring."""
    return _brought(node, UNKNOWN if node.label is None else stored(node.label))


def brought_from(node: Node, roots: frozenset[str]) -> Tuples:
    """Return the rows of matches that functions can bring whose own label is one of some."""
    if node.label is not None:
        return brought(node) if node.label in roots else NOTHING
    return _brought(node, one_of(map(stored, roots))) if roots else NOTHING


def _brought(node: Node, label: str) -> Tuples:
    rows = YES if node.carried is None else frozenset({(label,)})
    rows = _brought_below(node.group, rows)
    last = node.group.prefixes[-1]
    return frozenset(
        tuple(value for name, value in zip(last, row, strict=True) if name in node.columns)
        for row in rows
    )


def _brought_below(group: Group, rows: Tuples) -> Tuples:
    for at, branch in enumerate(group.branches):
        before, after = group.prefixes[at : at + 2]
        match branch:
            case Node(columns=columns):
                more = brought(branch)
            case Fork(columns=columns, alternatives=alternatives):
                more = frozenset().union(*(_brought_below(each, YES) for each in alternatives))
            case _:
                assert_never(branch)
        rows = join(rows, before, more, columns, after)
    return rows
