"""Functions that answer at most once, and functions with types: what is possible, exactly.

The rules treat every function as a stream. That is exact for streams without a type, and for others
if the query has no columns; otherwise it is an upper bound, which is narrowed here.

| function                       | what it brings: rows for each query node                     |
|--------------------------------|--------------------------------------------------------------|
| a stream of any trees          | brought(c) for every query node c                            |
| a stream with labels for roots | the same, with roots that have one of the labels             |
| a stream with a grammar        | the rows of every pattern that one of its trees matches      |
| once, any tree, or labels      | brought(c), assuming that its root has the label of c        |
| once, with a grammar           | for each largest set of patterns that one tree matches its   |
|                                | rows, assuming that it is this one                           |

A stream can bring everything together. The one tree of a function that answers once, without a
grammar, matters only through the label of its root: below it one tree can hold everything that is
needed, and a subquery after `//` can be put there. There are as many vectors of labels as labels to
the power of functions (Theorem 3: NP-complete). They are not tried one by one: a match carries what
it assumes of each function (`assumptions`), so only labels that meet in a match come up. Beyond the
limits of the search the upper bound stands.

A function that answers once and is called in the trees of others, by their types, is taken there
for a stream. So what is possible if it brings nothing there is computed as well: if that is the
same, it is exact.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice

from corollary.data_class import dataclass
from corollary.documents.answers import assumptions, matching
from corollary.documents.answers.canonical import fresh_labels
from corollary.documents.answers.question import Question
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import (
    NO_ROWS,
    UNKNOWN,
    EncodedRow,
    Tuples,
    encode_label,
    encode_one_of,
)
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Node
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.function_types import Function, Grammar, labels_of, roots_allowed
from corollary.documents.types.grammar_offers import single_offers, stream_rows
from corollary.documents.types.satisfiability import is_decided
from corollary.engines.budget import WorkBudget, WorkLimitError, WorkUsed


@dataclass(frozen=True, slots=True)
class Refinement:
    """The answers that are possible, and whether that is exact or only an upper bound.

    Attributes:
        possible: encoded as in relations, sure ones included.
        is_exact: whether all of them are possible.
        work: that the search took; None if the rules were enough.
        reason: why they are a bound, if they are one.
    """

    possible: AbstractSet[EncodedRow]
    is_exact: bool
    work: WorkUsed | None = None
    reason: str = ""


def is_exact(question: Question) -> bool:
    """Whether the rules are exact for the functions that are live."""
    live = [each for each in question.functions.values() if each.is_live]
    if any(each.is_once or each.expanded_type != each.least_type for each in live):
        return False
    nodes = [node for node in question.shape.nodes() if node.axis is not None]
    if not all(is_decided(each.expanded_type, node) for each in live for node in nodes):
        return False
    is_joined = any(node.carried is not None for node in question.shape.nodes())
    return not (is_joined and any(each.type is not None for each in live))


def refine(question: Question, limits: SearchLimits) -> Refinement:
    """Return the answers that are possible."""
    if not question.possible_rows or is_exact(question):
        return Refinement(question.possible_rows, True)
    functions = [question.functions[name] for name in sorted(question.candidates)]
    least = [replace(each, expanded_type=each.least_type) for each in functions]
    labels = labels_that_matter(question)
    budget = limits.budget()
    try:
        found = possible_answers(question, functions, labels, budget)
    except (WorkLimitError, RecursionError) as error:
        reason = f"the search ended after {error}"
        return Refinement(frozenset(question.possible_rows), False, budget.used, reason)
    if least == functions:
        return Refinement(found, True, budget.used)
    try:
        is_same = possible_answers(question, least, labels, budget) == found
        reason = "a function that answers once may be called in trees that have not come"
    except WorkLimitError as error:
        is_same, reason = False, f"the search ended after {error}"
    return Refinement(found, is_same, budget.used, "" if is_same else reason)


def possible_answers(
    question: Question, functions: list[Function], labels: list[str], budget: WorkBudget
) -> Tuples:
    """Return the answers that are possible with some functions."""
    shape = question.shape
    algebra = assumptions.AssumingRows(budget)
    brought = {
        each.name: _brought(each, _nodes_in_reach(question, each.name), labels, algebra)
        for each in functions
    }

    def results(node: Node, name: str) -> Tuples:
        return brought[name].get(node.number, NO_ROWS) if name in brought else NO_ROWS

    tables = matching.match_tables(question.nodes, shape, results, algebra=algebra, budget=budget)
    found = set(question.sure_rows)
    encoded = [*map(encode_label, labels)]
    for root in shape.roots:
        rows = tables.here[question.nodes.root].get(root.node.number, NO_ROWS)
        if root.conditions:
            rows = frozenset(row for row in rows if assumptions.may_hold(root, row, budget))
        for row in assumptions.plain_rows(rows, encoded):
            found.add(matching.answer_of(root, dict(zip(root.node.columns, row, strict=True))))
    return frozenset(found)


def labels_that_matter(question: Question) -> list[str]:
    """Return the labels that the root of an answer may have to have."""
    nodes = list(question.shape.nodes())
    classes = {node.carried for node in nodes if node.carried is not None}
    if not classes:
        tests = {node.label for node in nodes if node.axis is Axis.CHILD and node.label is not None}
        return sorted(tests) or [next(fresh_labels(set()))]
    tree = question.nodes
    found = {node.label for node in nodes if node.label is not None}
    found |= {
        label
        for number, label in tree.labels.items()
        if tree.kinds[number] is not NodeKind.FUNCTION
    }
    found = found.union(*(labels_of(each.expanded_type) for each in question.functions.values()))
    found = found.union(*(map(str, answer) for answer in question.sure))
    return [*sorted(found), *islice(fresh_labels(found), len(classes))]


def _nodes_in_reach(question: Question, function: str) -> list[Node]:
    """Return the query nodes that may match at the calls of a function, going by those above."""
    tree = question.nodes
    found: dict[int, Node] = {}
    for call in tree.calls.get(function, ()):
        above = [call]
        while above[-1] != tree.root:
            above.append(tree.parents[above[-1]])
        here = [each.node for each in question.shape.roots]
        deep: dict[int, Node] = {}
        for number in reversed(above):
            if number != call:
                here = [each for each in here if matching.passes_test(each, tree, number)]
                branches = [each for node in here for each in matching.nodes_in(node.group)]
                deep |= {each.number: each for each in branches if each.axis is Axis.DESCENDANT}
                near = {each.number: each for each in branches if each.axis is Axis.CHILD}
                here = [*(near | deep).values()]
        found |= {each.number: each for each in here}
    return [found[number] for number in sorted(found)]


def _brought(
    function: Function, nodes: list[Node], labels: list[str], algebra: assumptions.AssumingRows
) -> dict[int, Tuples]:
    """Return what a live function can bring for query nodes, with what that assumes of it."""
    type_ = function.expanded_type
    found: dict[int, Tuples] = {}
    if isinstance(type_, Grammar) and function.is_once:
        for at, offer in enumerate(single_offers(type_, nodes, labels, algebra.budget)):
            assumption = assumptions.assume(function.name, str(at))
            for number, rows in offer.items():
                found[number] = found.get(number, NO_ROWS) | assumptions.lift(rows, assumption)
        return found
    for node in nodes:
        if isinstance(type_, Grammar):
            rows = assumptions.lift(stream_rows(type_, node, labels, algebra.budget))
        elif function.is_once:
            rows = _single_results(function.name, node, roots_allowed(type_), algebra)
        else:
            rows = assumptions.lift(_stream_results(node, roots_allowed(type_)))
        found[node.number] = rows
    return found


def _stream_results(node: Node, roots: frozenset[str] | None) -> Tuples:
    """Return what trees bring for a query node, if their roots have one of some labels."""
    if roots is None:
        return matching.call_results(node)
    if node.axis is Axis.DESCENDANT:
        return matching.call_results(node) if roots else NO_ROWS
    return matching.call_results_from(node, roots)


def _single_results(
    name: str, node: Node, roots: frozenset[str] | None, algebra: assumptions.AssumingRows
) -> Tuples:
    """Return what the one tree of a function brings for a query node, and what that assumes."""
    if roots is not None and not roots:
        return NO_ROWS
    if node.axis is Axis.DESCENDANT or (node.label is None and node.carried is None):
        return assumptions.lift(matching.call_results(node))
    if node.label is not None:
        if roots is not None and node.label not in roots:
            return NO_ROWS
        assumption = assumptions.assume(name, encode_label(node.label))
        return assumptions.lift(matching.call_results(node), assumption)
    allowed = UNKNOWN if roots is None else encode_one_of(map(encode_label, roots))
    row = node.own_row(assumptions.root_label(name), UNKNOWN)
    rows = frozenset({(*row, assumptions.assume(name, allowed))})

    def below(each: Node) -> Tuples:
        return assumptions.lift(matching.call_results(each))

    return matching.match_new(node, rows, below, algebra)
