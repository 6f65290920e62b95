"""Offers: what a function can have brought in the end, as rows for each query node.

| function                       | its offers                                                   |
|--------------------------------|--------------------------------------------------------------|
| a stream of any trees          | one: brought(c) for every query node c                       |
| a stream with labels for roots | one: the same, with roots that have one of the labels        |
| a stream with a grammar        | one: the rows of every pattern that one of its trees matches |
| once, any tree, or labels      | one for each label of the root                               |
| once, with a grammar           | one for each largest set of patterns that one tree matches   |

A stream can bring everything together. The one tree of a function that answers once, without a
grammar, matters only through the label of its root: below it one tree can hold everything that is
needed, and a subquery behind `//` can be put there.
"""

from collections.abc import Mapping

from corollary.documents.brought import brought, brought_from
from corollary.documents.function import Function
from corollary.documents.grammar_offers import offers_once, rows_of_stream
from corollary.documents.pattern import Axis
from corollary.documents.shape import Node, Shape
from corollary.documents.tuples import NOTHING, Tuples
from corollary.documents.types import Grammar, roots_allowed

Offer = Mapping[int, Tuples]
"""For the numbers of query nodes, the rows over their columns."""


def offers(function: Function, shape: Shape, labels: list[str], limit: int) -> list[Offer]:
    """Return what a function can have brought in the end; only what is not part of more.

    Args:
        function: one that is live.
        shape: the query.
        labels: those that the root of an answer may have to have.
        limit: so many steps are made at most.

    Raises:
        TooManyError: it takes more.
    """
    nodes = [node for node in shape.nodes() if node.axis is not None]
    type_ = function.whole
    if isinstance(type_, Grammar):
        if function.is_once:
            return list(offers_once(type_, nodes, labels, limit)) or [{}]
        return [{node.number: rows_of_stream(type_, node, labels, limit) for node in nodes}]
    allowed = roots_allowed(type_)
    if not function.is_once:
        return [{node.number: _brought(node, allowed) for node in nodes}]
    roots = [each for each in labels if allowed is None or each in allowed]
    roots = roots or sorted(allowed or ())[:1]  # a label that no query node asks for
    return [
        {node.number: _brought(node, frozenset({root})) for node in nodes} for root in roots
    ] or [{}]


def _brought(node: Node, roots: frozenset[str] | None) -> Tuples:
    """Return what trees bring for a query node, if their roots have one of some labels."""
    if roots is None:
        return brought(node)
    if node.axis is Axis.DESCENDANT:
        return brought(node) if roots else NOTHING
    return brought_from(node, roots)
