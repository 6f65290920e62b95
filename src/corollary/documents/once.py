"""Functions that answer at most once, and functions with types: what is possible, exactly.

The rules treat every function as a stream. That is exact for streams without a type, and for others
if the query has no columns; otherwise it is an upper bound, which is narrowed here. What a function
can have brought in the end is one of its *offers*; what is possible with one of each, is possible.

Without joins, the root of an answer may have to have the label of a query node behind `/`: any
other serves less. With joins it may also be one of the document, of a type, or a fresh one for each
class. There are as many vectors of offers as labels to the power of functions (Theorem 3:
NP-complete); beyond a limit the upper bound stands.

A function that answers once and is called in the trees of others, by their types, is taken there
for a stream. So it is asked as well what is possible if it brings nothing there: if that is the
same, it is exact.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from corollary.documents.forest import Kind
from corollary.documents.function import Function, State
from corollary.documents.grammar_offers import TooManyError
from corollary.documents.matching import answers
from corollary.documents.offers import Offer, offers
from corollary.documents.pattern import Axis
from corollary.documents.shape import Node, Shape
from corollary.documents.tuples import NOTHING, Tuples
from corollary.documents.types import labels_of

if TYPE_CHECKING:
    from corollary.documents.document import ActiveDocument
    from corollary.documents.view import View

LIMIT = 1_000_000
"""So many vectors are tried at most."""


@dataclass(frozen=True, slots=True)
class Refined:
    """The answers that are possible, and whether that is exact or only an upper bound."""

    answers: Tuples
    is_exact: bool


def is_exact(document: "ActiveDocument", shape: Shape) -> bool:
    """Whether the rules are exact for the functions that are live."""
    live = [each for each in document.functions.values() if each.state is State.LIVE]
    if any(each.is_once for each in live):
        return False
    if any(each.is_active and each.whole != document.least_type(each.name) for each in live):
        return False
    is_joined = any(node.carried is not None for node in shape.nodes())
    return not (is_joined and any(each.type is not None for each in live))


def refine(view: "View", limit: int = LIMIT) -> Refined:
    """Return the answers of a view that are possible."""
    document = view.document
    asked = [document.functions[name] for name in sorted(view.candidates)]
    labels = labels_that_matter(view)
    at_least = [replace(each, whole=document.least_type(each.name)) for each in asked]
    try:
        found = _answers(view, asked, labels, limit)
    except TooManyError:
        bound = view.maintained.possible.get(document.nodes.root, set())
        return Refined(frozenset(bound), is_exact=False)
    try:
        is_exact = at_least == asked or _answers(view, at_least, labels, limit) == found
    except TooManyError:
        is_exact = False
    return Refined(found, is_exact)


def _answers(view: "View", asked: list[Function], labels: list[str], limit: int) -> Tuples:
    """Return the answers that are possible with some functions.

    Raises:
        TooManyError: there are more vectors of offers than the limit.
    """
    document, shape = view.document, view.maintained.shape
    found: set[tuple[str, ...]] = set(view.maintained.sure.get(document.nodes.root, ()))
    options = [offers(each, shape, labels, limit) for each in asked]
    if prod(map(len, options)) > limit:
        raise TooManyError
    for vector in product(*options):
        offered = {each.name: offer for each, offer in zip(asked, vector, strict=True)}
        found |= _possible(document, shape, offered)
        if shape.is_boolean and found:
            break
    return frozenset(found)


def labels_that_matter(view: "View") -> list[str]:
    """Return the labels that the root of an answer may have to have."""
    document = view.document
    nodes = list(view.maintained.shape.nodes())
    classes = {node.carried for node in nodes if node.carried is not None}
    if not classes:
        asked = {node.label for node in nodes if node.axis is Axis.CHILD and node.label is not None}
        return sorted(asked) or [*_fresh(set(), 1)]
    found = {node.label for node in nodes if node.label is not None}
    kinds = document.nodes.kind
    found |= {
        label
        for number, label in document.nodes.label.items()
        if kinds[number] is not Kind.FUNCTION
    }
    found = found.union(*(labels_of(each.whole) for each in document.functions.values()))
    found = found.union(*(map(str, answer) for answer in view.sure))
    return [*sorted(found), *_fresh(found, len(classes))]


def _fresh(taken: set[str], number: int) -> Iterator[str]:
    at = 0
    while number:
        if (label := f"new{at}") not in taken:
            number -= 1
            yield label
        at += 1


def _possible(document: "ActiveDocument", shape: Shape, offered: Mapping[str, Offer]) -> Tuples:
    """Return what is possible if functions bring what they offer."""

    def brings(node: Node, name: str) -> Tuples:
        return offered[name].get(node.number, NOTHING) if name in offered else NOTHING

    return answers(document.nodes, shape, brings)
