"""Random retractions: a document is as if what was retracted had never come, by the oracle."""

from __future__ import annotations

import random
from collections import Counter

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from oracles import documents as oracle
from oracles.document_text import shown, shown_query
from oracles.documents import Tree
from support.generators.documents import FUNCTIONS, Making


class RetractionRound:
    """One query, and documents whose updates are made, retracted and replaced."""

    def __init__(self, seed: int, documents: int) -> None:
        self.random = random.Random(seed)
        self.making = Making(self.random)
        self.pattern = self.making.query()
        self.documents = documents

    def run(self) -> Counter[str]:
        counts = Counter[str]()
        collection = Collection()
        for _ in range(self.documents):
            start = self.making.document()
            document = ActiveDocument.from_terms(
                shown(start), collection=collection, unknown="create"
            )
            view = document.view(shown_query(self.pattern))
            log: list[tuple[str, Tree]] = []
            for _ in range(6):
                before = view.value
                self.step(document, start, log, counts)
                tree = replayed(start, log)
                where = f"{shown_query(self.pattern)} on {shown(start)} after {log}"
                sure = oracle.sure(self.pattern, tree)
                possible = oracle.possible(self.pattern, tree, set(FUNCTIONS))
                assert {tuple(map(str, each)) for each in view.sure} == sure, where
                assert {tuple(map(str, each)) for each in view.possible()} == possible - sure, where
                assert before > 0 or view.value == 0, where  # what is false stays false
                counts["instances"] += 1
                counts["fell"] += view.value < before
        return counts

    def step(
        self,
        document: ActiveDocument,
        start: Tree,
        log: list[tuple[str, Tree]],
        counts: Counter[str],
    ) -> None:
        """Make an update, or retract or replace an earlier one that is in the document still."""
        name, tree = self.random.choice(FUNCTIONS), self.making.tree(2, 0.2)
        gone = [each for each in log if self.random.random() < 0.5]
        if gone and self.random.random() < 0.6:
            old = gone[0]
            places = [at for at, each in enumerate(log) if each == old]
            left = log[: places[-1]] + log[places[-1] + 1 :]
            if shown(replayed(start, left)) != shown(replayed(start, log)):
                log[:] = left
                if self.random.random() < 0.5:
                    document.retract(old[0], shown(old[1]))
                    counts["retracted"] += 1
                else:
                    document.replace(old[0], shown(old[1]), shown(tree))
                    log.append((old[0], tree))
                    counts["replaced"] += 1
                return
        document.add(name, shown(tree))
        log.append((name, tree))


def replayed(start: Tree, log: list[tuple[str, Tree]]) -> Tree:
    """Return a document after some updates."""
    for name, tree in log:
        start = oracle.added(start, name, [tree])
    return start
