"""Garbage collection: which nodes a document has to keep so that no future answer is lost.

Relevant nodes, as the rules find them (`rel`), take part in an answer that is not sure yet. Beside
them stay, for each branch without columns that is surely matched below a relevant node, the nodes
of one sure match; and everything above what stays. Sure answers are reported beforehand. Then for
every future w: q(w(I)) = q(I) ∪ q(w(I')), where I' is what is kept.
"""

from collections.abc import Iterator
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.answers.question import Question
from corollary.documents.collection import Storage
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Fork, Group, Node


@dataclass(frozen=True, slots=True)
class Collected:
    """What a garbage collection has left.

    Attributes:
        kept: how many nodes there still are.
        dropped: the number of those that are gone.
        closed: the functions without calls, whose data nobody needs any more.
    """

    kept: int
    dropped: int
    closed: tuple[str, ...]


def collect(question: Question, storage: Storage) -> set[int]:
    """Return the nodes that an open question needs."""
    return _NeededNodes(question, storage).find()


class _NeededNodes:
    def __init__(self, question: Question, storage: Storage) -> None:
        self._nodes = question.nodes
        self._maintained = question.maintained
        self._storage = storage
        self._relations: dict[str, set[int]] = {}

    def find(self) -> set[int]:
        found: set[int] = set()
        for root in self._maintained.shape.roots:
            found.update(self._node(root.node, self._relevant(root.node.number)))
        return found

    def _relation(self, name: str) -> set[int]:
        """Return the nodes of this document in the first column of a relation."""
        if name not in self._relations:
            rows = self._storage.rows(f"{self._maintained.name}_{name}")
            self._relations[name] = {row[0] for row in rows if row[0] in self._nodes.parents}
        return self._relations[name]

    def _relevant(self, number: int) -> set[int]:
        return self._relation(f"rel_{number}")

    def _node(self, node: Node, relevant: set[int]) -> Iterator[int]:
        yield from relevant
        yield from self._group(node.group, relevant)

    def _group(self, group: Group, relevant: set[int]) -> Iterator[int]:
        """Yield what is needed below the nodes where a group is relevant."""
        for branch in group.branches:
            if not branch.columns:
                matched = relevant & self._relation(f"sin_{branch.number}")
                for number in matched:
                    yield from self._witness(branch, number)
            match branch:
                case Node():
                    yield from self._node(branch, self._relevant(branch.number))
                case Fork(alternatives=alternatives):
                    for alternative in alternatives:
                        yield from self._group(alternative, self._relevant(alternative.number))
                case _:
                    assert_never(branch)

    def _witness(self, branch: Node | Fork, number: int) -> Iterator[int]:
        """Yield the nodes of one sure match of a branch without columns, in range of a node."""
        match branch:
            case Node():
                found = self._sure_match(branch, number)
                yield found
                for each in branch.group.branches:
                    yield from self._witness(each, found)
            case Fork(alternatives=alternatives):
                chosen = next(
                    each
                    for each in alternatives
                    if number in self._relation(f"s_{each.number}_{len(each.branches)}")
                )
                for each in chosen.branches:
                    yield from self._witness(each, number)
            case _:
                assert_never(branch)

    def _sure_match(self, node: Node, number: int) -> int:
        """Return a node in range of another one at which a query node surely matches."""
        sure, within = self._relation(f"sure_{node.number}"), self._relation(f"sin_{node.number}")
        while True:
            below = self._nodes.children[number]
            found = next((child for child in below if child in sure), None)
            if found is not None:
                return found
            assert node.axis is Axis.DESCENDANT  # for `/` the match is a child
            number = next(child for child in below if child in within)
