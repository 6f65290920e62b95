"""Random documents and queries with a key, and what must hold of any future, by the oracle alone.

Nothing but the collection of garbage and the usefulness of functions is the package's. For a
document I, what is kept of it I', and a future w:

| w                  | what holds                                                                 |
|--------------------|----------------------------------------------------------------------------|
| keeps the promise  | q(w(I)) = q(I) ∪ q(w(I'))                                                  |
| breaks it          | q(I) ∪ q(w(I')) ⊆ q(w(I)), and the keys of both are the same               |

and no future that keeps the promise needs a function that the package calls useless.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, count

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from oracles import documents as oracle
from oracles.document_text import shown, shown_query
from oracles.documents import Answers, Pattern, Q, Tree
from support.generators.document_rounds import opened, said
from support.generators.documents import FUNCTIONS, Making

Update = tuple[str, Tree]
FUTURES = 40
"""For each document, some of them made of what the query wants, some of anything."""
LABELS = "ab12"
MOST_UPDATES = 12
"""Pairs of a function and a tree, of which all sets of two are tried, to find a use of it."""


def node(label: str, *below: Q | tuple[str, Q] | list[list[tuple[str, Q]]]) -> Q:
    """Return a pattern node; a label with `$` has a variable, a pattern below it is a child."""
    label, _, name = label.partition("$")
    edges = [("/", each) if isinstance(each, Q) else each for each in below]
    return Q(label, name or None, edges)


def either(*alternatives: Q) -> list[list[tuple[str, Q]]]:
    return [[("/", each)] for each in alternatives]


PATTERNS = (
    Pattern(  # payments and deliveries: joined on one label, with another one of each
        node(
            "r",
            node("a", node("b", node("*$x")), node("c", node("*$y"))),
            node("c", node("b", node("*$x")), node("c", node("*$z"))),
        ),
        ["x", "y", "z"],
    ),
    Pattern(node("r", node("a", node("*$x")), node("b", node("*$y"))), ["x", "y"]),
    Pattern(node("r", node("a", node("b", node("*$x")), node("c", node("*$y")))), ["y", "x"]),
    Pattern(node("r", node("a", node("*$x"), ("//", node("*$y")))), ["x", "y"]),
    Pattern(node("r", either(node("a$x"), node("b$x")), node("*", node("*$y"))), ["x", "y"]),
    Pattern(
        node("*", either(node("a", node("*$x")), node("b", node("*$x"))), node("c", node("*$y"))),
        ["y", "x"],
    ),
    Pattern(node("r", node("a$x", node("b$y")), node("*$z"), node("c")), ["x", "z", "y"]),
)


@dataclass
class Keyed:
    """A query with a key, and documents that it is asked of.

    Args:
        seed: everything random follows from it.
        key: what the package is told; what is judged by, unless that is given.
        judged: the promise that futures are judged by.
    """

    seed: int
    key: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        known = len(PATTERNS)
        self.pattern = PATTERNS[self.seed % known] if self.seed % 10 < known else self._query()
        outputs = self.pattern.outputs
        size = self.random.randint(1, max(1, len(outputs) - 1))
        self.key = self.key or tuple(sorted(self.random.sample(outputs, size)))
        self.judged = self.judged or self.key
        self.plain = shown_query(self.pattern)
        self.text = f"{self.plain} key {', '.join(f'${name}' for name in self.key)}"

    def _query(self) -> Pattern:
        """Return a random query with two outputs that need not be equal."""
        made = (self._making().query() for _ in count())
        return next(each for each in made if len(each.outputs) == 2 and not each.equal)

    def _making(self) -> Making:
        return Making(random.Random(self.random.randrange(10**9)))

    def run(self, documents: int) -> Counter[str]:
        """Compare documents with their futures; return what was covered."""
        with_key, without = Collection(), Collection()
        for _ in range(documents):
            tree = self._document()
            document = opened(tree, set(), {}, with_key)
            self._useless(tree, document)
            self._collected(tree, document, opened(tree, set(), {}, without))
        return self.counts

    def _document(self) -> Tree:
        """Return a random document, into which the query's own trees have come."""
        label, below = self._making().document()
        tree = label, [*below[:1], *((f"!{name}", []) for name in FUNCTIONS)]
        brought = [self._wanted() for _ in range(self.random.randint(1, 5))]
        tree = _after(tree, [(name, self._with_calls(each)) for name, each in brought])
        is_open = {f"!{name}": self.random.random() < 0.6 for name in FUNCTIONS}
        return label, [each for each in tree[1] if is_open.get(each[0], True)]

    def _with_calls(self, tree: Tree) -> Tree:
        calls = [(f"!{self.random.choice(FUNCTIONS)}", [])] if self.random.random() < 0.2 else []
        return tree[0], [*map(self._with_calls, tree[1]), *calls]

    # --- what must hold --------------------------------------------------------------------------

    def _collected(self, tree: Tree, document: ActiveDocument, without: ActiveDocument) -> None:
        without.view(self.plain)
        view = document.view(self.text)
        more = document.gc().dropped - without.gc().dropped
        assert more >= 0, f"{self.text}, {shown(tree)}: the key keeps more"
        self.counts["nodes dropped for the key"] += more
        assert said(view.sure) == oracle.sure(self.pattern, tree)
        kept = _tree(document)
        before = oracle.sure(self.pattern, tree)
        for _ in range(FUTURES):
            future = self._future()
            wanted = oracle.sure(self.pattern, _after(tree, future))
            found = before | oracle.sure(self.pattern, _after(kept, future))
            where = f"{self.text}, {shown(tree)} left as {shown(kept)}, then {future}"
            self._compare(found, wanted, where)
            self.counts["new answers"] += len(wanted - before)
        self._follow(tree, document)

    def _follow(self, tree: Tree, document: ActiveDocument) -> None:
        """Let a future come to the document itself, in steps, with garbage collected in between."""
        view = document.view(self.text)
        for name, brought in self._future() + self._future():
            tree = oracle.added(tree, name, [brought])
            document.add(name, shown(brought))
            where = f"{self.text}, {shown(tree)} left as {document.terms()}"
            self._compare(said(view.sure), oracle.sure(self.pattern, tree), where)
            document.gc()

    def _compare(self, found: Answers, wanted: Answers, where: str) -> None:
        if self._keeps(wanted):
            assert found == wanted, where
            self.counts["kept"] += 1
        else:
            assert found <= wanted, where
            assert self._keys(found) == self._keys(wanted), where
            self.counts["broken"] += 1

    def _useless(self, tree: Tree, document: ActiveDocument) -> None:
        useful = document.view(self.text).useful()
        calls = {name for name in FUNCTIONS if f"!{name}" in shown(tree)}
        updates = [self._wanted() for _ in range(MOST_UPDATES)]
        for name in calls - useful:
            self.counts["useless"] += 1
            for chosen in _sets(updates):
                after = oracle.sure(self.pattern, _after(tree, chosen))
                others = [each for each in chosen if each[0] != name]
                if self._keeps(after):
                    without = oracle.sure(self.pattern, _after(tree, others))
                    assert after == without, f"!{name}: {self.text}, {shown(tree)}, then {chosen}"
                    self.counts["useless in a future"] += 1

    # --- promises and futures --------------------------------------------------------------------

    def _keys(self, answers: Answers) -> set[tuple[str, ...]]:
        places = [self.pattern.outputs.index(name) for name in self.judged]
        return {tuple(each[at] for at in places) for each in answers}

    def _keeps(self, answers: Answers) -> bool:
        return len(self._keys(answers)) == len(answers)

    def _future(self) -> list[Update]:
        anything = self._making()
        return [
            self._wanted()
            if self.random.random() < 0.8
            else (self.random.choice(FUNCTIONS), anything.tree(3, 0.1))
            for _ in range(self.random.randint(1, 3))
        ]

    def _wanted(self) -> Update:
        """Return a tree that a part of the query matches, with labels of its own or others."""
        query = self.random.choice(list(oracle.flat(self.pattern.root)))
        names = {each.variable for each in oracle.all_nodes(query) if each.variable}
        same = oracle.classes(self.pattern, names)
        labels = {name: self.random.choice(LABELS) for name in sorted(same.values())}
        edges = [edge for each in oracle.all_nodes(query) for edge in each.edges]
        axis, node = self.random.choice(edges)
        tree = oracle.instance(node, labels, same)
        if axis == "//" and self.random.random() < 0.3:
            tree = ("a", [tree])
        return self.random.choice(FUNCTIONS), tree


def _after(tree: Tree, updates: list[Update] | tuple[Update, ...]) -> Tree:
    for name, brought in updates:
        tree = oracle.added(tree, name, [brought])
    return tree


def _sets(updates: list[Update]) -> Iterator[tuple[Update, ...]]:
    yield from combinations(updates, 1)
    yield from combinations(updates, 2)


def _tree(document: ActiveDocument) -> Tree:
    """Return what is kept of a document, as the oracle has trees."""
    nodes = document.nodes

    def below(number: int) -> Tree:
        mark = "!" if any(number in calls for calls in nodes.calls.values()) else ""
        return mark + nodes.labels[number], [below(each) for each in nodes.children[number]]

    return below(nodes.root)
