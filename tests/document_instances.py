"""Random queries and documents, judged by the oracle: `tests/document_oracle.py`.

A *round* is one query and a shelf of documents in one collection; in some rounds functions have
types, or answer once. Everything that a view says is compared, then again after random updates and
ends, after garbage collection, and after a random future behind it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import document_oracle as oracle
import document_oracle_types as typed_oracle
from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from corollary.documents.storage import Batch
from corollary.documents.view import View
from document_oracle import Answers, Pattern, Q, Tree
from document_oracle_types import Grammar, TooLargeError, Type
from document_random_types import as_package, random_tree, random_type

LABELS = "abc"
FUNCTIONS = "fg"
MOST_UPDATES = 40
"""Pairs of a function and a tree, from which sets of updates are made."""
MOST_TREES = 60
"""The largest trees of a type, which functions that answer once bring in all combinations."""


@dataclass
class Shelf:
    """One document: as the package has it, and as the oracle has it."""

    document: ActiveDocument
    view: View
    tree: Tree
    once: set[str]
    types: dict[str, Type]
    ended: set[str] = field(default_factory=set)

    @property
    def live(self) -> set[str]:
        return set(FUNCTIONS) - self.ended

    @property
    def is_plain(self) -> bool:
        """Whether all functions are streams of anything."""
        return not self.once and not self.types

    def __str__(self) -> str:
        types = ", ".join(f"{name} {type_}" for name, type_ in self.types.items())
        return f"{shown(self.tree)}, ended {self.ended}, once {self.once}, types {types}"


class Round:
    """A query, and documents that it is asked of.

    Args:
        seed: everything random follows from it.
        documents: how many there are.
    """

    def __init__(self, seed: int, documents: int) -> None:
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.pattern = self.query()
        self.text = shown_query(self.pattern)
        self.where = f"seed {seed}, {self.text}"
        collection = Collection()
        may_be_once, may_be_typed = self.random.random() < 0.4, self.random.random() < 0.4
        made = []
        for _ in range(documents):
            tree = self.document()
            once = {each for each in FUNCTIONS if may_be_once and self.random.random() < 0.5}
            types = {each: self.type() for each in FUNCTIONS if may_be_typed}
            types = {name: type_ for name, type_ in types.items() if type_ is not None}
            made.append((tree, once, types, opened(tree, once, types, collection)))
        self.shelves = [
            Shelf(document, document.view(self.text), tree, once, types)
            for tree, once, types, document in made
        ]

    @classmethod
    def made_query(cls, seed: int) -> Pattern:
        """Return a random query alone."""
        return cls.alone(seed).query()

    @classmethod
    def made_document(cls, seed: int) -> Tree:
        """Return a random document alone."""
        return cls.alone(seed).document()

    @classmethod
    def alone(cls, seed: int) -> Round:
        made = cls.__new__(cls)
        made.random = random.Random(seed)
        return made

    # --- random things ---------------------------------------------------------------------------

    def document(self) -> Tree:
        return "r", [self.tree(3) for _ in range(self.random.randint(1, 3))]

    def tree(self, depth: int, calls: float = 0.3) -> Tree:
        if self.random.random() < calls:
            return f"!{self.random.choice(FUNCTIONS)}", []
        label = self.random.choice(LABELS)
        if depth <= 1:
            return label, []
        below = self.random.choices((0, 1, 2), (3, 4, 2))[0]
        return label, [self.tree(depth - 1, calls) for _ in range(below)]

    def type(self) -> Type:
        """Return a random type whose trees can be gone through; None for that of all trees."""
        labels = {*LABELS, "r", "z", "new"}
        while self.random.random() < 0.8:
            found = random_type(self.random)
            try:
                number = len(typed_oracle.largest(found, self.pattern, labels, []))
            except TooLargeError:
                continue
            if number <= MOST_TREES:
                return found
        return None

    def brought(self, shelf: Shelf, name: str, *, is_future: bool) -> Tree | None:
        """Return a random tree that a function may bring; None if there is none."""
        type_ = shelf.types.get(name)
        if isinstance(type_, Grammar):
            return random_tree(type_, self.random, 3)
        tree = self.tree(3, 0.0 if is_future else 0.1)
        if tree[0].startswith("!") and not shelf.is_plain:
            return None
        if type_ is None:
            return tree
        return (self.random.choice(sorted(type_)), tree[1]) if type_ else None

    def query(self) -> Pattern:
        self.left = self.random.randint(1, 4)
        self.names = self.random.choice(([], [], ["x"], ["x", "y"], ["x", "x"], ["x", "y", "x"]))
        self.names = list(self.names)
        root = Q(self.random.choice(("r", "r", "*")))
        self.edges(root, 3)
        free = variables(root)
        bound = set(free) & always_bound(root)
        outputs = [name for name in dict.fromkeys(free) if name in bound]
        if self.random.random() < 0.3:
            outputs = []
        equal = [("x", "y")] if set(free) >= {"x", "y"} and self.random.random() < 0.5 else []
        return Pattern(root, outputs, equal)

    def edges(self, node: Q, depth: int) -> None:
        while self.left > 0 and depth:
            self.left -= 1
            if self.left and self.random.random() < 0.15:
                self.left -= 1
                node.edges.append([[self.edge(0)], [self.edge(0)]])
            else:
                node.edges.append(self.edge(depth - 1))
            if self.random.random() < 0.5:
                break

    def edge(self, depth: int) -> tuple[str, Q]:
        node = Q(self.random.choice((*LABELS, "*")))
        if self.names and self.random.random() < 0.6:
            node.variable = self.names.pop()
            node.label = self.random.choice(("*", "*", "*", node.label))
        self.edges(node, depth)
        return self.random.choice(("/", "/", "//")), node

    # --- the comparison --------------------------------------------------------------------------

    def run(self, *, with_useful: bool = True) -> Counter[str]:
        """Compare everything; return what was covered."""
        self.compare("at first")
        if with_useful:
            self.compare_useful()
        for _ in range(2):
            self.update()
            self.compare("after updates")
        self.collect()
        self.update(is_future=True)
        self.compare_future()
        return self.counts

    def compare(self, when: str) -> None:
        for each in self.shelves:
            where = f"{when}: {self.where}, {each}"
            sure = oracle.sure(self.pattern, each.tree)
            possible = self.possible(each)
            value = 1 if sure else 0.5 if possible else 0
            view = each.view
            assert view.value == value, f"{where}: {view.value}, not {value}"
            assert said(view.sure) == sure, where
            assert said(view.possible()) == possible - sure, where
            assert said(view.minimal) == oracle.minimal(sure | possible), where
            self.counts["instances"] += 1
            self.counts[f"value {value}"] += 1

    def possible(self, shelf: Shelf) -> Answers:
        """Return what the oracle finds possible; where there are two ways to, by both."""
        live, tree = shelf.live, shelf.tree
        found = typed_oracle.possible(self.pattern, tree, live, shelf.once, shelf.types)
        if shelf.is_plain:
            assert found == oracle.possible(self.pattern, tree, live), f"{self.where}, {shelf}"
        return found

    def compare_useful(self) -> None:
        """Compare usefulness where updates can be gone through; first by small sets of them."""
        for each in self.shelves:
            found = each.view.useful()
            calls = {name for name in FUNCTIONS if f"!{name}" in shown(each.tree)}
            pool = oracle.update_pool(self.pattern, oracle.labels_in(each.tree))
            if not each.is_plain or len(pool) * len(calls) > MOST_UPDATES:
                self.counts["too large for usefulness"] += 1
                continue
            for name in calls:
                expected = oracle.is_useful(self.pattern, each.tree, calls, name, 2)
                for size in (3, 4):
                    if expected == (name in found):
                        break
                    expected = oracle.is_useful(self.pattern, each.tree, calls, name, size)
                where = f"{name} in {self.where}, {shown(each.tree)}: {sorted(found)}"
                assert expected == (name in found), where
                self.counts["useful" if expected else "useless"] += 1

    def update(self, *, is_future: bool = False) -> None:
        batch = Batch()
        for each in self.shelves:
            updates = []
            for name in self.random.sample(FUNCTIONS, self.random.randint(0, 2)):
                tree = self.brought(each, name, is_future=is_future)
                if name in each.ended or tree is None:
                    continue
                each.tree = oracle.added(each.tree, name, [tree])
                updates.append((name, shown(tree)))
                if name in each.once:
                    each.ended.add(name)
            ends = [name for name in sorted(each.live) if self.random.random() < 0.15]
            each.ended |= set(ends)
            each.document.prepare(updates, ends, batch)
        self.write(batch)

    def collect(self) -> None:
        before = [(each.view.value, each.view.sure, each.view.possible()) for each in self.shelves]
        batch = Batch()
        for each in self.shelves:
            self.counts["nodes dropped"] += each.document.sweep(batch).dropped
            self.counts["nodes kept"] += len(each.document.nodes)
        self.write(batch)
        for each, (value, sure, possible) in zip(self.shelves, before, strict=True):
            where = f"{self.where}, {each} left as {each.document.terms()}"
            assert each.view.value == value, where
            assert each.view.sure == sure, where
            assert each.view.possible() == possible, where

    def compare_future(self) -> None:
        for each in self.shelves:
            where = f"{self.where}, {each} collected to {each.document.terms()}"
            sure = oracle.sure(self.pattern, each.tree)
            assert said(each.view.sure) == sure, where
            value = 1 if sure else 0.5 if self.possible(each) else 0
            assert each.view.value == value, where
            self.counts["futures"] += 1

    def write(self, batch: Batch) -> None:
        touched = self.shelves[0].document.collection.write(batch)
        for each in self.shelves:
            each.document.note(touched)


def opened(
    tree: Tree, once: set[str], types: dict[str, Type], collection: Collection
) -> ActiveDocument:
    known = {name: as_package(type_) for name, type_ in types.items() if type_ is not None}
    return ActiveDocument.from_terms(
        shown(tree), collection=collection, once=once, types=known, unknown="create"
    )


# --- as text -------------------------------------------------------------------------------------


def variables(node: Q) -> list[str]:
    found = [node.variable] if node.variable else []
    for edge in node.edges:
        if isinstance(edge, tuple):
            found += variables(edge[1])
        else:
            found += [name for one in edge for _, below in one for name in variables(below)]
    return found


def always_bound(node: Q) -> set[str]:
    found = {node.variable} if node.variable else set()
    for edge in node.edges:
        if isinstance(edge, tuple):
            found |= always_bound(edge[1])
        else:
            found |= set.intersection(
                *(set().union(*(always_bound(below) for _, below in one)) for one in edge)
            )
    return found


def shown(tree: Tree) -> str:
    label = f'"{tree[0]}"' if " " in tree[0] else tree[0]
    return label + (f"[{' '.join(map(shown, tree[1]))}]" if tree[1] else "")


def shown_query(pattern: Pattern) -> str:
    equal = " and ".join(f"${one} = ${other}" for one, other in pattern.equal)
    where = f" where {equal}" if equal else ""
    outputs = ", ".join(f"${name}" for name in pattern.outputs) or "()"
    return f"/{_step(pattern.root)}{where} return {outputs}"


def _step(node: Q) -> str:
    name = f"${node.variable}" if node.variable else ""
    return node.label + name + "".join(f"[{_edge(each)}]" for each in node.edges)


def _edge(edge: tuple[str, Q] | list[list[tuple[str, Q]]]) -> str:
    if isinstance(edge, tuple):
        return (".//" if edge[0] == "//" else "") + _step(edge[1])
    return " or ".join(" and ".join(map(_edge, one)) for one in edge)


def said(answers: frozenset[tuple[object, ...]]) -> Answers:
    return {tuple(map(str, each)) for each in answers}
