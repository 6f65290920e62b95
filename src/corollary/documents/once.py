"""Functions that answer at most once, and functions with types: what is possible, exactly.

The rules treat every function as a stream. That is exact for streams without a type; for others it
is an upper bound, which is narrowed here. The one tree of a function that answers once matters
only through the label of its root: below it one tree can hold everything that is needed, and a
subquery behind `//` can be put there. So every vector of root labels is tried:

    can(f, c)  iff  the edge into c is `//`, or label(c) = *, or label(c) = l(f)

Labels are those of the query nodes behind `/`: any other serves less. With joins they are also
those of the document, and a fresh one for each class. There are as many vectors as labels to the
power of functions (Theorem 3: NP-complete); beyond a limit the upper bound stands.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from corollary.documents.brought import brought
from corollary.documents.forest import Kind
from corollary.documents.function import Function, State
from corollary.documents.matching import answers
from corollary.documents.pattern import Axis
from corollary.documents.shape import Node, Shape
from corollary.documents.tuples import NOTHING, Tuples, meet
from corollary.documents.types import can_bring, roots_allowed
from corollary.documents.unknown import one_of, stored

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
    is_joined = any(node.carried is not None for node in shape.nodes())
    return not (is_joined and any(each.type is not None for each in live))


def refine(view: "View", limit: int = LIMIT) -> Refined:
    """Return the answers of a view that are possible."""
    document, shape = view.document, view.maintained.shape
    live = {name: each for name, each in document.functions.items() if each.state is State.LIVE}
    asked = [name for name in sorted(view.candidates) if live[name].is_once]
    labels = _labels(document, shape)
    options = [[each for each in labels if _may_begin(live[name], each)] for name in asked]
    found: set[tuple[str, ...]] = set(view.maintained.sure.get(document.nodes.root, ()))
    if prod(map(len, options)) > limit:
        bound = view.maintained.possible.get(document.nodes.root, set())
        return Refined(frozenset(bound), is_exact=False)
    for vector in product(*options):
        found |= _possible(document, shape, live, dict(zip(asked, vector, strict=True)))
        if shape.is_boolean and found:
            break
    return Refined(frozenset(found), is_exact=True)


def _labels(document: "ActiveDocument", shape: Shape) -> list[str]:
    """Return the labels that the root of an answer may have to have."""
    nodes = list(shape.nodes())
    found = {node.label for node in nodes if node.axis is Axis.CHILD and node.label is not None}
    classes = {node.carried for node in nodes if node.carried is not None}
    if classes:
        found |= {node.label for node in nodes if node.label is not None}
        kinds = document.nodes.kind
        found |= {
            label
            for number, label in document.nodes.label.items()
            if kinds[number] is not Kind.FUNCTION
        }
    fresh = len(classes) if classes else int(not found)
    return [*sorted(found), *_fresh(found, fresh)]


def _fresh(taken: set[str], number: int) -> Iterator[str]:
    at = 0
    while number:
        if (label := f"new{at}") not in taken:
            number -= 1
            yield label
        at += 1


def _may_begin(function: Function, label: str) -> bool:
    allowed = roots_allowed(function.type)
    return allowed is None or label in allowed


def _possible(
    document: "ActiveDocument",
    shape: Shape,
    live: Mapping[str, Function],
    roots: Mapping[str, str],
) -> Tuples:
    """Return what is possible if the answers of some functions have these roots."""

    def brings(node: Node, name: str) -> Tuples:
        function = live.get(name)
        if function is None or not can_bring(function.type, node):
            return NOTHING
        allowed = roots_allowed(function.type)
        if function.is_once:
            if name not in roots:
                return NOTHING
            allowed = frozenset({roots[name]})
            if node.axis is Axis.CHILD and node.label not in (None, roots[name]):
                return NOTHING
        if node.axis is not Axis.CHILD or allowed is None or node.carried is None:
            return brought(node)
        return _narrowed(node, allowed)

    return answers(document.nodes, shape, brings)


def _narrowed(node: Node, allowed: frozenset[str]) -> Tuples:
    """Return what can be brought for a node whose own label is one of some."""
    if node.carried not in node.columns:
        return brought(node)
    at = node.columns.index(node.carried)
    unknown = one_of(map(stored, allowed))
    found = set()
    for row in brought(node):
        if (label := meet(row[at], unknown)) is not None:
            found.add((*row[:at], label, *row[at + 1 :]))
    return frozenset(found)
