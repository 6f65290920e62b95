"""Random queries and documents, judged by the oracle: `tests/oracles/documents.py`.

A *round* is one query and a shelf of documents in one collection; in some rounds functions have
types, or answer once. Everything that a view says is compared, then again after random updates and
ends, after garbage collection, and after a random future behind it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from corollary.documents.collection import Collection, WriteBatch
from corollary.documents.document import ActiveDocument
from corollary.documents.view import View
from oracles import document_types as typed_oracle
from oracles import documents as oracle
from oracles.document_text import shown, shown_query
from oracles.document_types import Grammar, Ranges, TooLargeError, Type
from oracles.document_usefulness import allowed_sets, is_useful, makes_a_difference, update_pool
from oracles.documents import Answers, Tree
from support.generators.document_types import NAMES, as_package, random_tree, random_type
from support.generators.documents import FUNCTIONS, LABELS, Making

MOST_UPDATES = 40
"""Pairs of a function and a tree, from which sets of updates are made."""
MOST_TYPES = len(FUNCTIONS) * (1 + len(NAMES))
"""Of all functions together."""
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

    @property
    def is_active(self) -> bool:
        """Whether trees of some function call functions."""
        return any(isinstance(each, Grammar) and each.calls for each in self.types.values())

    def __str__(self) -> str:
        types = ", ".join(f"{name} {type_}" for name, type_ in self.types.items())
        return f"{shown(self.tree)}, ended {self.ended}, once {self.once}, types {types}"


class Round:
    """A query, and documents that it is asked of.

    Args:
        seed: everything random follows from it.
        documents: how many there are.
        is_active: whether functions have types, and mostly active ones; by chance if not given.
    """

    def __init__(self, seed: int, documents: int, *, is_active: bool | None = None) -> None:
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        may_be_once, may_be_typed = self.random.random() < 0.4, self.random.random() < 0.4
        self.active = self.random.choice((0, 0.8)) if is_active is None else 0.8 * is_active
        may_be_typed = may_be_typed or bool(is_active)
        is_bushy = (may_be_once or may_be_typed) and self.random.random() < 0.8
        self.making = Making(self.random, is_bushy=is_bushy)
        self.pattern = self.making.query()
        self.text = shown_query(self.pattern)
        self.where = f"seed {seed}, {self.text}"
        collection = Collection()
        made = []
        for _ in range(documents):
            tree = self.making.document()
            once = {each for each in FUNCTIONS if may_be_once and self.random.random() < 0.6}
            types = {each: self.type() for each in FUNCTIONS if may_be_typed}
            types = {name: type_ for name, type_ in types.items() if type_ is not None}
            made.append((tree, once, types, opened(tree, once, types, collection)))
        self.shelves = [
            Shelf(document, document.view(self.text), tree, once, types)
            for tree, once, types, document in made
        ]

    # --- what functions are and bring ------------------------------------------------------------

    def type(self) -> Type:
        """Return a random type whose trees can be gone through; None for that of all trees."""
        labels = {*LABELS, "r", "z", "new"}
        while self.random.random() < 0.8:
            functions = FUNCTIONS if self.random.random() < self.active else ""
            found = random_type(self.random, functions)
            own = len(found.rules) if isinstance(found, Grammar) else 0
            depth = typed_oracle.depth_for(self.pattern, MOST_TYPES if self.active else own)
            try:
                number = len(typed_oracle.largest(found, labels, [], depth))
            except TooLargeError:
                continue
            if number <= MOST_TREES:
                return found
        return None

    def brought(self, shelf: Shelf, name: str) -> Tree | None:
        """Return a random tree that a function may bring; None if there is none."""
        type_ = shelf.types.get(name)
        if isinstance(type_, Grammar):
            return random_tree(type_, self.random, 3)
        tree = self.making.tree(3, 0.1)
        if tree[0].startswith("!") and (name in shelf.types or name in shelf.once):
            return None
        if type_ is None:
            return tree
        return (self.random.choice(sorted(type_)), tree[1]) if type_ else None

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
        for _ in range(2):
            self.update()
            self.compare_future()
        return self.counts

    def compare(self, when: str) -> None:
        for each in self.shelves:
            where = f"{when}: {self.where}, {each}"
            sure = oracle.sure(self.pattern, each.tree)
            ranges = self.possible(each)
            possible = set(ranges)
            value = 1 if sure else 0.5 if possible else 0
            view = each.view
            self.counts["instances"] += 1
            self.counts["with active types"] += each.is_active
            assert said(view.sure) == sure, where
            if not view.is_exact:
                assert each.is_active, where
                assert said(view.possible()) >= possible - sure, where
                assert view.value >= value, where
                self.counts["upper bounds"] += 1
                continue
            self.counts["exact with active types"] += each.is_active
            assert view.value == value, f"{where}: {view.value}, not {value}"
            assert said(view.possible()) == possible - sure, where
            assert said(view.minimal) == typed_oracle.minimal(ranges), where
            open_ones = {each: ranges[each] for each in possible - sure}
            assert said(view.possible("general")) == typed_oracle.minimal(open_ones), where
            assert said(view.possible("specific")) == typed_oracle.maximal(open_ones), where
            unranged = {each: set[tuple[str, ...]]() for each in ranges}
            is_ranged = typed_oracle.minimal(unranged) != typed_oracle.minimal(ranges)
            self.counts["kept by ranges"] += is_ranged
            bound = view.maintained.possible.get(each.document.nodes.root, set())
            self.counts["with types or once"] += not each.is_plain
            self.counts["narrowed by types or once"] += len(bound) > len(sure | possible)
            self.counts[f"value {value}"] += 1

    def possible(self, shelf: Shelf) -> Ranges:
        """Return what the oracle finds possible; by both ways where there are, with few maps."""
        live, tree = shelf.live, shelf.tree
        found = typed_oracle.possible(self.pattern, tree, live, shelf.once, shelf.types)
        if shelf.is_plain and not self.making.is_bushy:
            assert set(found) == oracle.possible(self.pattern, tree, live), f"{self.where}, {shelf}"
        return found

    def compare_useful(self) -> None:
        """Compare usefulness where updates can be gone through; first by small sets of them."""
        for each in self.shelves:
            found = each.view.useful()
            calls = {name for name in each.live if f"!{name}" in shown(each.tree)}
            if not each.is_plain:
                self.try_useless(each, calls - found)
                continue
            pool = update_pool(self.pattern, oracle.labels_in(each.tree))
            if len(pool) * len(calls) > MOST_UPDATES:
                self.counts["too large for usefulness"] += 1
                continue
            for name in calls:
                expected = is_useful(self.pattern, each.tree, calls, name, 2)
                for size in (3, 4):
                    if expected == (name in found):
                        break
                    expected = is_useful(self.pattern, each.tree, calls, name, size)
                where = f"{name} in {self.where}, {shown(each.tree)}: {sorted(found)}"
                assert expected == (name in found), where
                self.counts["useful" if expected else "useless"] += 1

    def try_useless(self, shelf: Shelf, useless: set[str]) -> None:
        """Try updates that types allow: what is called useless makes no difference."""
        pairs = [
            (name, tree)
            for name in sorted(shelf.live)
            for tree in self.pool(shelf, name)
            if useless and f"!{name}" in shown(shelf.tree)
        ]
        for name in useless:
            for chosen in allowed_sets(pairs, shelf.once, 2):
                where = f"{name} in {self.where}, {shelf}: {chosen}"
                assert not makes_a_difference(self.pattern, shelf.tree, chosen, name), where
                self.counts["updates without use"] += any(each == name for each, _ in chosen)
            self.counts["useless with types or once"] += 1

    def pool(self, shelf: Shelf, name: str) -> list[Tree]:
        """Return some trees that a function may bring."""
        type_ = shelf.types.get(name)
        found = [random_tree(type_, self.random, 3) for _ in range(4)]
        if not isinstance(type_, Grammar):
            wanted = update_pool(self.pattern, oracle.labels_in(shelf.tree))
            for label, below in self.random.sample(wanted, min(6, len(wanted))):
                if type_ is None:
                    found.append((label, below))
                elif type_:
                    found.append((label if label in type_ else min(type_), below))
                    found.append((min(type_), [(label, below)]))
        return [each for each in found if each is not None]

    def update(self) -> None:
        batch = WriteBatch()
        for each in self.shelves:
            updates = []
            for name in self.random.sample(FUNCTIONS, self.random.randint(0, 2)):
                tree = self.brought(each, name)
                if name in each.ended or tree is None:
                    continue
                each.tree = oracle.added(each.tree, name, [tree])
                updates.append((name, shown(tree)))
                if name in each.once:
                    each.ended.add(name)
            ends = [name for name in sorted(each.live) if self.random.random() < 0.15]
            each.ended |= set(ends)
            each.document.stage_updates(updates, ends, batch)
        self.write(batch)

    def collect(self) -> None:
        """Collect garbage, or close what is useless: views say the same, also in the future."""
        before = [(each.view.value, each.view.sure, each.view.possible()) for each in self.shelves]
        swept = [self.random.random() < 0.7 for _ in self.shelves]
        batch = WriteBatch()
        for each, is_swept in zip(self.shelves, swept, strict=True):
            if is_swept:
                self.counts["nodes dropped"] += each.document.stage_garbage_collection(
                    batch
                ).dropped
                self.counts["nodes kept"] += len(each.document.nodes)
        self.write(batch)
        for each, is_swept, told in zip(self.shelves, swept, before, strict=True):
            where = f"{self.where}, {each} left as {each.document.terms()}"
            if not is_swept:
                useless = sorted(each.document.live - each.view.useful())
                each.document.close(useless)
                self.counts["closed"] += len(useless)
                where = f"{self.where}, {each} without {useless}"
            value, sure, possible = told
            assert each.view.value == value, where
            assert each.view.sure == sure, where
            assert each.view.possible() == possible, where

    def compare_future(self) -> None:
        for each in self.shelves:
            where = f"{self.where}, {each} collected to {each.document.terms()}"
            sure = oracle.sure(self.pattern, each.tree)
            assert said(each.view.sure) == sure, where
            value = 1 if sure else 0.5 if self.possible(each) else 0
            assert each.view.value >= value, where
            assert each.view.value == value or not each.view.is_exact, where
            self.counts["futures"] += 1

    def write(self, batch: WriteBatch) -> None:
        touched = self.shelves[0].document.collection.write(batch)
        for each in self.shelves:
            each.document.note_written(touched)


def opened(
    tree: Tree, once: set[str], types: dict[str, Type], collection: Collection
) -> ActiveDocument:
    known = {name: as_package(type_) for name, type_ in types.items() if type_ is not None}
    return ActiveDocument.from_terms(
        shown(tree), collection=collection, once=once, types=known, unknown="create"
    )


def said(answers: frozenset[tuple[object, ...]]) -> Answers:
    return {tuple(map(str, each)) for each in answers}
