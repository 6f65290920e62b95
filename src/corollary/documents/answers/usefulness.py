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

from corollary.documents.answers.canonical import (
    Canonical,
    Overlay,
    canonical,
    edges_of,
    star_length,
)
from corollary.documents.answers.matching import evaluate
from corollary.documents.answers.question import Question
from corollary.documents.answers.scenarios import Scenario, ScenarioSearch
from corollary.documents.errors import SearchLimitError

MAX_TESTS = 10_000
"""Tests for one function, and scenarios in all."""


def useful(question: Question, limit: int = MAX_TESTS) -> frozenset[str]:
    """Return the functions that are useful, or not proved useless within the limit."""
    shape, candidates = question.shape, question.candidates
    if not candidates:
        return candidates
    search = ScenarioSearch.on(question, limit)
    try:
        scenarios = [each for each in search.of_query(shape) if each.contributions]
    except SearchLimitError:
        return candidates
    if shape.is_boolean and not any(each.labels for each in scenarios):
        scenarios = _minimal(scenarios)
    return frozenset(name for name in candidates if _is_useful(name, question, scenarios, limit))


def _minimal(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios that contain no other one."""
    found: dict[frozenset[object], Scenario] = {}
    for each in sorted(scenarios, key=lambda each: len(each.contributions)):
        if not any(other <= each.contributions for other in found):
            found[frozenset(each.contributions)] = each
    return list(found.values())


def _is_useful(name: str, question: Question, scenarios: list[Scenario], limit: int) -> bool:
    tests = 0
    for scenario in scenarios:
        if name not in scenario.functions:
            continue
        # Alone it completes a match that is not there without it: no test is needed.
        if question.shape.is_boolean and scenario.functions == {name}:
            return True
        for lengths in _lengths(scenario, star_length(question.shape)):
            tests += 1
            if tests > limit:
                return True
            if _differ(name, canonical(scenario, lengths, question.nodes), question):
                return True
    return False


def _lengths(scenario: Scenario, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield the lengths of all chains: all longest, all empty, then every other combination.

    The first two decide most instances.
    """
    number = sum(len(edges_of(pattern)) for pattern, _ in scenario.contributions)
    first = (longest + 1,) * number, (0,) * number
    yield from dict.fromkeys(first)
    for each in product(range(longest + 2), repeat=number):
        if each not in first:
            yield each


def _differ(name: str, trees: Canonical, question: Question) -> bool:
    """Whether the answers differ with and without what a function brings."""
    others = {each: rows for each, rows in trees.items() if each != name}
    without = evaluate(Overlay(question.nodes, others), question.shape)
    if question.shape.is_boolean:
        return not without
    return evaluate(Overlay(question.nodes, trees), question.shape) != without
