"""Random queries and documents."""

from __future__ import annotations

import random

from document_oracle import Pattern, Q, Tree
from document_text import always_bound, variables

LABELS = "abc"
FUNCTIONS = "fg"


class Making:
    """Makes random queries, documents and trees.

    Args:
        chance: where the random numbers come from.
    """

    def __init__(self, chance: random.Random) -> None:
        self.random = chance

    def document(self) -> Tree:
        """Return a document of up to four levels."""
        return "r", [self.tree(3) for _ in range(self.random.randint(1, 3))]

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
        """Return a query: up to four edges or choices, sometimes with outputs and joins."""
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
