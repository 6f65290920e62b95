"""Why an answer holds, or what it waits for."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.answers import matching
from corollary.documents.answers.question import Question
from corollary.documents.answers.scenarios import ScenarioSearch
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import Answer, decode_row, encode_label
from corollary.documents.queries.shape import FixedLabel, Fork, Group, Node, Root
from corollary.engines.budget import WorkLimitError


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer is sure, or what it waits for.

    Attributes:
        answer: the answer.
        value: 1 if it is sure, 0.5 if it is possible, 0 otherwise.
        nodes: of a sure answer, the paths of the nodes that it matches, as `r/a/b`.
        waits_for: of a possible answer, the least sets of functions that have to bring something.
        is_exact: whether that is so; otherwise all functions that may matter are named.
        same_key: of a possible answer, a sure one with its key: so it does not come, by promise.
        is_required: of a sure answer, whether it is one because the document has a type: what it
            waits for comes in every completion.
    """

    answer: Answer
    value: float
    nodes: tuple[str, ...] = ()
    waits_for: tuple[frozenset[str], ...] = ()
    same_key: Answer | None = None
    is_exact: bool = True
    is_required: bool = False

    def __str__(self) -> str:
        shown = _shown(self.answer)
        if self.is_required:
            return f"{shown} is sure: the type of the document requires it"
        if self.value == 1:
            return f"{shown} is sure: {', '.join(self.nodes) or 'it was reported'}"
        if self.value == 0:
            return f"{shown} is not an answer, and cannot become one"
        if self.same_key is not None:
            return f"{shown} is not waited for: {_shown(self.same_key)} has its key"
        ways = " or ".join(
            " and ".join(f"!{name}" for name in sorted(each)) or "time to pass"
            for each in self.waits_for
        )
        bound = "" if self.is_exact else ", at most: the search has ended at its limits"
        return f"{shown} waits for {ways}{bound}"


def explain(question: Question, answer: Answer, value: float, limits: SearchLimits) -> Explanation:
    """Return why an answer is sure, or what it waits for."""
    if value == 1:
        return Explanation(answer, value, _witness_paths(question, answer))
    if value == 0:
        return Explanation(answer, value)
    ways, is_exact = _find_ways(question, limits)
    bound = set() if is_exact else {question.candidates}
    return explain_ways(question, answer, ways.get(answer, bound), is_exact=is_exact)


def _find_ways(
    question: Question, limits: SearchLimits
) -> tuple[dict[Answer, set[frozenset[str]]], bool]:
    """Return the functions that bring answers about together, and whether that is exact."""
    ways: dict[Answer, set[frozenset[str]]] = {}
    try:
        search = ScenarioSearch.on(question, limits.budget())
        for root in question.shape.roots:
            for each in search.of_root(root):
                ways.setdefault(decode_row(each.answer(root)), set()).add(each.functions)
    except WorkLimitError:
        rows = question.possible_rows - question.sure_rows
        return {decode_row(row): {question.candidates} for row in rows}, False
    return ways, True


def explain_ways(
    question: Question, answer: Answer, ways: AbstractSet[frozenset[str]], *, is_exact: bool
) -> Explanation:
    """Return what a possible answer waits for, given the functions that can bring it about."""
    least = [each for each in ways if not any(other < each for other in ways)]
    waits_for = tuple(sorted(least, key=sorted))
    return Explanation(answer, 0.5, (), waits_for, _same_key(question, answer), is_exact)


def explain_possible(question: Question, limits: SearchLimits) -> dict[Answer, Explanation]:
    """Return what the possible answers wait for, all by one search."""
    ways, is_exact = _find_ways(question, limits)
    sure = question.sure
    return {
        answer: explain_ways(question, answer, several, is_exact=is_exact)
        for answer, several in ways.items()
        if answer not in sure
    }


def _witness_paths(question: Question, answer: Answer) -> tuple[str, ...]:
    """Return the paths of the nodes that give a sure answer; none if they are collected."""
    row = tuple(encode_label(str(label)) for label in answer)
    search = _WitnessSearch(question.nodes, matching.match_tables(question.nodes, question.shape))
    for root in question.shape.roots:
        found = search.of_root(root, row)
        if found is not None:
            return tuple(filter(None, ("/".join(question.nodes.path(each)) for each in found)))
    return ()


def _same_key(question: Question, answer: Answer) -> Answer | None:
    """Return a sure answer that has the key of another one, if there is a key."""
    positions = question.shape.key
    key = [answer[at] for at in positions]
    same = [each for each in question.sure if [each[at] for at in positions] == key]
    return min(same, key=str) if positions and same else None


def _shown(answer: Answer) -> str:
    return f"({', '.join(map(str, answer))})"


# --- the match of a sure answer ------------------------------------------------------------------

_Labels = dict[str, str]
_Match = tuple[_Labels, tuple[int, ...]]
"""The labels of classes, and the nodes that are matched so far."""


@dataclass(frozen=True, slots=True)
class _WitnessSearch:
    """Finds the nodes of a match, given what matches where without functions."""

    tree: matching.Tree
    sure: matching.MatchTables

    def of_root(self, root: Root, answer: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the nodes of a match that gives an answer, if there is one."""
        labels: _Labels = {}
        for output, label in zip(root.outputs, answer, strict=True):
            known = encode_label(output.label) if isinstance(output, FixedLabel) else None
            known = known or labels.setdefault(str(output), label)
            if known != label:
                return None
        if root.node.number not in self.sure.here[self.tree.root]:
            return None
        for found, nodes in self._node(root.node, self.tree.root, (labels, ())):
            if matching.must_hold(root, found):
                return nodes
        return None

    def _node(self, node: Node, number: int, so_far: _Match) -> Iterator[_Match]:
        labels, nodes = so_far
        if not matching.passes_test(node, self.tree, number):
            return
        if node.group.prefixes[0]:
            arrival = "" if node.arrival is None else encode_label(self.tree.arrival_of(number))
            row = node.own_row(encode_label(self.tree.labels[number]), arrival)
            own = dict(zip(node.group.prefixes[0], row, strict=True))
            if any(labels.get(name, label) != label for name, label in own.items()):
                return
            labels = {**labels, **own}
        yield from self._group(node.group, 0, number, (labels, (*nodes, number)))

    def _group(self, group: Group, at: int, number: int, so_far: _Match) -> Iterator[_Match]:
        if at == len(group.branches):
            yield so_far
            return
        for each in self._branch(group.branches[at], number, so_far):
            yield from self._group(group, at + 1, number, each)

    def _branch(self, branch: Node | Fork, number: int, so_far: _Match) -> Iterator[_Match]:
        match branch:
            case Node():
                for child in matching.in_range(self.tree, self.sure, branch, number):
                    yield from self._node(branch, child, so_far)
            case Fork(alternatives=alternatives):
                for each in alternatives:
                    yield from self._group(each, 0, number, so_far)
            case _:
                assert_never(branch)
