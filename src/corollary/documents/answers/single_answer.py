"""Functions that answer at most once, and functions with types: what is possible, exactly.

The rules treat every function as a stream. That is exact for streams without a type, and for others
if the query has no columns; otherwise it is an upper bound, which is narrowed here. What a function
can bring in all is one of its *offers*; what is possible with one of each is possible.

| function                       | its offers: rows for each query node                         |
|--------------------------------|--------------------------------------------------------------|
| a stream of any trees          | one: brought(c) for every query node c                       |
| a stream with labels for roots | one: the same, with roots that have one of the labels        |
| a stream with a grammar        | one: the rows of every pattern that one of its trees matches |
| once, any tree, or labels      | one for each label of the root                               |
| once, with a grammar           | one for each largest set of patterns that one tree matches   |

A stream can bring everything together. The one tree of a function that answers once, without a
grammar, matters only through the label of its root: below it one tree can hold everything that is
needed, and a subquery after `//` can be put there. Without joins, the root of an answer may have to
have the label of a query node after `/`: any other serves less. With joins it may also be one of
the document, of a type, or a fresh one for each class. There are as many vectors of offers as
labels to the power of functions (Theorem 3: NP-complete); beyond a limit the upper bound stands.

A function that answers once and is called in the trees of others, by their types, is taken there
for a stream. So what is possible if it brings nothing there is computed as well: if that is the
same, it is exact.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from corollary.documents.answers.call_results import call_results, call_results_from
from corollary.documents.answers.matching import evaluate
from corollary.documents.answers.question import Question
from corollary.documents.answers.unknown import NO_ROWS, Tuples
from corollary.documents.errors import SearchLimitError
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Node, QueryShape
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.function_types import Function, Grammar, labels_of, roots_allowed
from corollary.documents.types.grammar_offers import single_offers, stream_rows

MAX_VECTORS = 1_000_000
"""The maximum number of vectors of offers that are tried."""
Offer = Mapping[int, Tuples]
"""For the numbers of query nodes, the rows over their columns."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """The answers that are possible, and whether that is exact or only an upper bound."""

    answers: Tuples
    is_exact: bool


def is_exact(question: Question) -> bool:
    """Whether the rules are exact for the functions that are live."""
    live = [each for each in question.functions.values() if each.is_live]
    if any(each.is_once or each.expanded_type != each.least_type for each in live):
        return False
    is_joined = any(node.carried is not None for node in question.shape.nodes())
    return not (is_joined and any(each.type is not None for each in live))


def refine(question: Question, limit: int = MAX_VECTORS) -> Refinement:
    """Return the answers that are possible."""
    functions = [question.functions[name] for name in sorted(question.candidates)]
    least = [replace(each, expanded_type=each.least_type) for each in functions]
    labels = labels_that_matter(question)
    try:
        found = _answers(question, functions, labels, limit)
    except SearchLimitError:
        return Refinement(frozenset(question.possible_rows), is_exact=False)
    try:
        is_same = least == functions or _answers(question, least, labels, limit) == found
    except SearchLimitError:
        is_same = False
    return Refinement(found, is_same)


def _answers(
    question: Question, functions: list[Function], labels: list[str], limit: int
) -> Tuples:
    """Return the answers that are possible with some functions.

    Raises:
        SearchLimitError: there are more vectors of offers than the limit.
    """
    shape = question.shape
    found: set[tuple[str, ...]] = set(question.sure_rows)
    options = [_offers(each, shape, labels, limit) for each in functions]
    if prod(map(len, options)) > limit:
        raise SearchLimitError
    for vector in product(*options):
        offered = {each.name: offer for each, offer in zip(functions, vector, strict=True)}

        def results(node: Node, name: str, offered: Mapping[str, Offer] = offered) -> Tuples:
            return offered[name].get(node.number, NO_ROWS) if name in offered else NO_ROWS

        found |= evaluate(question.nodes, shape, results)
        if shape.is_boolean and found:
            break
    return frozenset(found)


def labels_that_matter(question: Question) -> list[str]:
    """Return the labels that the root of an answer may have to have."""
    nodes = list(question.shape.nodes())
    classes = {node.carried for node in nodes if node.carried is not None}
    if not classes:
        tests = {node.label for node in nodes if node.axis is Axis.CHILD and node.label is not None}
        return sorted(tests) or [*_fresh_labels(set(), 1)]
    tree = question.nodes
    found = {node.label for node in nodes if node.label is not None}
    found |= {
        label
        for number, label in tree.labels.items()
        if tree.kinds[number] is not NodeKind.FUNCTION
    }
    found = found.union(*(labels_of(each.expanded_type) for each in question.functions.values()))
    found = found.union(*(map(str, answer) for answer in question.sure))
    return [*sorted(found), *_fresh_labels(found, len(classes))]


def _fresh_labels(taken: set[str], number: int) -> Iterator[str]:
    at = 0
    while number:
        if (label := f"new{at}") not in taken:
            number -= 1
            yield label
        at += 1


def _offers(function: Function, shape: QueryShape, labels: list[str], limit: int) -> list[Offer]:
    """Return what a live function can bring in all; only what is not part of more.

    Args:
        function: one that is live.
        shape: the query.
        labels: those that the root of an answer may have to have.
        limit: the maximum number of steps.

    Raises:
        SearchLimitError: it takes more.
    """
    nodes = [node for node in shape.nodes() if node.axis is not None]
    type_ = function.expanded_type
    if isinstance(type_, Grammar):
        if function.is_once:
            return list(single_offers(type_, nodes, labels, limit)) or [{}]
        return [{node.number: stream_rows(type_, node, labels, limit) for node in nodes}]
    allowed = roots_allowed(type_)
    if not function.is_once:
        return [{node.number: _results(node, allowed) for node in nodes}]
    roots = [each for each in labels if allowed is None or each in allowed]
    roots = roots or sorted(allowed or ())[:1]  # a label that no query node asks for
    return [
        {node.number: _results(node, frozenset({root})) for node in nodes} for root in roots
    ] or [{}]


def _results(node: Node, roots: frozenset[str] | None) -> Tuples:
    """Return what trees bring for a query node, if their roots have one of some labels."""
    if roots is None:
        return call_results(node)
    if node.axis is Axis.DESCENDANT:
        return call_results(node) if roots else NO_ROWS
    return call_results_from(node, roots)
