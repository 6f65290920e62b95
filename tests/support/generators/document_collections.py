"""Random queries over several documents, which streams write into, and which come and go."""

from __future__ import annotations

import random
from collections import Counter

from corollary.documents.active_collection import ActiveCollection
from oracles import document_collections as oracle
from oracles.document_collections import Part
from oracles.document_text import always_bound, shown, variables
from oracles.documents import Tree, added
from support.generators.documents import FUNCTIONS, Making

NAMES = "abc"


class CollectionRound:
    """One query over some documents; what it answers after each change is what the oracle says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.making = Making(self.random)
        self.parts = [self.part() for _ in range(self.random.choice((1, 2, 2)))]
        bound = set().union(*(always_bound(part.root) for part in self.parts))
        bound |= {part.variable for part in self.parts if part.variable}
        self.outputs = sorted(bound) if self.random.random() < 0.8 else []
        shown_parts = " and ".join(part.shown() for part in self.parts)
        listed = ", ".join(f"${name}" for name in self.outputs) or "()"
        self.query = f"{shown_parts} return {listed}"
        self.named = {part.document for part in self.parts if part.document}

    def part(self) -> Part:
        root = self.making.query().root
        for _ in range(20):  # small ones: the oracle tries all maps
            if len(variables(root)) <= 2:
                break
            root = self.making.query().root
        axis = self.random.choice(("/", "/", "//"))
        if self.random.random() < 0.3:
            return Part(root, axis, None, self.random.choice(("d", None)))
        return Part(root, axis, self.random.choice(NAMES[:2]))

    def run(self, steps: int) -> Counter[str]:
        counts = Counter[str]()
        trees = {name: self.making.document() for name in NAMES[: self.random.choice((2, 3))]}
        documents = ActiveCollection(
            {name: shown(tree) for name, tree in trees.items()}, unknown="create", late="ignore"
        )
        view = documents.view(self.query)
        ended: set[str] = set()
        for _ in range(steps):
            sure = oracle.sure(self.parts, self.outputs, trees)
            live = {f"{name}:{each}" for name in trees for each in FUNCTIONS} - ended
            possible = oracle.possible(self.parts, self.outputs, trees, live)
            where = f"{self.query} on { ({name: shown(each) for name, each in trees.items()}) }"
            assert {tuple(map(str, each)) for each in view.sure} == sure, where
            assert {tuple(map(str, each)) for each in view.possible()} == possible - sure, where
            counts["instances"] += 1
            counts["answers"] += len(sure)
            counts["possible"] += len(possible - sure)
            self.step(documents, trees, ended, counts)
        self.check_future(documents, trees, ended, counts)
        return counts

    def step(
        self,
        documents: ActiveCollection,
        trees: dict[str, Tree],
        ended: set[str],
        counts: Counter[str],
    ) -> None:
        chance = self.random.random()
        spare = [name for name in NAMES if name not in trees]
        idle = [name for name in trees if name not in self.named]
        if chance < 0.15 and spare:
            trees[spare[0]] = self.making.document()
            documents.add_document(spare[0], shown(trees[spare[0]]))
            counts["added documents"] += 1
        elif chance < 0.3 and idle and len(trees) > 1:
            del trees[idle[0]]
            documents.remove_document(idle[0])
            counts["removed documents"] += 1
        else:
            name = self.random.choice([*trees])
            function = self.random.choice(FUNCTIONS)
            if f"{name}:{function}" in ended:
                return
            if chance > 0.9:
                documents.end(f"{name}:{function}")
                ended.add(f"{name}:{function}")
                return
            self.bring(documents, trees, name, function)

    def bring(
        self, documents: ActiveCollection, trees: dict[str, Tree], name: str, function: str
    ) -> None:
        tree = self.making.tree(2, 0.2)
        documents.add(f"{name}:{function}", shown(tree))
        trees[name] = added(trees[name], function, [tree])

    def check_future(
        self,
        documents: ActiveCollection,
        trees: dict[str, Tree],
        ended: set[str],
        counts: Counter[str],
    ) -> None:
        """Collect garbage, then bring more: answers are as if nothing had been collected."""
        view = documents.view(self.query)
        useful = view.useful()
        documents.gc()
        for _ in range(3):
            name, function = self.random.choice([*trees]), self.random.choice(FUNCTIONS)
            if f"{name}:{function}" in ended:
                continue
            before = oracle.sure(self.parts, self.outputs, trees)
            static = "x", [("a", []), ("b", []), ("c", [])]
            tree = self.random.choice((static, *static[1]))
            if f"{name}:{function}" in documents.functions:
                documents.add(f"{name}:{function}", shown(tree))
            trees[name] = added(trees[name], function, [tree])
            sure = oracle.sure(self.parts, self.outputs, trees)
            assert {tuple(map(str, each)) for each in view.sure} == sure, self.query
            if f"{name}:{function}" not in useful:
                assert before == sure, (self.query, name, function)
                counts["useless"] += 1
            counts["futures"] += 1
