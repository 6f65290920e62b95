"""Why an answer holds, or what it waits for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corollary.documents.matching import tables_of
from corollary.documents.nodes import Nodes
from corollary.documents.scenarios import Searching, TooManyError
from corollary.documents.unknown import Answer, read, stored
from corollary.documents.useful import streams
from corollary.documents.witness import Witnesses

if TYPE_CHECKING:
    from corollary.documents.view import View

LIMIT = 10_000
"""So many ways are looked at; beyond, all functions that may matter are named."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is behind an answer.

    Attributes:
        answer: the answer.
        value: 1 if it is sure, 0.5 if it is possible, 0 otherwise.
        nodes: of a sure answer, the paths of the nodes that it matches, as `r/a/b`.
        waits_for: of a possible answer, the least sets of functions that have to bring something.
    """

    answer: Answer
    value: float
    nodes: tuple[str, ...] = ()
    waits_for: tuple[frozenset[str], ...] = ()

    def __str__(self) -> str:
        shown = f"({', '.join(map(str, self.answer))})"
        if self.value == 1:
            return f"{shown} is sure: {', '.join(self.nodes) or 'it was reported'}"
        if self.value == 0:
            return f"{shown} is no answer, and cannot become one"
        ways = " or ".join(
            " and ".join(f"!{name}" for name in sorted(each)) for each in self.waits_for
        )
        return f"{shown} waits for {ways}"


def explain(view: "View", answer: Answer) -> Explanation:
    """Return why an answer of a view is sure, or what it waits for."""
    nodes, shape = view.document.nodes, view.maintained.shape
    sure = tables_of(nodes, shape)
    if answer in view.sure:
        symbols = tuple(stored(str(label)) for label in answer)
        for root in shape.roots:
            found = Witnesses(nodes, sure).of_root(root, symbols)
            if found is not None:
                return Explanation(answer, 1, tuple(_path(nodes, each) for each in found))
        return Explanation(answer, 1)
    if answer not in view.possible():
        return Explanation(answer, 0)
    possible = tables_of(nodes, shape, streams(view.document))
    searching = Searching(nodes, possible, sure, LIMIT)
    try:
        ways = {
            each.functions
            for root in shape.roots
            for each in searching.of_root(root)
            if tuple(map(read, each.answer(root))) == answer
        }
    except TooManyError:
        ways = {view.candidates}
    least = [each for each in ways if not any(other < each for other in ways)]
    return Explanation(answer, 0.5, waits_for=tuple(sorted(least, key=sorted)))


def _path(nodes: Nodes, number: int) -> str:
    labels = []
    while number in nodes.parent:
        labels.append(nodes.label[number])
        number = nodes.parent[number]
    return "/".join(reversed(labels))
