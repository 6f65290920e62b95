"""The results of calls: brought(c), the rows of matches of a subquery by new nodes only.

A new node with a label in the query is known by it; any other is `?`. Where two labels of a class
meet, there is no such match; a fork has those of all its alternatives.
"""

from functools import cache
from typing import assert_never

from corollary.documents.answers import unknown
from corollary.documents.queries.shape import Fork, Group, Node


@cache  # for each query node above, everything below would be computed again
def call_results(node: Node) -> unknown.Tuples:
    """Return the rows, over the columns of a node, of all matches that functions can bring."""
    return _results(
        node, unknown.UNKNOWN if node.label is None else unknown.encode_label(node.label)
    )


def call_results_from(node: Node, roots: frozenset[str]) -> unknown.Tuples:
    """Return the rows of matches that functions can bring whose own label is one of some."""
    if node.label is not None:
        return call_results(node) if node.label in roots else unknown.NO_ROWS
    return (
        _results(node, unknown.encode_one_of(map(unknown.encode_label, roots)))
        if roots
        else unknown.NO_ROWS
    )


def _results(node: Node, label: str) -> unknown.Tuples:
    own = node.own_row(label, unknown.UNKNOWN)  # when it comes is not known, either
    rows = _results_below(node.group, frozenset({own}))
    last = node.group.prefixes[-1]
    return frozenset(
        tuple(value for name, value in zip(last, row, strict=True) if name in node.columns)
        for row in rows
    )


def _results_below(group: Group, rows: unknown.Tuples) -> unknown.Tuples:
    for at, branch in enumerate(group.branches):
        before, after = group.prefixes[at : at + 2]
        match branch:
            case Node(columns=columns):
                more = call_results(branch)
            case Fork(columns=columns, alternatives=alternatives):
                more = frozenset().union(
                    *(_results_below(each, unknown.UNIT_ROWS) for each in alternatives)
                )
            case _:
                assert_never(branch)
        rows = unknown.join(rows, before, more, columns, after)
    return rows
