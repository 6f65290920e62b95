"""A second opinion on functions with types and functions that answer once: from the definitions.

A type is None (any tree), a set of labels (those of the roots), or a `Grammar`. What matches goes
on matching whatever else comes, so only the *largest* trees of a type are brought: every tree of
the type, down to a depth, is contained in one of them. A stream brings them all, a function that
answers once brings each of them in turn, in every combination with the others that do.

Labels that neither the document nor the query nor a type mentions are all alike, and no query asks
for two labels to differ: one of them, `new`, stands for all.

How deep is deep enough? Let a query have k nodes below its root, s of them behind `//`, and a
grammar T types. Take a tree of the grammar with a match. Between two nodes that are matched, or
where branches with matches part, a path that meets a type twice can be shortened; a path is
stretched only by `//`, and branches part in stretches only on their way to a node behind `//`. So
some tree has its match within k + s(T + 1) levels; below them, anything of the type does.

Trees of an active type come with calls, to which the functions bring theirs, and so on to the same
depth, where T counts the types of all functions. A function that answers once brings its tree to
all calls that are there by then: every order of their answers is tried, and a call that came with
an answer gets only what is answered later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations, product

from oracles import documents as oracle
from oracles.documents import Answers, Flat, Node, Pattern, Tree

ANY = "ANY"


@dataclass(frozen=True)
class Grammar:
    """Types by name: labels (None for any), and children as (type, is required, is single).

    `calls` has for some of the types the functions that trees may call below their roots.
    """

    start: str
    rules: Mapping[str, tuple[frozenset[str] | None, tuple[tuple[str, bool, bool], ...]]]
    calls: Mapping[str, frozenset[str]] = field(default_factory=dict)


Type = None | frozenset[str] | Grammar
Types = Mapping[str, Type]


class TooLargeError(Exception):
    """There are too many trees to go through."""


# --- the largest trees of a type -----------------------------------------------------------------


class Largest:
    """The largest trees of a grammar.

    Args:
        grammar: the types.
        labels: all that matter.
        everything: what is below a node that may have anything below it.
        most: so many trees at most.
    """

    def __init__(
        self, grammar: Grammar, labels: set[str], everything: list[Node], most: int
    ) -> None:
        self.grammar = grammar
        self.labels = sorted(labels)
        self.everything = everything
        self.most = most
        self.smallest = self.find_smallest()
        self.known: dict[tuple[str, int], list[Node]] = {}

    def find_smallest(self) -> dict[str, Node]:
        """Return one tree of each type that has a tree at all."""
        found = {ANY: made("new", [])}
        for _ in self.grammar.rules:
            for name, (labels, children) in self.grammar.rules.items():
                required = [child for child, is_required, _ in children if is_required]
                if name not in found and labels != frozenset() and set(required) <= set(found):
                    label = "new" if labels is None else min(labels)
                    found[name] = made(label, [found[child] for child in required])
        return found

    def of(self, name: str, depth: int) -> list[Node]:
        if (name, depth) not in self.known:
            self.known[name, depth] = list(self.find(name, depth))
        return self.known[name, depth]

    def find(self, name: str, depth: int) -> Iterator[Node]:
        if name == ANY:
            yield from (made(label, self.everything) for label in self.labels)
        elif depth == 0 or name not in self.smallest:
            yield from (self.smallest[each] for each in [name] if each in self.smallest)
        else:
            labels, children = self.grammar.rules[name]
            many = [
                each
                for child, _, is_single in children
                if not is_single
                for each in self.of(child, depth - 1)
            ]
            single = [
                self.of(child, depth - 1)
                for child, _, is_single in children
                if is_single and child in self.smallest
            ]
            ways = product(self.labels if labels is None else sorted(labels), *single)
            for at, (label, *chosen) in enumerate(ways):
                if at == self.most:
                    raise TooLargeError
                yield made(label, [*many, *chosen, *self.calls(name)])

    def calls(self, name: str) -> list[Node]:
        return [made(f"!{each}", []) for each in sorted(self.grammar.calls.get(name, ()))]


def made(label: str, below: list[Node]) -> Node:
    node = Node(label, is_new=True)
    node.below = below
    return node


def largest(
    type_: Type, labels: set[str], everything: list[Node], depth: int, most: int = 400
) -> list[Node]:
    """Return trees of a type that contain every other one as far as a depth."""
    if isinstance(type_, Grammar):
        return Largest(type_, labels, everything, most).of(type_.start, depth)
    return [made(label, everything) for label in sorted(labels if type_ is None else type_)]


def depth_for(pattern: Pattern, types: int) -> int:
    """Return how deep trees have to be: see above."""
    deepest = 0
    for query in oracle.flat(pattern.root):
        edges = [axis for each in oracle.all_nodes(query) for axis, _ in each.edges]
        deepest = max(deepest, len(edges) + edges.count("//") * (types + 1))
    return deepest


def labels_of(type_: Type) -> set[str]:
    if isinstance(type_, Grammar):
        return {label for labels, _ in type_.rules.values() for label in labels or ()}
    return set(type_ or ())


# --- matching where nodes are shared -------------------------------------------------------------

Row = frozenset[tuple[str, str, bool]]
"""For each class its label, and whether that is known: of an old node, or said by the query."""
Ranges = dict[tuple[str, ...], Answers]
"""For each answer, those without unknown labels that it stands for."""


class Matches:
    """The maps of one pattern without choices, each as the row of labels that it gives."""

    def __init__(self, pattern: Pattern, query: Flat) -> None:
        self.query = query
        names = {each.variable for each in oracle.all_nodes(query) if each.variable}
        self.same = oracle.classes(pattern, names)
        self.outputs = pattern.outputs
        self.known: dict[tuple[Flat, Node, str], frozenset[Row]] = {}

    def at(self, query: Flat, node: Node) -> frozenset[Row]:
        """Return the rows of the maps that send a query node to a node."""
        key = (query, node, "at")
        if key not in self.known:
            self.known[key] = frozenset(self.find(query, node))
        return self.known[key]

    def find(self, query: Flat, node: Node) -> set[Row]:
        if node.label.startswith("!") or query.label not in ("*", node.label):
            return set()
        own: Row = frozenset()
        if query.variable:
            is_known = not node.is_new or query.label != "*"
            own = frozenset({(self.same[query.variable], node.label, is_known)})
        found = {own}
        for axis, below in query.edges:
            more = self.below(below, node, axis)
            joined = (both(one, other) for one in found for other in more)
            found = {each for each in joined if each is not None}
        return found

    def below(self, query: Flat, node: Node, axis: str) -> frozenset[Row]:
        """Return the rows of the maps that send a query node to children or descendants."""
        key = (query, node, axis)
        if key not in self.known:
            found = {row for each in node.below for row in self.at(query, each)}
            if axis == "//":
                found |= {row for each in node.below for row in self.below(query, each, axis)}
            self.known[key] = frozenset(found)
        return self.known[key]

    def answers(self, root: Node) -> Answers:
        """Return the witnessed tuples."""
        return set(self.ranges(root))

    def ranges(self, root: Node) -> Ranges:
        """Return the witnessed tuples, each with what its unknown labels turn out to be."""
        found: Ranges = {}
        for row in self.at(self.query, root):
            said = {name: label if is_known else "?" for name, label, is_known in row}
            meant = {name: "new" if label.startswith("new ") else label for name, label, _ in row}
            answer = tuple(said[self.same[name]] for name in self.outputs)
            total = tuple(meant[self.same[name]] for name in self.outputs)
            found.setdefault(answer, set()).add(total)
        return found


def both(one: Row, other: Row) -> Row | None:
    """Return two rows as one, if they agree."""
    found = {name: (label, is_known) for name, label, is_known in one}
    for name, label, is_known in other:
        before = found.get(name, (label, False))
        if before[0] != label:
            return None
        found[name] = (label, before[1] or is_known)
    return frozenset((name, *rest) for name, rest in found.items())


# --- what is possible ----------------------------------------------------------------------------


def all_labels(pattern: Pattern, tree: Tree, types: Types) -> set[str]:
    named = oracle.query_labels(pattern) | oracle.labels_in(tree) | {"new"}
    return named.union(*map(labels_of, types.values()))


def reached(tree: Tree, live: set[str], types: Types) -> list[str]:
    """Return the live functions that the document calls, or trees of those that are called."""
    found: set[str] = set()
    left = [name[1:] for name in calls_in(tree)]
    while left:
        name = left.pop()
        if name in live and name not in found:
            found.add(name)
            type_ = types.get(name)
            if isinstance(type_, Grammar):
                left += [each for several in type_.calls.values() for each in several]
    return sorted(found)


def levels(pattern: Pattern, types: Types) -> int:
    """Return how deep the trees of all functions have to be."""
    grammars = [each for each in types.values() if isinstance(each, Grammar)]
    if any(each.calls for each in grammars):
        return depth_for(pattern, len(types) + sum(len(each.rules) for each in grammars))
    return depth_for(pattern, max((len(each.rules) for each in grammars), default=0))


class Brought:
    """What functions bring: to the calls of a document, and to those in what they bring.

    Args:
        trees: of each function that brings something.
        order: the functions that answer once, as they answer.
    """

    def __init__(self, trees: Mapping[str, list[Node]], order: tuple[str, ...]) -> None:
        self.trees = trees
        self.order = order
        self.known: dict[tuple[Node, int, int], Node] = {}

    def below(self, nodes: list[Node], depth: int, since: int) -> list[Node]:
        """Return nodes and what the calls among them get, down to a depth.

        Args:
            nodes: children of one node.
            depth: so many levels get something.
            since: the calls came with the answer that has this place in the order; -1 without.
        """
        found = [self.filled(each, depth, since) for each in nodes]
        for call in nodes if depth else ():
            name = call.label[1:]
            if not call.label.startswith("!") or name not in self.trees:
                continue
            at = self.order.index(name) if name in self.order else None
            if at is None or at > since:
                then = since if at is None else at
                found += [self.filled(each, depth, then) for each in self.trees[name]]
        return found

    def filled(self, node: Node, depth: int, since: int) -> Node:
        if depth == 0 or not has_calls(node):
            return node
        key = (node, depth, since)
        if key not in self.known:
            below = depth if not node.is_new else depth - 1
            self.known[key] = Node(node.label, node.is_new)
            self.known[key].below = self.below(node.below, below, since)
        return self.known[key]


def has_calls(node: Node) -> bool:
    if node.has_calls is None:
        node.has_calls = node.label.startswith("!") or any(map(has_calls, node.below))
    return node.has_calls


def possible(pattern: Pattern, tree: Tree, live: set[str], once: set[str], types: Types) -> Ranges:
    """Return the witnessed tuples W with their ranges, sure ones included.

    Raises:
        TooLargeError: there are too many trees, or combinations of them.
    """
    labels = all_labels(pattern, tree, types)
    depth = levels(pattern, types)
    everything = [oracle.grown(each, is_new=True) for each in oracle.wanted(pattern, labels)]
    called = reached(tree, live, types)
    every: list[list[list[Node]]] = []
    for name in called:
        trees = largest(types.get(name), labels, everything, depth)
        every.append([[each] for each in trees] or [[]] if name in once else [trees])
    size = 1
    for several in every:
        size *= len(several)
    if size > 4000:
        raise TooLargeError
    matches = [Matches(pattern, query) for query in oracle.flat(pattern.root)]
    found: Ranges = {}
    for order in permutations(name for name in called if name in once):
        for chosen in product(*every):
            brought = Brought(dict(zip(called, chosen, strict=True)), order)
            root = brought.filled(oracle.grown(tree), depth + 1, -1)
            for each in matches:
                for answer, totals in each.ranges(root).items():
                    found.setdefault(answer, set()).update(totals)
    return found


def minimal(answers: Ranges) -> Answers:
    """Return the answers that no other one stands for."""
    return {u for u in answers if not any(v != u and stands_for(answers, v, u) for v in answers)}


def maximal(answers: Ranges) -> Answers:
    """Return the answers that stand for no other one."""
    return {u for u in answers if not any(v != u and stands_for(answers, u, v) for v in answers)}


def stands_for(answers: Ranges, one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    is_vague = all(a in ("?", b) for a, b in zip(one, other, strict=True))
    return is_vague and answers[other] <= answers[one]


def calls_in(tree: Tree) -> set[str]:
    found = {tree[0]} if tree[0].startswith("!") else set()
    return found.union(*(calls_in(each) for each in tree[1]))
