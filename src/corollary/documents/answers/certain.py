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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import assert_never

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

        Raises:
            WorkLimitError: it takes more than the budget.
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


class Avoidance:
    """Looks for a completion in which none of some patterns matches."""

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

    def is_avoided(self) -> bool:
        """Whether there is one.

        Raises:
            WorkLimitError: it takes more than the budget.
        """
        tree = self._completions.tree
        tables: dict[int, dict[str, Outlines]] = {}
        closed: dict[int, Outline] = {}
        is_open = set(self._completions.open_nodes)
        for number in sorted(tree.labels, reverse=True):
            if tree.kinds[number] is NodeKind.FUNCTION:
                continue
            self._budget.spend()
            if number in is_open:
                tables[number] = self._table(number, tables, closed)
            else:
                below = [closed[child] for child in tree.children[number] if child in closed]
                closed[number] = self._outline(tree.labels[number], tree.kinds[number], below)
        if tree.root not in is_open:
            return not closed[tree.root].here & self._roots
        found = tables[tree.root].get(self._completions.grammar.start, frozenset())
        return any(not each.here & self._roots for each in found)

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

    # --- trees of types --------------------------------------------------------------------------

    def _outlines(self, types: Types) -> Outlines:
        """Return the least outlines of the trees that are of all of some types."""
        key = types - {ANY}
        if key not in self._trees:
            self._trees[key] = frozenset()
            before: dict[Types, Outlines] = {}
            while before != self._trees:  # others are found on the way: all grow together
                before = dict(self._trees)
                for each in before:
                    self._trees[each] = _least([*self._trees[each], *self._grow(each)])
        return self._trees[key]

    def _grow(self, types: Types) -> Iterator[Outline]:
        """Yield the outlines of trees, given those of their children so far."""
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
                    for label, kind in self._roots_of(chosen, is_leaf=not family):
                        yield self._outline(label, kind, below)

    def _roots_of(
        self, chosen: Sequence[Production], *, is_leaf: bool
    ) -> Iterator[tuple[str | None, NodeKind]]:
        """Yield the labels and kinds of roots; labels that no query has are one, None."""
        allowed: frozenset[str] | None = None
        kinds = {each.kind for each in chosen if each.kind is not None}
        for each in chosen:
            if each.labels is not None:
                allowed = each.labels if allowed is None else allowed & each.labels
        if len(kinds) > 1 or (kinds and not is_leaf):
            return
        kind = next(iter(kinds), NodeKind.ELEMENT)
        labels: set[str | None] = {None} if allowed is None else set(allowed & self._labels)
        if allowed is not None and allowed - self._labels:
            labels.add(None)
        yield from ((label, kind) for label in labels)

    # --- nodes of the document -------------------------------------------------------------------

    def _table(
        self,
        number: int,
        tables: Mapping[int, Mapping[str, Outlines]],
        closed: Mapping[int, Outline],
    ) -> dict[str, Outlines]:
        """Return the types that an open node can have, with its least outlines for each."""
        whole = self._completions
        label, kind = whole.tree.labels[number], whole.tree.kinds[number]
        counts, open_, called = whole.children(number)
        fixed = [closed[child] for child in whole.tree.children[number] if child in closed]
        least = Outline(
            frozenset[int]().union(*(each.here for each in fixed)),
            frozenset[int]().union(*(each.below for each in fixed)),
        )
        found: dict[str, list[Outline]] = {}
        for name, production in whole.open_candidates(number):
            options = [
                [
                    (type_, tables[child][type_])
                    for type_ in tables[child]
                    if type_ in production.types
                ]
                for child in open_
            ]
            for chosen in product(*options):
                self._budget.spend()
                children = counts + Counter(frozenset({type_}) for type_, _ in chosen)
                several = [outlines for _, outlines in chosen]
                for added in self._additions(production, children, called):
                    brought = [self._outlines(types) for types in added]
                    for below in product(*several, *brought):
                        self._budget.spend()
                        outline = self._outline(label, kind, [least, *below])
                        found.setdefault(name, []).append(outline)
        return {name: _least(outlines) for name, outlines in found.items()}

    def _additions(
        self, production: Production, children: Counter[Types], called: Sequence[Supplier]
    ) -> Iterator[list[Types]]:
        """Yield the least families of trees that have to come: each is of some types at once."""
        whole = self._completions
        if production == ANYTHING:
            yield []
            return
        offers = [
            (at, type_)
            for at, supplier in enumerate(called)
            for type_ in sorted(whole.brought_types(supplier, production))
        ]
        most = sum(child.is_required for child in production.children)
        most += sum(children.values()) * sum(map(len, production.groups))
        found: list[Counter[tuple[int, str]]] = []
        for size in range(most + 1):
            for family in combinations_with_replacement(offers, size):
                self._budget.spend()
                chosen = Counter(family)
                answers = Counter(at for at, _ in family)
                if any(called[at].is_once and times > 1 for at, times in answers.items()):
                    continue
                if any(before <= chosen for before in found):
                    continue
                more = Counter(frozenset({type_}) for _, type_ in family)
                if has_fit(production, children + more, (), self._budget):
                    found.append(chosen)
                    yield [frozenset({type_, called[at].type}) for at, type_ in family]


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


def _least(outlines: Sequence[Outline]) -> Outlines:
    """Return the outlines that have no more than another one."""
    distinct = set(outlines)
    return frozenset(
        each
        for each in distinct
        if not any(other != each and other.is_within(each) for other in distinct)
    )
