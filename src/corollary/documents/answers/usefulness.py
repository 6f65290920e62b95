"""Which functions can still change an answer: Definition 6, decided exactly (Theorem 6, corrected).

f is useful iff, for some scenario with f and some lengths, the answers differ with and without what
f brings. For each pair (c, g) of the scenario g brings canon(c, lengths):

* a node without a label gets the label of its class, or a fresh one;
* each `//` edge within c, and the edge into c if it is `//`, becomes a chain of 0 … w + 1 fresh
  nodes, where w, the star length, is the greatest number of `*` on a path of `/` edges.

The same tree goes to every call of g. The printed theorem brings sub(c) without the chain on top,
and lets every call of g bring a tree of its own; both are wrong (cases `thm6_needs_slashslash` and
`thm6_shared_name`). For Boolean queries only scenarios that contain no other one are tested.

Fresh labels are no numbers. So with comparisons only what a function does alone is tested, and one
that matters only beside others is not proved useless.

A scenario with f alone needs no test: what it brings completes a match that is not there without
it. Scenarios and lengths are exponential in the query (Theorem 5: NP-complete), so there are
limits; beyond them a function is not proved useless, and counts as useful. Useless is for ever.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from corollary.data_class import dataclass
from corollary.documents.answers.canonical import Canonical, Overlay, canonical, star_length
from corollary.documents.answers.matching import answers_at, match_added, match_tables
from corollary.documents.answers.question import Question
from corollary.documents.answers.scenarios import Scenario, ScenarioSearch
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import NO_ROWS, Tuples
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Node, Root
from corollary.engines.budget import WorkBudget, WorkLimitError, WorkUsed

ALONE_MAX_FUNCTIONS = 8
"""Of this number of functions it is tried first what they can do alone, without scenarios."""


@dataclass(frozen=True, slots=True)
class Usefulness:
    """The functions that can still change an answer.

    Attributes:
        functions: those that are useful, or not proved useless.
        unproved: those of them of which the search has not shown that they are useful.
        reason: why the search did not go on, if it did not.
        work: that the search took; None if none was made.
    """

    functions: frozenset[str]
    unproved: frozenset[str] = frozenset()
    reason: str = ""
    work: WorkUsed | None = None

    @property
    def is_exact(self) -> bool:
        """Whether all of the functions are useful."""
        return not self.unproved


def useful(question: Question, limits: SearchLimits) -> Usefulness:
    """Return the functions that are useful, or not proved useless within the limits."""
    candidates = question.candidates
    if not candidates:
        return Usefulness(candidates)
    budget = limits.budget()
    tests = _Tests(question, budget)
    found, open_ = set[str](), set(candidates)
    try:
        for name in sorted(candidates)[:ALONE_MAX_FUNCTIONS]:
            if tests.is_enough(name):
                found.add(name)
                open_.discard(name)
        if open_ and (question.shape.has_conditions or question.shape.has_times):
            reason = "what functions bring together is not tested with comparisons"
            return Usefulness(candidates, frozenset(open_), reason, budget.used)
        if open_:
            tests.find_scenarios()
        for name in sorted(open_):
            if tests.is_useful(name):
                found.add(name)
            open_.discard(name)
    except WorkLimitError as error:
        reason = f"the search ended after {error}"
        return Usefulness(frozenset(found | open_), frozenset(open_), reason, budget.used)
    return Usefulness(frozenset(found), work=budget.used)


class _Trie(dict[int, "_Trie"]):
    """Sets of numbers, each a path of ascending numbers from the root to a node that ends it."""

    is_end = False

    def add(self, numbers: Sequence[int]) -> None:
        """Add a set."""
        node = self
        for each in numbers:
            node = node.setdefault(each, _Trie())
        node.is_end = True

    def has_subset(self, numbers: Sequence[int]) -> bool:
        """Whether one of the sets is within another set."""
        return self.is_end or any(
            each in self and self[each].has_subset(numbers[at:])
            for at, each in enumerate(numbers, 1)
        )


def _minimal(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios that contain no other one."""
    ordered = sorted(scenarios, key=lambda each: len(each.contributions))
    frequencies = Counter(member for each in ordered for member in each.contributions)
    numbers = {member: at for at, (member, _) in enumerate(reversed(frequencies.most_common()))}
    found, smaller = [], _Trie()
    for each in ordered:
        path = sorted(numbers[member] for member in each.contributions)
        if not smaller.has_subset(path):
            smaller.add(path)
            found.append(each)
    return found


class _Tests:
    """The tests of the functions of one question, within one budget."""

    def __init__(self, question: Question, budget: WorkBudget) -> None:
        self._question = question
        self._budget = budget
        self._stars = star_length(question.shape)
        self._by_function: dict[str, list[tuple[Root, Scenario]]] = {}

    def is_enough(self, name: str) -> bool:
        """Whether a function alone makes an answer possible that is not sure: it is useful."""

        def results(node: Node, function: str) -> Tuples:
            return self._question.stream_results(node, function) if function == name else NO_ROWS

        question = self._question
        tables = match_tables(question.nodes, question.shape, results, budget=self._budget)
        found = answers_at(question.shape, tables.here[question.nodes.root])
        known = frozenset(question.sure_rows)
        if question.shape.is_windowed:  # without it, some may come with time
            tables = match_tables(question.nodes, question.shape, budget=self._budget)
            known |= answers_at(question.shape, tables.here[question.nodes.root])
        return not found <= known

    def find_scenarios(self) -> None:
        """Find the scenarios, those with few functions first."""
        question = self._question
        search = ScenarioSearch.on(question, self._budget)
        self._sure = search.sure
        found = [
            (root, each)
            for root in question.shape.roots
            for each in search.of_root(root)
            if each.contributions
        ]
        if question.shape.is_boolean and not any(each.labels for _, each in found):
            least = {id(each) for each in _minimal(each for _, each in found)}
            found = [pair for pair in found if id(pair[1]) in least]
        for pair in sorted(found, key=lambda pair: len(pair[1].functions)):
            for name in pair[1].functions:
                self._by_function.setdefault(name, []).append(pair)

    def is_useful(self, name: str) -> bool:
        """Whether a function is useful."""
        question = self._question
        for root, scenario in self._by_function.get(name, ()):
            # Alone it completes a match that is not there without it: no test is needed.
            if scenario.functions == {name} and (
                question.shape.is_boolean or scenario.answer(root) not in question.sure_rows
            ):
                return True
            for lengths in _lengths(scenario, self._stars):
                if self._differ(name, canonical(scenario, lengths, question.nodes)):
                    return True
        return False

    def _differ(self, name: str, trees: Canonical) -> bool:
        """Whether the answers differ with and without what a function brings."""
        others = {each: rows for each, rows in trees.items() if each != name}
        without = self._answers(others)
        if self._question.shape.is_boolean:
            return not without
        return self._answers(trees) != without

    def _answers(self, trees: Canonical) -> Tuples:
        """Return the answers if functions bring trees."""
        overlay = Overlay(self._question.nodes, trees)
        self._budget.spend(1 + len(overlay.grown))
        grown = overlay.grown | {overlay.root}
        return match_added(overlay, self._question.shape, self._sure, grown)


def _lengths(scenario: Scenario, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield the lengths of all chains: all longest, all empty, then every other combination.

    The first two decide most instances.
    """
    nodes = [node for pattern, _ in scenario.contributions for node in pattern.nodes()]
    number = sum(node.axis is Axis.DESCENDANT for node in nodes)
    first = (longest + 1,) * number, (0,) * number
    yield from dict.fromkeys(first)
    for each in product(range(longest + 2), repeat=number):
        if each not in first:
            yield each
