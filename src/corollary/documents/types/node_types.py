"""The types that the nodes of a document can have, kept from one update to the next.

Every call is taken by itself here, as if it got trees of its own. A node then has a type iff a
production of it has the label of the node, and its children fit, with what live functions may add
(`content_fit`):

    content(n) = how many children of n can have which types
    types(n)   = { t : a production of t has n's label, and content(n) fits it }

So after an update only the nodes above it are looked at, and only as far up as types change; a node
with many children keeps their content, which is not counted again.

With `R = r[S*]  S = s[a, b?]`, the update `b` beside a call in one of 10,000 `s` changes the
content of that `s`. It is an `S` as before, so `r` is not looked at.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from heapq import heapify, heappop, heappush

from corollary.data_class import dataclass
from corollary.documents.trees.document_tree import DocumentTree, StoredNode
from corollary.documents.trees.forest import ROOT, Forest, NodeKind
from corollary.documents.types.content_fit import Supply, Types, fitting_types
from corollary.documents.types.function_types import ANY, Grammar, Production, Rules
from corollary.documents.types.satisfiability import Demand, Satisfiability
from corollary.engines.budget import WorkBudget


@dataclass(frozen=True, slots=True)
class Supplier:
    """A live function: its name, the type of its trees, whether it brings one tree at most."""

    name: str
    type: str
    is_once: bool


@dataclass(slots=True)
class TypeRules:
    """A type of documents, and what functions may bring.

    Attributes:
        sat: what trees of all types can match.
    """

    grammar: Grammar
    suppliers: Mapping[str, Supplier]
    results: Rules
    budget: WorkBudget
    sat: Satisfiability = field(init=False)
    _by_label: dict[str | None, list[tuple[str, Production]]] = field(default_factory=dict)
    _known: dict[tuple[object, ...], Types] = field(default_factory=dict)

    def __post_init__(self) -> None:
        everything = Grammar(self.grammar.start, {**self.grammar.rules, **self.results})
        self.sat = Satisfiability(everything, self.budget)
        for name in self.grammar.rules:
            for each in self.sat.productions(name):
                for label in (None,) if each.labels is None else each.labels:
                    self._by_label.setdefault(label, []).append((name, each))

    @property
    def supplied(self) -> tuple[object, object]:
        """What types depend on beside the document."""
        return self.suppliers, self.results

    def candidates(self, label: str, kind: NodeKind) -> Iterator[tuple[str, Production]]:
        """Yield the productions that have a label, with their types."""
        for key in (label, None):
            for name, each in self._by_label.get(key, ()):
                if each.has_label(label, kind):
                    yield name, each

    def brought_types(
        self, supplier: Supplier, production: Production, demands: Iterable[Demand] = ()
    ) -> Types:
        """Return the types of children that a tree of a function can be of, if it meets demands."""
        several = list(demands)
        self.budget.spend(1 + len(production.children))
        return frozenset(
            type_
            for type_ in production.types
            if self.sat.meets_all(frozenset({type_, supplier.type}), several)
        )

    def types_of(
        self, label: str, kind: NodeKind, content: Mapping[Types, int], calls: Mapping[str, int]
    ) -> Types:
        """Return the types of a node, by how many children have which, and what is called."""
        live = sorted((name, n) for name, n in calls.items() if n and name in self.suppliers)
        counts = frozenset((types, number) for types, number in content.items() if number)
        key = (label if label in self._by_label else None, kind, counts, *live)
        if key not in self._known:
            self.budget.spend()
            called = [self.suppliers[name] for name, number in live for _ in range(number)]
            found = self.fitting_types(self.candidates(label, kind), dict(counts), called)
            self._known[key] = found | {ANY}
        return self._known[key]

    def fitting_types(
        self,
        candidates: Iterable[tuple[str, Production]],
        children: Mapping[Types, int],
        called: Sequence[Supplier],
    ) -> Types:
        """Return the types of a node with children, and with what functions may add to them."""
        return fitting_types(
            candidates,
            children,
            self.budget,
            lambda production: [
                Supply(self.brought_types(each, production), each.is_once) for each in called
            ],
        )


@dataclass(slots=True)
class ContentChange:
    """What becomes more, or less, below a node: children by their types, and calls."""

    children: Counter[Types] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)


class NodeTypes:
    """The types of the nodes of one document.

    Args:
        tree: the document. What comes and goes is noted, and looked at when types are asked for.
    """

    def __init__(self, tree: DocumentTree) -> None:
        self._tree = tree
        self.reset()

    def reset(self) -> None:
        """Forget everything: all nodes are looked at when types are asked for."""
        self._types: dict[int, Types] = {}
        self._content: dict[int, Counter[Types]] = {}
        self._calls: dict[int, Counter[str]] = {}
        self._last: tuple[object, object] = ((), ())
        self._added = [self._tree.stored_node(each) for each in sorted(self._tree.labels)]
        self._removed: list[StoredNode] = []

    def note_added(self, nodes: Iterable[StoredNode]) -> None:
        """Note nodes that have come, parents before children."""
        self._added += nodes

    def note_removed(self, nodes: Iterable[StoredNode]) -> None:
        """Note nodes that are gone."""
        self._removed += nodes

    def root_types(
        self,
        rules: tuple[TypeRules, TypeRules],
        retracted: Iterable[int],
        updates: Sequence[tuple[str, Forest]],
    ) -> Types:
        """Return the types that the root can have after updates, which are not made yet.

        Args:
            rules: what functions may bring as things are, and after the updates.
            retracted: the roots of trees that go, with everything beside calls in them.
            updates: what functions bring; none of them calls the function of a later one.
        """
        before, after = rules
        self._settle(before)
        tree, changes = self._tree, dict[int, ContentChange]()
        gone = tree.pruned_roots(retracted)
        for number in gone:
            change = changes.setdefault(tree.parents[number], ContentChange())
            if tree.kinds[number] is NodeKind.FUNCTION:
                change.calls[tree.labels[number]] -= 1
            else:
                change.children[self._types[number]] -= 1
        for name, forest in updates:
            brought = _brought(forest, after)
            for call in tree.calls.get(name, ()):
                if not gone or not gone & tree.ancestors([call]):
                    change = changes.setdefault(tree.parents[call], ContentChange())
                    change.children.update(brought.children)
                    change.calls.update(brought.calls)
        if before.supplied != after.supplied:
            for number in self._calls:
                if not gone or not gone & tree.ancestors([number]):
                    changes.setdefault(number, ContentChange())
        return self._rise(after, changes, is_kept=False)

    def _settle(self, rules: TypeRules) -> None:
        """Look at what has come and gone since the last time."""
        changed: set[int] = set()
        for node in reversed(self._added):
            if node.kind is NodeKind.FUNCTION:
                self._calls.setdefault(node.parent, Counter())[node.label] += 1
            else:
                types = rules.types_of(
                    node.label,
                    node.kind,
                    self._content.get(node.number, {}),
                    self._calls.get(node.number, {}),
                )
                self._types[node.number] = types
                self._content.setdefault(node.parent, Counter())[types] += 1
            changed.add(node.parent)
        for node in self._removed:
            if node.kind is NodeKind.FUNCTION:
                self._calls.get(node.parent, Counter())[node.label] -= 1
            else:
                self._content.get(node.parent, Counter())[self._types.pop(node.number)] -= 1
                self._content.pop(node.number, None)
                self._calls.pop(node.number, None)
            changed.add(node.parent)
        self._added, self._removed = [], []
        if rules.supplied != self._last:
            changed |= self._calls.keys()
            self._last = rules.supplied
        there = {each: ContentChange() for each in changed if each in self._tree.labels}
        self._rise(rules, there, is_kept=True)

    def _rise(self, rules: TypeRules, changes: dict[int, ContentChange], *, is_kept: bool) -> Types:
        """Look at nodes with changes, and at those above them as far as types change.

        Returns the types of the root; what is found is kept, or only tried out.
        """
        tree, found = self._tree, self._types[self._tree.root]
        pending = [-number for number in changes]  # a child has a greater number than its parent
        heapify(pending)
        while pending:
            number = -heappop(pending)
            change = changes.pop(number)
            content, calls = self._content.get(number), self._calls.get(number)
            if change.children or content is None:
                content = Counter(content) if content else Counter()
                content.update(change.children)
            if change.calls or calls is None:
                calls = Counter(calls) if calls else Counter()
                calls.update(change.calls)
            types = rules.types_of(tree.labels[number], tree.kinds[number], content, calls)
            before = self._types[number]
            if is_kept:
                self._types[number] = types
                self._content[number] = content
            if number == tree.root:
                found = types
            elif types != before:
                above = tree.parents[number]
                if above not in changes:
                    changes[above] = ContentChange()
                    heappush(pending, -above)
                changes[above].children[before] -= 1
                changes[above].children[types] += 1
        return found


def _brought(forest: Forest, rules: TypeRules) -> ContentChange:
    """Return what a forest adds to the children of a node."""
    content: dict[int, Counter[Types]] = {}
    calls: dict[int, Counter[str]] = {}
    for position in reversed(range(len(forest))):
        row = forest[position]
        if row.kind is NodeKind.FUNCTION:
            calls.setdefault(row.parent, Counter())[row.label] += 1
        else:
            below: Mapping[Types, int] = content.get(position, {})
            types = rules.types_of(row.label, row.kind, below, calls.get(position, {}))
            content.setdefault(row.parent, Counter())[types] += 1
    return ContentChange(content.get(ROOT, Counter()), calls.get(ROOT, Counter()))
