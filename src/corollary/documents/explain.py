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
        same_key: of a possible answer, a sure one with its key: so it does not come, by promise.
    """

    answer: Answer
    value: float
    nodes: tuple[str, ...] = ()
    waits_for: tuple[frozenset[str], ...] = ()
    same_key: Answer | None = None

    def __str__(self) -> str:
        shown = _shown(self.answer)
        if self.value == 1:
            return f"{shown} is sure: {', '.join(self.nodes) or 'it was reported'}"
        if self.value == 0:
            return f"{shown} is no answer, and cannot become one"
        if self.same_key is not None:
            return f"{shown} is not waited for: {_shown(self.same_key)} has its key"
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
    waits_for = tuple(sorted(least, key=sorted))
    return Explanation(answer, 0.5, waits_for=waits_for, same_key=_same_key(view, answer))


def _same_key(view: "View", answer: Answer) -> Answer | None:
    """Return a sure answer that has the key of another one, if there is a key."""
    places = view.maintained.shape.key
    key = [answer[at] for at in places]
    same = [each for each in view.sure if [each[at] for at in places] == key]
    return min(same, key=str) if places and same else None


def _shown(answer: Answer) -> str:
    return f"({', '.join(map(str, answer))})"


def _path(nodes: Nodes, number: int) -> str:
    labels = []
    while number in nodes.parent:
        labels.append(nodes.label[number])
        number = nodes.parent[number]
    return "/".join(reversed(labels))
