"""What holds in every completion of a document with a type.

Queries are monotone: an answer fails in some completion iff it fails in one that has no more than
its type requires. Of trees only matters which query nodes match at the root, and which strictly
below it: their *outline*. The least outlines of the trees of a type are a least fixpoint:

    outlines(S) = min { outline(label, o_1 … o_k) :  a production for each type of S,
                                                     a label of all of them,
                                                     o_i an outline of the i-th required child }

They are finitely many, and grow with those of the children; so larger ones need not be kept. Open
nodes of the document get outlines in the same way, from the leaves up: what their production
requires beside the children that they have is supplied, in every least way, by functions.

An answer has its labels put into the query. What is left of joins then, and comparisons, are left
out: what fails without them fails, what holds without them is not decided here. A function with
several calls is taken as if each call got trees of its own: there are more completions then, and
less is sure.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import TypeVar, assert_never

from corollary.data_class import dataclass
from corollary.documents.answers.question import Question
from corollary.documents.answers.unknown import EncodedRow, decode_label
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import FixedLabel, Fork, Group, Node, Root, parts_of
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.completions import Completions
from corollary.documents.types.content_fit import Types, has_fit
from corollary.documents.types.function_types import ANY, ANYTHING, Production
from corollary.documents.types.node_types import Supplier
from corollary.engines.budget import WorkBudget


@dataclass(frozen=True, slots=True)
class Outline:
    """The query nodes that match at the root of a tree, and those that match strictly below it."""

    here: frozenset[int] = frozenset()
    below: frozenset[int] = frozenset()

    def is_within(self, other: "Outline") -> bool:
        """Whether another outline has at least as much."""
        return self.here <= other.here and self.below <= other.below


Outlines = frozenset[Outline]
_Found = TypeVar("_Found")


class Certainty:
    """Whether answers hold in every completion.

    Attributes:
        is_decidable: whether answers that hold without joins and comparisons are sure.
        is_plain: whether the same is so of "there is an answer".
        is_relaxed: whether there may be fewer completions than are looked at.
    """

    def __init__(self, question: Question, completions: Completions, budget: WorkBudget) -> None:
        self._question = question
        self._completions = completions
        self._budget = budget
        roots = question.shape.roots
        joins = [_joined_classes(root) for root in roots]
        has_conditions = question.shape.has_conditions or question.shape.has_times
        self.is_plain = not has_conditions and not any(joins)
        self.is_decidable = not has_conditions and all(
            classes <= set(root.outputs) for root, classes in zip(roots, joins, strict=True)
        )
        self.is_relaxed = bool(completions.shared) or not completions.sat.is_exact

    def holds(self, answer: EncodedRow | None) -> bool:
        """Whether an answer holds in every completion, without joins and comparisons.

        None asks whether there is any answer.
        """
        search = Avoidance(self._completions, self.patterns(answer), self._budget)
        return not search.is_avoided()

    def patterns(self, answer: EncodedRow | None) -> list[Node]:
        """Return the patterns of which one has to match for an answer to hold."""
        found = []
        for root in self._question.shape.roots:
            labels = {} if answer is None else _labels_of(root, answer)
            pattern = None if labels is None else _with_labels(root.node, labels)
            if pattern is not None:
                found.append(pattern)
        return found


def _joined_classes(root: Root) -> set[str]:
    """Return the classes whose label several query nodes have."""
    carried = Counter(
        part.carried
        for part in (root.node, *parts_of(root.node.group))
        if isinstance(part, Node) and part.carried is not None
    )
    return {name for name, times in carried.items() if times > 1}


def _labels_of(root: Root, answer: EncodedRow) -> dict[str, str] | None:
    """Return the labels of classes that make an answer; None if a root does not give it."""
    found: dict[str, str] = {}
    for output, symbol in zip(root.outputs, answer, strict=True):
        label = str(decode_label(symbol))
        if isinstance(output, FixedLabel):
            if output.label != label:
                return None
        elif found.setdefault(output, label) != label:
            return None
    return found


def _with_labels(node: Node, labels: Mapping[str, str]) -> Node | None:
    """Return a query node that asks for the labels of classes; None if it asks for others."""
    label = node.label
    if node.carried in labels:
        if label not in (None, labels[str(node.carried)]):
            return None
        label = labels[str(node.carried)]
    group = _group_with_labels(node.group, labels)
    return None if group is None else replace(node, label=label, group=group)


def _group_with_labels(group: Group, labels: Mapping[str, str]) -> Group | None:
    branches: list[Node | Fork] = []
    for branch in group.branches:
        match branch:
            case Node():
                found = _with_labels(branch, labels)
                if found is None:
                    return None
                branches.append(found)
            case Fork(alternatives=alternatives):
                several = (_group_with_labels(each, labels) for each in alternatives)
                left = tuple(each for each in several if each is not None)
                if not left:
                    return None
                branches.append(replace(branch, alternatives=left))
            case _:
                assert_never(branch)
    return replace(group, branches=tuple(branches))


class OutlineSearch:
    """What completions match of some patterns, by the outlines of their trees and nodes."""

    def __init__(
        self, completions: Completions, patterns: Sequence[Node], budget: WorkBudget
    ) -> None:
        self._completions = completions
        self._budget = budget
        self._roots = frozenset(each.number for each in patterns)
        self._nodes = [
            part
            for root in patterns
            for part in (root, *parts_of(root.group))
            if isinstance(part, Node)
        ]
        self._labels = frozenset(each.label for each in self._nodes if each.label is not None)
        self._trees: dict[Types, Outlines] = {}
        self._closed = self._closed_outlines()

    def _outline(self, label: str | None, kind: NodeKind, below: Sequence[Outline]) -> Outline:
        """Return the outline of a node above others; None is a label that no query has."""
        children = frozenset[int]().union(*(each.here for each in below))
        deep = children.union(*(each.below for each in below))
        here = frozenset(
            node.number
            for node in self._nodes
            if node.label in (None, label)
            and node.kind in (None, kind)
            and _has_all(node.group, children, deep)
        )
        return Outline(here, deep)

    def _outlines(self, types: Types) -> Outlines:
        """Return the outlines of the trees that are of all of some types, as far as they matter."""
        key = types - {ANY}
        if key not in self._trees:
            self._trees[key] = frozenset()
            before: dict[Types, Outlines] = {}
            while before != self._trees:  # others are found on the way: all grow together
                before = dict(self._trees)
                for each in before:
                    self._trees[each] = self._kept({*self._trees[each], *self._grow(each)})
        return self._trees[key]

    @abstractmethod
    def _grow(self, types: Types) -> Iterator[Outline]:
        """Yield the outlines of trees, given those of their children so far."""

    def _kept(self, outlines: AbstractSet[Outline]) -> Outlines:
        """Return the outlines of trees that matter: all of them."""
        return frozenset(outlines)

    def _closed_outlines(self) -> dict[int, Outline]:
        """Return the outlines of the nodes below which nothing can come."""
        tree, is_open = self._completions.tree, set(self._completions.open_nodes)
        found: dict[int, Outline] = {}
        for number in sorted(tree.labels, reverse=True):
            if tree.kinds[number] is not NodeKind.FUNCTION and number not in is_open:
                self._budget.spend()
                below = [found[child] for child in tree.children[number] if child in found]
                found[number] = self._outline(tree.labels[number], tree.kinds[number], below)
        return found

    def _roots_of(
        self, chosen: Sequence[Production], *, is_least: bool
    ) -> Iterator[tuple[str | None, NodeKind]]:
        """Yield the labels and kinds of roots; labels that no query has are one, None.

        Where all labels are allowed, None matches least.
        """
        kinds = {each.kind for each in chosen if each.kind is not None}
        if len(kinds) > 1:
            return
        labels: set[str | None] = {None, *self._labels}
        limits = [each.labels for each in chosen if each.labels is not None]
        if is_least and not limits:
            labels = {None}
        elif limits:
            allowed = frozenset.intersection(*limits)
            labels = {*(allowed & self._labels), *([None] if allowed - self._labels else [])}
        yield from ((label, next(iter(kinds), NodeKind.ELEMENT)) for label in labels)

    def _choices(
        self, number: int, tables: Mapping[int, Mapping[str, _Found]]
    ) -> Iterator[tuple[str, Production, Counter[Types], list[_Found]]]:
        """Yield the productions that an open node can have, and choices for its open children."""
        counts, open_, _ = self._completions.children(number)
        for name, production in self._completions.open_candidates(number):
            fit = production.types
            options = [
                [(type_, found) for type_, found in tables[child].items() if type_ in fit]
                for child in open_
            ]
            for chosen in product(*options):
                self._budget.spend()
                children = counts + Counter(frozenset({type_}) for type_, _ in chosen)
                yield name, production, children, [found for _, found in chosen]

    def _families(
        self, number: int, production: Production, children: Counter[Types], *, is_least: bool
    ) -> Iterator[list[tuple[Supplier, str]]]:
        """Yield the families of trees that may come to a node: who brings them, and their types.

        Of the least ones, no family contains another. Otherwise, beside what the type requires,
        there are no more trees than query nodes: each needs one match.
        """
        called = self._completions.children(number)[2]
        offers = [
            (at, type_)
            for at, supplier in enumerate(called)
            for type_ in sorted(self._completions.brought_types(supplier, production))
        ]
        most = 0 if is_least else len(self._nodes)
        if production != ANYTHING:
            most += sum(child.is_required for child in production.children)
            most += sum(children.values()) * sum(map(len, production.groups))
        found: list[Counter[tuple[int, str]]] = []
        for size in range(most + 1 if offers else 1):
            for family in combinations_with_replacement(offers, size):
                self._budget.spend()
                answers = Counter(at for at, _ in family)
                if any(called[at].is_once and times > 1 for at, times in answers.items()):
                    continue
                if is_least and any(before <= Counter(family) for before in found):
                    continue
                more = Counter(frozenset({type_}) for _, type_ in family)
                if production == ANYTHING or has_fit(production, children + more, (), self._budget):
                    found.append(Counter(family))
                    yield [(called[at], type_) for at, type_ in family]


class Avoidance(OutlineSearch):
    """Looks for a completion in which none of some patterns matches."""

    def is_avoided(self) -> bool:
        """Whether there is one."""
        tree = self._completions.tree
        if tree.root in self._closed:
            return not self._closed[tree.root].here & self._roots
        tables: dict[int, dict[str, Outlines]] = {}
        for number in self._completions.open_nodes:
            self._budget.spend()
            tables[number] = self._table(number, tables)
        found = tables[tree.root].get(self._completions.grammar.start, frozenset())
        return any(not each.here & self._roots for each in found)

    def _kept(self, outlines: AbstractSet[Outline]) -> Outlines:
        """Return the outlines that have no more than another one."""
        return _least(outlines)

    def _grow(self, types: Types) -> Iterator[Outline]:
        sat = self._completions.sat
        if not types:
            yield self._outline(None, NodeKind.ELEMENT, [])
            return
        for chosen in product(*(sat.productions(each) for each in sorted(types))):
            families: Iterator[list[Types]] = iter(
                [[frozenset({c.type}) for c in chosen[0].children if c.is_required]]
            )
            if len(chosen) > 1:
                families = sat.families(chosen)
            for family in families:
                for each in family:
                    self._trees.setdefault(each - {ANY}, frozenset())
                options = [self._trees[each - {ANY}] for each in family]
                for below in product(*options):
                    self._budget.spend()
                    for label, kind in self._roots_of(chosen, is_least=True):
                        if kind is NodeKind.ELEMENT or not family:
                            yield self._outline(label, kind, below)

    def _table(
        self, number: int, tables: Mapping[int, Mapping[str, Outlines]]
    ) -> dict[str, Outlines]:
        """Return the types that an open node can have, with its least outlines for each."""
        tree = self._completions.tree
        label, kind = tree.labels[number], tree.kinds[number]
        fixed = [self._closed[child] for child in tree.children[number] if child in self._closed]
        found: dict[str, list[Outline]] = {}
        for name, production, children, several in self._choices(number, tables):
            for family in self._families(number, production, children, is_least=True):
                brought = [self._outlines(frozenset({type_, by.type})) for by, type_ in family]
                for below in product(*several, *brought):
                    self._budget.spend()
                    outline = self._outline(label, kind, [*fixed, *below])
                    found.setdefault(name, []).append(outline)
        return {name: _least(outlines) for name, outlines in found.items()}


def _has_all(group: Group, children: frozenset[int], deep: frozenset[int]) -> bool:
    """Whether all branches of a group match at children, or below, of a node."""
    for branch in group.branches:
        match branch:
            case Node(axis=axis, number=number):
                if number not in (deep if axis is Axis.DESCENDANT else children):
                    return False
            case Fork(alternatives=alternatives):
                if not any(_has_all(each, children, deep) for each in alternatives):
                    return False
            case _:
                assert_never(branch)
    return True


def _least(outlines: Iterable[Outline]) -> Outlines:
    """Return the outlines that have no more than another one."""
    distinct = set(outlines)
    return frozenset(
        each
        for each in distinct
        if not any(other != each and other.is_within(each) for other in distinct)
    )
