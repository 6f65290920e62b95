"""Why an answer holds, or what it waits for."""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from corollary.documents.matching import tables_of
from corollary.documents.scenarios import Searching
from corollary.documents.unknown import Answer, read
from corollary.documents.useful import streams

if TYPE_CHECKING:
    from corollary.documents.view import View

LIMIT = 10_000
"""So many ways are looked at."""


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
    document, shape = view.document, view.maintained.shape
    if answer in view.sure:
        sure = tables_of(document.nodes, shape)
        searching = Searching(document.nodes, sure, sure, is_full=True)
        for root, each in searching.of_query(shape):
            if tuple(map(read, each.answer(root))) == answer:
                return Explanation(
                    answer, 1, tuple(_path(view, number) for _, number in each.nodes)
                )
        return Explanation(answer, 1)
    if answer not in view.possible():
        return Explanation(answer, 0)
    possible = tables_of(document.nodes, shape, streams(document))
    searching = Searching(document.nodes, possible, tables_of(document.nodes, shape))
    ways = {
        each.functions
        for root, each in islice(searching.of_query(shape), LIMIT)
        if tuple(map(read, each.answer(root))) == answer
    }
    least = [each for each in ways if not any(other < each for other in ways)]
    return Explanation(answer, 0.5, waits_for=tuple(sorted(least, key=sorted)))


def _path(view: "View", number: int) -> str:
    nodes = view.document.nodes
    labels = []
    while number in nodes.parent:
        labels.append(nodes.label[number])
        number = nodes.parent[number]
    return "/".join(reversed(labels))
