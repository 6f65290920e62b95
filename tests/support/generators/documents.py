"""Random queries and documents."""

from __future__ import annotations

import random

from oracles.document_text import always_bound, variables
from oracles.documents import Pattern, Q, Tree

LABELS = "abc"
FUNCTIONS = "fg"
DEPTH = 3
"""Of queries, below the root."""


class Making:
    """Makes random queries, documents and trees.

    Args:
        chance: where the random numbers come from.
        is_bushy: whether queries have many branches, and documents many calls: then one tree has
            to serve several branches, and what functions cannot do shows.
    """

    def __init__(self, chance: random.Random, *, is_bushy: bool = False) -> None:
        self.random = chance
        self.is_bushy = is_bushy

    def document(self) -> Tree:
        """Return a document of up to four levels."""
        depth, calls = (2, 0.5) if self.is_bushy else (3, 0.3)
        return "r", [self.tree(depth, calls) for _ in range(self.random.randint(1, 3))]

    def tree(self, depth: int, calls: float = 0.3) -> Tree:
        """Return a tree, or a call, at most so deep."""
        if self.random.random() < calls:
            return f"!{self.random.choice(FUNCTIONS)}", []
        label = self.random.choice(LABELS)
        if depth <= 1:
            return label, []
        below = self.random.choices((0, 1, 2), (3, 4, 2))[0]
        return label, [self.tree(depth - 1, calls) for _ in range(below)]

    def query(self) -> Pattern:
        """Return a query: up to five edges or choices, sometimes with outputs and joins."""
        self.left = self.random.randint(3, 5) if self.is_bushy else self.random.randint(1, 4)
        self.names = self.random.choice(([], [], ["x"], ["x", "y"], ["x", "x"], ["x", "y", "x"]))
        self.names = list(self.names) + ["x"] * (self.is_bushy and "x" in self.names)
        root = Q(self.random.choice(("r", "r", "*")))
        self.edges(root, DEPTH)
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
            if not (self.is_bushy and depth == DEPTH) and self.random.random() < 0.5:
                break

    def edge(self, depth: int) -> tuple[str, Q]:
        node = Q(self.random.choice((*LABELS, "*")))
        if self.names and self.random.random() < 0.6:
            node.variable = self.names.pop()
            node.label = self.random.choice(("*", "*", "*", node.label))
        if not self.is_bushy or self.random.random() < 0.3:
            self.edges(node, depth)
        child = 3 if self.is_bushy else 2
        return self.random.choices(("/", "//"), (child, 1))[0], node
