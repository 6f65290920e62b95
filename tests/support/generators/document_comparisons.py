"""Random comparisons on random documents, judged by `tests/oracles/document_comparisons.py`."""

from __future__ import annotations

import random
from collections import Counter

from corollary.documents.collection import Collection
from corollary.documents.document import ActiveDocument
from oracles import document_comparisons as oracle
from oracles import documents as trees
from oracles.document_text import shown
from oracles.documents import Tree

FUNCTIONS = "fg"


class ComparisonRound:
    """One query with comparisons, and documents that it is asked of, through updates and ends."""

    def __init__(self, seed: int, documents: int) -> None:
        self.random = random.Random(seed)
        self.letters = "abc"[: self.random.choice((1, 2, 2, 3))]
        self.comparisons = [self.comparison() for _ in range(self.random.randint(1, 3))]
        branches = "".join(f"[{each}/*${each}]" for each in self.letters)
        written = " and ".join(map(self.shown, self.comparisons))
        self.query = f"/r{branches} where {written}"
        self.documents = documents

    def comparison(self) -> oracle.Comparison:
        names = self.random.sample(self.letters, self.random.randint(1, min(2, len(self.letters))))
        factors = {name: self.random.choice((1, -1)) for name in names}
        operator = self.random.choice(("<", "<=", "=", "!=", ">", ">="))
        # Between two variables, `=` and `!=` without a number compare labels.
        return factors, self.random.choice((-2, -1, 1, 2)), operator

    @staticmethod
    def shown(comparison: oracle.Comparison) -> str:
        factors, constant, operator = comparison
        terms = [f"{'+' if each > 0 else '-'} ${name}" for name, each in factors.items()]
        return f"{constant} {' '.join(terms)} {operator} 0".replace("-1 ", "0 - 1 ").replace(
            "-2 ", "0 - 2 "
        )

    def tree(self) -> Tree:
        def leaf() -> Tree:
            if self.random.random() < 0.2:
                return f"!{self.random.choice(FUNCTIONS)}", []
            return self.random.choice(("-2", "-1", "0", "1", "2", "2.0", "x")), []

        if self.random.random() < 0.25:
            return f"!{self.random.choice(FUNCTIONS)}", []
        return self.random.choice(self.letters), [leaf() for _ in range(self.random.randint(0, 2))]

    def run(self) -> Counter[str]:
        counts = Counter[str]()
        collection = Collection()
        for at in range(self.documents):
            tree: Tree = ("r", [self.tree() for _ in range(self.random.randint(1, 4))])
            document = ActiveDocument.from_terms(
                shown(tree), collection=collection, unknown="create"
            )
            view = document.view(self.query)
            live = set(FUNCTIONS)
            for _ in range(3):
                sure, possible = oracle.answers(self.letters, self.comparisons, tree, live)
                where = f"document {at} of {self.query}: {shown(tree)}, live {live}"
                assert {tuple(map(str, each)) for each in view.sure} == sure, where
                assert {tuple(map(str, each)) for each in view.possible()} == possible - sure, where
                counts["instances"] += 1
                counts["sure"] += bool(sure)
                counts["possible"] += bool(possible - sure)
                counts["ruled out"] += not possible
                name = self.random.choice(FUNCTIONS)
                if name not in live:
                    continue
                if self.random.random() < 0.3:
                    document.end(name)
                    live.discard(name)
                else:
                    new = self.tree()
                    document.add(name, shown(new))
                    tree = trees.added(tree, name, [new])
        return counts


OPERATORS = ("<", "<=", ">", ">=", "<=", "=")


class TimesRound:
    """One query on times, and a document that grows; a copy of it is collected after each step."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.letters = self.random.choice(("a", "ab", "ab"))
        self.comparisons = [self.comparison() for _ in range(self.random.choice((1, 2, 2)))]
        path = "".join(f"[{each} arrived ${each}]" for each in self.letters)
        where = " and ".join(map(_shown, self.comparisons))
        self.query = f"/r{path} where {where}"
        self.is_windowed = any(oracle.NOW in each[0] for each in self.comparisons)

    def comparison(self) -> oracle.Comparison:
        names = self.random.sample((*self.letters, oracle.NOW), 2)
        constant = self.random.randint(-3, 3)
        return {names[0]: 1, names[1]: -1}, constant, self.random.choice(OPERATORS)

    def run(self, steps: int) -> Counter[str]:
        counts = Counter[str]()
        documents = [ActiveDocument.from_terms("r[!f]") for _ in range(2)]
        views = [each.view(self.query) for each in documents]
        arrived: list[tuple[str, int]] = []
        clock, is_open = 0, True
        reported = set()
        for step in range(steps):
            sure, possible = oracle.answers_in_time(
                self.letters, self.comparisons, arrived, clock, is_open
            )
            where = f"{self.query} at {clock} with {arrived}"
            found = [{tuple(map(str, each)) for each in view.sure} for view in views]
            maybe = {tuple(map(str, each)) for each in views[0].possible()}
            assert found[0] == sure, where
            assert maybe == possible - sure, where
            assert views[0].value == (1 if sure else 0.5 if possible else 0), where
            reported = sure if self.is_windowed else reported | sure
            assert found[1] == reported, f"collected, {where}"
            counts["instances"] += 1
            counts["sure"] += len(sure)
            counts["possible"] += len(possible - sure)
            documents[1].gc()
            clock += self.random.randint(0, 3)
            brought = self.random.choice(self.letters) if self.random.random() < 0.7 else None
            for each in documents:
                is_called = "f" in each.live
                each.apply([("f", brought)] if brought and is_called else [], at=clock)
            arrived += [(brought, clock)] if brought and is_open else []
            if step == steps - 3:
                is_open = False
                for each in documents:
                    each.apply((), ["f"])
        return counts


def _shown(comparison: oracle.Comparison) -> str:
    factors, constant, operator = comparison
    (one, _), (other, _) = factors.items()
    names = [each if each == oracle.NOW else f"${each}" for each in (one, other)]
    sign = "+" if constant >= 0 else "-"
    return f"{names[0]} - {names[1]} {sign} {abs(constant)} {operator} 0"
