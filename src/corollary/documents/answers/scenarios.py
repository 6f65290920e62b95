"""Scenarios: ways in which functions can complete a match.

Reference: Abiteboul, Bourhis, Marinoiu 2007, section 5, with errors corrected.

A scenario is a set of pairs (pattern, function that brings it), with what is known about the
classes of variables:

    S(c, m) = { {(c, f)} }                       m is a call of f that can bring c
    S(p, n) = one choice of m for each branch    n is a data node; the pairs of all choices together

A branch without columns that is surely matched below n contributes nothing. Sets are made from the
leaves up, so that a thousand nodes which wait for the same function are one scenario, not many.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.answers import matching
from corollary.documents.answers.question import Question
from corollary.documents.answers.unknown import UNKNOWN, encode_label, meet
from corollary.documents.queries.shape import (
    ConjunctivePattern,
    Fork,
    Group,
    Node,
    Root,
    classes_in,
    expand_alternatives,
    fixed_labels_in,
)
from corollary.documents.trees.forest import NodeKind
from corollary.engines.budget import WorkBudget

Labels = tuple[tuple[str, str], ...]
"""The labels of classes, as far as they are known, by the name of the class."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What functions bring, and what is known about the labels of classes.

    Attributes:
        contributions: patterns and the functions that bring them.
        labels: of classes; one that is missing may be anything.
    """

    contributions: frozenset[tuple[ConjunctivePattern, str]] = frozenset()
    labels: Labels = ()

    @property
    def functions(self) -> frozenset[str]:
        """The functions that have to bring something."""
        return frozenset(name for _, name in self.contributions)

    def may_hold(self, root: Root) -> bool:
        """Whether the comparisons of a query may hold for a match that comes about like this."""
        known = dict(self.labels)
        return matching.may_hold(
            root, {name: known.get(name, UNKNOWN) for name in root.node.columns}
        )

    def answer(self, root: Root) -> tuple[str, ...]:
        """Return the answer of a match that comes about like this."""
        known = dict(self.labels)
        return matching.answer_of(
            root, {name: known.get(name, UNKNOWN) for name in root.node.columns}
        )


@dataclass(frozen=True, slots=True)
class ScenarioSearch:
    """Finds scenarios on a document.

    Attributes:
        tree: the document.
        possible: what may match where, with functions.
        sure: what matches where.
        budget: what the search may take.
    """

    tree: matching.Tree
    possible: matching.MatchTables
    sure: matching.MatchTables
    budget: WorkBudget
    _memo: dict[tuple[int, int], frozenset[Scenario]] = field(default_factory=dict)

    @classmethod
    def on(cls, question: Question, budget: WorkBudget) -> "ScenarioSearch":
        """Return a search for the scenarios of a question, with all functions as streams."""
        nodes, shape = question.nodes, question.shape
        possible = matching.match_tables(nodes, shape, question.stream_results, budget=budget)
        return cls(nodes, possible, matching.match_tables(nodes, shape, budget=budget), budget)

    def of_root(self, root: Root) -> frozenset[Scenario]:
        """Return the scenarios of one of the alternatives of a query."""
        if root.node.number not in self.possible.here[self.tree.root]:
            return frozenset()
        found = self._of_node(root.node, self.tree.root)
        if not root.conditions:
            return found
        return frozenset(each for each in found if each.may_hold(root))

    def _of_node(self, node: Node, number: int) -> frozenset[Scenario]:
        """Return the ways in which a query node can be matched at a node of the document."""
        if (node.number, number) not in self._memo:
            found = (
                self._of_call(node, self.tree.labels[number])
                if self.tree.kinds[number] is NodeKind.FUNCTION
                else self._of_data(node, number)
            )
            self._memo[node.number, number] = found
        return self._memo[node.number, number]

    @staticmethod
    def _of_call(node: Node, function: str) -> frozenset[Scenario]:
        found = set()
        for pattern in expand_alternatives(node):
            known: dict[str, str] | None = {}
            for name, label in fixed_labels_in(pattern):
                known = None if known is None else _with(known, name, encode_label(label))
            if known is not None:  # else two labels meet in a class
                found.add(Scenario(frozenset({(pattern, function)}), tuple(sorted(known.items()))))
        return frozenset(found)

    def _of_data(self, node: Node, number: int) -> frozenset[Scenario]:
        if not matching.passes_test(node, self.tree, number):
            return frozenset()
        label = encode_label(self.tree.labels[number])
        arrival = "" if node.arrival is None else encode_label(self.tree.arrival_of(number))
        row = node.own_row(label, arrival)
        own: Labels = tuple(zip(node.group.prefixes[0], row, strict=True))
        found = self._of_group(node.group, number, frozenset({Scenario(labels=own)}))
        return frozenset(_without_idle(each, node) for each in found)

    def _of_group(
        self, group: Group, number: int, found: frozenset[Scenario]
    ) -> frozenset[Scenario]:
        """Return the ways in which all branches of a group can be matched, beside some others."""
        for at, branch in enumerate(group.branches):
            if branch.columns or not self._is_sure(branch, number):
                shared = [name for name in group.prefixes[at] if name in branch.columns]
                found = self._both(found, self._of_branch(branch, number), shared)
        return found

    def _of_branch(self, branch: Node | Fork, number: int) -> frozenset[Scenario]:
        """Return the ways in which a branch can be matched in range of a node."""
        match branch:
            case Node():
                every = (
                    self._of_node(branch, each)
                    for each in matching.in_range(self.tree, self.possible, branch, number)
                )
            case Fork(alternatives=alternatives):
                one = frozenset({Scenario()})
                every = (self._of_group(each, number, one) for each in alternatives)
            case _:
                assert_never(branch)
        found: set[Scenario] = set()
        for some in every:
            self.budget.spend(1 + len(some))
            found |= some
        return frozenset(found)

    def _both(
        self, left: frozenset[Scenario], right: frozenset[Scenario], shared: list[str]
    ) -> frozenset[Scenario]:
        """Return what two parts of a match need together, wherever their labels agree.

        Those that know the labels of all shared classes are found by them.
        """
        by_labels: dict[Labels, list[Scenario]] = {}
        vague: list[Scenario] = []
        for other in right:
            key = tuple(each for each in other.labels if each[0] in shared)
            (by_labels.setdefault(key, []) if len(key) == len(shared) else vague).append(other)
        found = set()
        for one in left:
            key = tuple(each for each in one.labels if each[0] in shared)
            is_known = len(key) == len(shared)
            partners = [*by_labels.get(key, ()), *vague] if is_known else right
            self.budget.spend(1 + len(partners))
            for other in partners:
                labels = _merge_labels(one.labels, other.labels)
                if labels is not None:
                    found.add(Scenario(one.contributions | other.contributions, labels))
        return frozenset(found)

    def _is_sure(self, branch: Node | Fork, number: int) -> bool:
        """Whether a branch without columns is surely matched in range of a node."""
        match branch:
            case Node():
                return branch.number in self.sure.within[number]
            case Fork(alternatives=alternatives):
                return any(
                    all(self._is_sure(each, number) for each in alternative.branches)
                    for alternative in alternatives
                )
            case _:
                assert_never(branch)


def _without_idle(scenario: Scenario, node: Node) -> Scenario:
    """Return a scenario without the labels that neither the outside nor a contribution needs."""
    needed = {
        *node.columns,
        *(name for pattern, _ in scenario.contributions for name in classes_in(pattern)),
    }
    kept = tuple(each for each in scenario.labels if each[0] in needed)
    return Scenario(scenario.contributions, kept)


def _merge_labels(left: Labels, right: Labels) -> Labels | None:
    if not left or not right:
        return left or right
    found: dict[str, str] | None = dict(left)
    for name, label in right:
        found = None if found is None else _with(found, name, label)
    return None if found is None else tuple(sorted(found.items()))


def _with(labels: Mapping[str, str], name: str, label: str) -> dict[str, str] | None:
    both = meet(labels.get(name, UNKNOWN), label)
    return None if both is None else {**labels, name: both}
