"""The nodes of one document: a tree that grows, until parts of it are retracted or collected.

Numbers grow with time, and a parent is there before its children; so a walk over falling numbers
sees children first.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import NamedTuple

from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind, children_of


def _forms(forest: Forest, forms: dict[tuple[object, ...], int]) -> list[int]:
    """Return the form of each node: equal trees, whatever their order, have the same."""
    below = children_of(forest)
    found = [0] * len(forest)
    for position in reversed(range(len(forest))):
        row = forest[position]
        form = (row.label, row.kind, *sorted(found[child] for child in below[position]))
        found[position] = forms.setdefault(form, len(forms))
    return found


class StoredNode(NamedTuple):
    """A node with its number and that of its parent, as it is stored."""

    number: int
    parent: int
    label: str
    kind: NodeKind
    arrival: str


class DocumentTree:
    """A document as a tree of numbered nodes.

    Attributes:
        root: the number of the root.
        parents, labels, kinds, children: by the number of a node.
        calls: for each function name the nodes that are calls of it.
        initial: the nodes that were there in the beginning.
        origins: for the root of each tree that a function brought, the call that it is beside.
        time: what is written for the time that it is; what comes now, arrives at it.
        clock: the time that it is, in seconds.
        arrivals: the times at which nodes came; those that are missing were there at the start.
    """

    def __init__(
        self, forest: Forest, numbers: Iterator[int], time: str = "0", clock: float = 0.0
    ) -> None:
        self.parents: dict[int, int] = {}
        self.labels: dict[int, str] = {}
        self.kinds: dict[int, NodeKind] = {}
        self.children: dict[int, list[int]] = {}
        self.calls: dict[str, list[int]] = {}
        self.origins: dict[int, int] = {}
        self.start = self.time = time
        self.clock = clock
        self.arrivals: dict[int, str] = {}
        self.root = -1
        self.initial = self.graft(ROOT, forest, numbers)
        self.root = self.initial[0].number

    def __len__(self) -> int:
        return len(self.parents)

    def copy(self) -> "DocumentTree":
        """Return a copy that can be changed by itself."""
        found = copy(self)
        found.parents, found.labels = dict(self.parents), dict(self.labels)
        found.kinds, found.origins = dict(self.kinds), dict(self.origins)
        found.children = {number: list(several) for number, several in self.children.items()}
        found.calls = {name: list(several) for name, several in self.calls.items()}
        return found

    def insert(self, function: str, forest: Forest, numbers: Iterator[int]) -> list[StoredNode]:
        """Insert a copy of every tree beside every call of a function; return the new nodes."""
        added: list[StoredNode] = []
        for call in tuple(self.calls.get(function, ())):
            grafted = self.graft(self.parents[call], forest, numbers)
            added += grafted
            for row, node in zip(forest, grafted, strict=True):
                if row.parent == ROOT:
                    self.origins[node.number] = call
        return added

    def brought(self, function: str, forest: Forest, taken: set[int]) -> set[int] | None:
        """Return the roots of the trees that the last update of a function with them has brought.

        Beside each of its calls that is for every tree of a forest the newest one that was equal to
        it when it came, whatever has come into it since; None if there is no such update.

        Args:
            function: its name.
            forest: the trees of the update.
            taken: roots that do not count.
        """
        forms: dict[tuple[object, ...], int] = {}
        wanted = [
            form
            for row, form in zip(forest, _forms(forest, forms), strict=True)
            if row.parent == ROOT
        ]
        candidates: dict[int, list[int]] = {}
        for number, call in sorted(self.origins.items(), reverse=True):
            if self.labels[call] == function and number not in taken:
                candidates.setdefault(call, []).append(number)
        found: set[int] = set()
        for several in candidates.values():
            left = [(number, self._form(number, forms)) for number in several]
            chosen = []
            for form in wanted:
                position = next((at for at, each in enumerate(left) if each[1] == form), None)
                if position is None:
                    break
                chosen.append(left.pop(position)[0])
            else:
                found.update(chosen)
        return found or None

    def _form(self, root: int, forms: dict[tuple[object, ...], int]) -> int:
        """Return the form of a tree as it was brought."""
        order = [root]
        for number in order:
            order += [child for child in self.children[number] if child not in self.origins]
        found: dict[int, int] = {}
        for number in reversed(order):
            below = sorted(found[child] for child in self.children[number] if child in found)
            form = (self.labels[number], self.kinds[number], *below)
            found[number] = forms.setdefault(form, len(forms))
        return found[root]

    def prune(self, roots: Iterable[int]) -> list[StoredNode]:
        """Drop some trees with everything in them, and beside calls in them; return what is gone.

        A tree may be a mere call: what its function has brought stands beside it, and goes, too.
        """
        dropped: list[StoredNode] = []
        pending = [*roots]
        beside: dict[int, list[int]] = {}
        for root, call in self.origins.items() if pending else ():
            beside.setdefault(call, []).append(root)
        while pending:
            root = pending.pop()
            if root not in self.parents:  # it was within another one
                continue
            self.children[self.parents[root]].remove(root)
            stack = [root]
            while stack:
                number = stack.pop()
                stack += self.children.pop(number)
                label, kind = self.labels.pop(number), self.kinds.pop(number)
                arrival = self.arrivals.pop(number, self.start)
                dropped.append(StoredNode(number, self.parents.pop(number), label, kind, arrival))
                self.origins.pop(number, None)
                if kind is NodeKind.FUNCTION:
                    self.calls[label].remove(number)
                    pending += beside.get(number, ())
        return dropped

    def pruned_roots(self, roots: Iterable[int]) -> set[int]:
        """Return the topmost nodes of what goes if some trees are pruned, without doing that."""
        pending, found = [*roots], set[int]()
        beside: dict[int, list[int]] = {}
        for root, call in self.origins.items() if pending else ():
            beside.setdefault(call, []).append(root)
        while pending:
            root = pending.pop()
            if root not in found:
                found.add(root)
                stack = [root]
                while stack:
                    number = stack.pop()
                    stack += self.children[number]
                    pending += beside.get(number, ())
        return {each for each in found if not found & self.ancestors([self.parents[each]])}

    def graft(self, parent: int, forest: Forest, numbers: Iterator[int]) -> list[StoredNode]:
        """Put a copy of every tree of a forest below a node; return the new nodes."""
        added: list[StoredNode] = []
        for row in forest:
            above = parent if row.parent == ROOT else added[row.parent].number
            node = StoredNode(next(numbers), above, row.label, row.kind, self.time)
            added.append(node)
            self.parents[node.number] = above
            self.labels[node.number] = row.label
            self.kinds[node.number] = row.kind
            if self.time != self.start:
                self.arrivals[node.number] = self.time
            self.children[node.number] = []
            if above != ROOT:
                self.children[above].append(node.number)
            if row.kind is NodeKind.FUNCTION:
                self.calls.setdefault(row.label, []).append(node.number)
        return added

    def retain(self, kept: set[int]) -> list[StoredNode]:
        """Drop all nodes but some, which include all their parents; return what is dropped."""
        dropped = [self.stored_node(number) for number in self.parents if number not in kept]
        for each in dropped:
            del self.parents[each.number], self.labels[each.number]
            del self.kinds[each.number], self.children[each.number]
            self.origins.pop(each.number, None)
            self.arrivals.pop(each.number, None)
        for number, children in self.children.items():
            if any(child not in kept for child in children):
                self.children[number] = [child for child in children if child in kept]
        for name in {each.label for each in dropped if each.kind is NodeKind.FUNCTION}:
            self.calls[name] = [call for call in self.calls[name] if call in kept]
        return dropped

    def stored_node(self, number: int) -> StoredNode:
        """Return a node as it is stored."""
        label, kind = self.labels[number], self.kinds[number]
        arrival = self.arrivals.get(number, self.start)
        return StoredNode(number, self.parents[number], label, kind, arrival)

    def arrival_of(self, number: int) -> str:
        """Return the time at which a node came; one that is not there would come now."""
        if number not in self.labels:
            return self.time
        return self.arrivals.get(number, self.start)

    def origin_positions(self) -> list[list[int]]:
        """Return the trees that were brought and their calls, by their positions in the forest."""
        positions = self._positions()
        return sorted([positions[each], positions[call]] for each, call in self.origins.items())

    def arrival_positions(self) -> dict[str, list[int]]:
        """Return for each time the nodes that came at it, by their positions in the forest."""
        positions = self._positions() if self.arrivals else {}
        found: dict[str, list[int]] = {}
        for number, at in self.arrivals.items():
            found.setdefault(at, []).append(positions[number])
        return found

    def _positions(self) -> dict[int, int]:
        positions: dict[int, int] = {}
        stack = [self.root]
        while stack:
            number = stack.pop()
            positions[number] = len(positions)
            stack += reversed(self.children[number])
        return positions

    def restore_origins(self, saved: Iterable[Iterable[int]]) -> None:
        """Note which nodes of a document that has just been read were brought, and where."""
        numbers = [each.number for each in self.initial]
        self.origins = {numbers[tree]: numbers[call] for tree, call in saved}

    def path(self, number: int) -> tuple[str, ...]:
        """Return the labels from the root down to a node; not that of several documents."""
        labels = []
        while number in self.parents and self.kinds[number] is not NodeKind.COLLECTION:
            labels.append(self.labels[number])
            number = self.parents[number]
        return tuple(reversed(labels))

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Return some nodes and everything above them."""
        found: set[int] = set()
        for number in numbers:
            while number != ROOT and number not in found:
                found.add(number)
                number = self.parents[number]
        return found

    def forest(self, root: int | None = None) -> Forest:
        """Return the document as it is now, or what is below one of its nodes, with the node."""
        root = self.root if root is None else root
        positions: dict[int, int] = {self.parents[root]: ROOT}
        rows: list[ForestNode] = []
        stack = [root]
        while stack:
            number = stack.pop()
            positions[number] = len(rows)
            rows.append(
                ForestNode(positions[self.parents[number]], self.labels[number], self.kinds[number])
            )
            stack += reversed(self.children[number])
        return rows
