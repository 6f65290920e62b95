"""A second opinion on queries over several documents: each part is matched in its own document.

A part is a pattern that begins at a document, or at any of them. An answer is a choice of matches,
one for each part, which give equal labels to equal variables. Functions are named `document:name`,
and bring all that any part could want, as in `documents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from oracles import documents as oracle
from oracles.document_text import _step
from oracles.documents import Answers, Node, Pattern, Q, Tree


@dataclass
class Part:
    """A pattern below the root of a document (`/`), or anywhere in it (`//`).

    Attributes:
        document: its name; None for any, which `variable` names then.
    """

    root: Q
    axis: str
    document: str | None
    variable: str | None = None

    def shown(self) -> str:
        name = f'doc("{self.document}")' if self.document else "collection()"
        variable = f"${self.variable}" if self.variable else ""
        return f"{name}{variable}{self.axis}{_step(self.root)}"


Match = list[tuple[str, str, bool]]
"""Variables, their labels, and whether a label is known."""


def matches(part: Part, documents: dict[str, Node]) -> Iterator[Match]:
    for name, root in documents.items():
        if part.document not in (None, name):
            continue
        places = [root] if part.axis == "/" else [root, *oracle.descendants(root)]
        for query, place in product(oracle.flat(part.root), places):
            for pairs in oracle.maps(query, place):
                found = [
                    (each.variable, node.label, not node.is_new or each.label != "*")
                    for each, node in pairs
                    if each.variable
                ]
                yield found + ([(part.variable, name, True)] if part.variable else [])


def answers(parts: list[Part], outputs: list[str], documents: dict[str, Node]) -> Answers:
    found: Answers = set()
    for chosen in product(*(list(matches(part, documents)) for part in parts)):
        labels: dict[str, set[str]] = {}
        known: set[str] = set()
        for variable, label, is_known in (each for match in chosen for each in match):
            labels.setdefault(variable, set()).add(label)
            known |= {variable} if is_known else set()
        if all(len(each) == 1 for each in labels.values()):
            found.add(tuple(next(iter(labels[name])) if name in known else "?" for name in outputs))
    return found


def sure(parts: list[Part], outputs: list[str], documents: dict[str, Tree]) -> Answers:
    grown = {name: oracle.grown(tree) for name, tree in documents.items()}
    return answers(parts, outputs, grown)


def possible(
    parts: list[Part], outputs: list[str], documents: dict[str, Tree], live: set[str]
) -> Answers:
    """Return the witnessed tuples, sure ones included."""
    patterns = [Pattern(part.root, []) for part in parts]
    labels = {*documents}.union(*map(oracle.labels_in, documents.values()))
    labels = labels.union(*map(oracle.query_labels, patterns))
    everything = [tree for each in patterns for tree in oracle.wanted(each, labels)]
    grown = {name: oracle.grown(tree) for name, tree in documents.items()}
    for each in live:
        name, _, function = each.partition(":")
        if name in grown:
            oracle.bring(grown[name], function, everything)
    return answers(parts, outputs, grown)
