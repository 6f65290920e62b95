"""Which functions can still change an answer: Definition 6, decided exactly (Theorem 6, corrected).

f is useful iff, for some scenario with f and some lengths, the answers differ with and without what
f brings. For each pair (c, g) of the scenario g brings canon(c, lengths):

* a node without a label gets the label of its class, or a fresh one;
* each `//` edge within c, and the edge into c if it is `//`, becomes a chain of 0 … w + 1 fresh
  nodes, where w, the star length, is the greatest number of `*` on a path of `/` edges.

The same tree goes to every call of g. The printed theorem brings sub(c) without the chain on top,
and lets every call of g bring a tree of its own; both are wrong (cases `thm6_needs_slashslash` and
`thm6_shared_name`). For Boolean queries only scenarios that contain no other one are tested.

Scenarios and lengths are exponential in the query (Theorem 5: NP-complete), so there is a limit;
beyond it a function is not proved useless, and counts as useful. Useless is for ever.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from corollary.documents.brought import brought
from corollary.documents.canonical import Canonical, canonical, edges_of, star_length
from corollary.documents.function import State
from corollary.documents.matching import Brings, answers, bring_nothing, tables_of
from corollary.documents.overlay import Overlay
from corollary.documents.satisfiable import can_bring
from corollary.documents.scenarios import Scenario, Searching, TooManyError
from corollary.documents.shape import Node, Shape
from corollary.documents.tuples import NOTHING, Tuples

if TYPE_CHECKING:
    from corollary.documents.document import ActiveDocument
    from corollary.documents.view import View

LIMIT = 10_000
"""Tests for one function, and scenarios in all."""


def useful(view: "View", *, exact: bool = True, limit: int = LIMIT) -> frozenset[str]:
    """Return the functions that are useful, or not proved useless within the limit."""
    document, shape = view.document, view.maintained.shape
    open_ones = view.candidates
    if not open_ones or not exact or view.value == 0:
        return open_ones if view.value else frozenset()
    if shape.is_boolean and view.value == 1:
        return frozenset()
    nodes = document.nodes
    possible = tables_of(nodes, shape, streams(document))
    searching = Searching(nodes, possible, tables_of(nodes, shape), limit)
    try:
        scenarios = [each for each in searching.of_query(shape) if each.brought]
    except TooManyError:
        return open_ones
    if shape.is_boolean and not any(each.labels for each in scenarios):
        scenarios = _least(scenarios)
    return frozenset(
        name for name in open_ones if _is_useful(name, document, shape, scenarios, limit)
    )


def streams(document: "ActiveDocument") -> Brings:
    """Return what the live functions of a document can bring, taken as streams."""

    def brings(node: Node, name: str) -> Tuples:
        function = document.functions[name]
        is_open = function.state is State.LIVE and can_bring(function.whole, node)
        return brought(node) if is_open else NOTHING

    return brings


def _least(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios that contain no other one."""
    found: dict[frozenset[object], Scenario] = {}
    for each in sorted(scenarios, key=lambda each: len(each.brought)):
        if not any(other <= each.brought for other in found):
            found[frozenset(each.brought)] = each
    return list(found.values())


def _is_useful(
    name: str, document: "ActiveDocument", shape: Shape, scenarios: list[Scenario], limit: int
) -> bool:
    tests = 0
    for scenario in scenarios:
        if name not in scenario.functions:
            continue
        if shape.is_boolean and scenario.functions == {name}:
            return True
        for lengths in _lengths(scenario, star_length(shape)):
            tests += 1
            if tests > limit:
                return True
            trees = canonical(scenario, lengths, document.nodes)
            if _differ(name, trees, document, shape):
                return True
    return False


def _lengths(scenario: Scenario, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield the lengths of all chains: all longest, all empty, then every other combination."""
    number = sum(len(edges_of(plain)) for plain, _ in scenario.brought)
    first = (longest + 1,) * number, (0,) * number
    yield from dict.fromkeys(first)
    for each in product(range(longest + 2), repeat=number):
        if each not in first:
            yield each


def _differ(name: str, trees: Canonical, document: "ActiveDocument", shape: Shape) -> bool:
    """Whether the answers differ with and without what a function brings."""
    with_all = Overlay(document.nodes, trees)
    without = Overlay(document.nodes, {each: got for each, got in trees.items() if each != name})
    after = answers(without, shape, bring_nothing)
    if shape.is_boolean:
        return not after
    return answers(with_all, shape, bring_nothing) != after
