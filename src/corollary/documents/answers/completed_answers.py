"""Answers on documents with a type: what holds in some completion, and what holds in all of them.

A *completion* is what a document can be in the end: of its type (`types.completions`).

* An answer is possible iff, for a scenario of it, there is a completion in which functions bring
  what the scenario says. Joins become labels: each class of variables whose label is not known gets
  one. Labels that neither the query nor a type mentions are all alike: *strangers*, as in
  `types.grammar_offers`, with the same symbols in rows.
* An answer is sure iff it holds in every completion (`certain`): if it holds already, or if the
  type requires what it waits for.

| document, type         | query    | value                                             |
|------------------------|----------|---------------------------------------------------|
| `r[!f]`, `r[a | b]`    | `/r/a`   | 0.5: `f` may bring a `b`                          |
|                        | `/r[a][b]` | 0                                               |
|                        | `/r[a or b]` | 1: one of them comes in every completion      |

Both are NP-hard. Beyond the limits what is possible is what the rules say, without the type, and
what is sure is what holds already: bounds on the safe side.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from corollary.documents.answers import matching
from corollary.documents.answers.certain import Certainty
from corollary.documents.answers.question import Question
from corollary.documents.answers.scenarios import Scenario, ScenarioSearch
from corollary.documents.answers.search_budget import SearchBudget, SearchLimits
from corollary.documents.answers.single_answer import labels_that_matter
from corollary.documents.answers.unknown import (
    UNKNOWN,
    Answer,
    EncodedRow,
    Tuples,
    Unknown,
    decode_label,
    decode_row,
    encode_label,
    encode_one_of,
    is_unknown,
    range_of,
)
from corollary.documents.errors import SearchLimitError
from corollary.documents.queries.conjunctive import (
    ConjunctivePattern,
    classes_in,
    labels_in,
    with_labels,
)
from corollary.documents.queries.shape import Root
from corollary.documents.types.completions import Completions
from corollary.documents.types.function_types import labels_of

CANDIDATES_MAX = 1_000
"""Of this many possible answers at most it is found out whether they are sure."""
Ways = dict[Answer, set[frozenset[str]]]
"""For answers, the sets of functions that can bring them about."""


@dataclass(frozen=True, slots=True)
class CompletedAnswers:
    """What a query answers on the completions of a document.

    Attributes:
        sure: the answers in all completions, encoded as in relations.
        possible: those in some, sure ones included.
        is_true: whether there is an answer in all of them.
        ways: for possible answers, the functions that bring them about together.
        is_exact: whether all that is exact; otherwise some possible answers may be out of reach,
            and some may be sure.
        reason: why it is not exact.
        labels: all that an unknown label may be, and further ones, encoded.
        has_exact_ways: whether the ways are those of completions.
    """

    sure: Tuples
    possible: Tuples
    is_true: bool
    ways: Ways = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    is_exact: bool = True
    reason: str = ""
    has_exact_ways: bool = True

    @property
    def functions(self) -> frozenset[str]:
        """The functions that can bring about an answer that is not sure."""
        sure = {decode_row(row) for row in self.sure}
        several = (
            each for answer, ways in self.ways.items() if answer not in sure for each in ways
        )
        return frozenset[str]().union(*several)


def complete(question: Question, limits: SearchLimits) -> CompletedAnswers:
    """Return what a query answers on the completions of a document with a type."""
    assert question.document_type is not None
    held = frozenset(question.sure_rows)
    types = [question.document_type.grammar, *question.document_type.types.values()]
    mentioned = frozenset[str]().union(*map(labels_of, types))
    labels = sorted({*labels_that_matter(question), *mentioned})
    encoded = tuple(map(encode_label, labels))
    try:
        search = _CompletedSearch(question, mentioned, labels, SearchBudget(limits))
        search.find_possible()
    except (SearchLimitError, RecursionError) as error:
        reason = f"the search for completions ended after {error}"
        bound = frozenset(question.possible_rows)
        ways = {decode_row(row): {question.candidates} for row in bound - held}
        return CompletedAnswers(held, bound, bool(held), ways, encoded, False, reason, False)
    try:
        sure, is_true = search.find_sure()
    except (SearchLimitError, RecursionError) as error:
        reason = f"the search for what is sure ended after {error}"
        found = frozenset(search.rows)
        return CompletedAnswers(held, found, bool(held), search.ways, encoded, False, reason)
    # An answer with unknown labels goes if all that it stands for is sure.
    answers = {decode_row(row) for row in search.rows if not _is_covered(row, sure)}
    possible = sure | {row for row in search.rows if decode_row(row) in answers}
    ways = {answer: several for answer, several in search.ways.items() if answer in answers}
    reason = "; ".join(dict.fromkeys(search.reasons))
    return CompletedAnswers(sure, possible, is_true, ways, encoded, not reason, reason)


class _CompletedSearch:
    """The search for possible answers, then for those that are sure.

    Attributes:
        rows: the answers that are possible, sure ones included.
        ways: the functions that bring them about.
        reasons: why they are not exact.
    """

    def __init__(
        self,
        question: Question,
        mentioned: frozenset[str],
        labels: list[str],
        budget: SearchBudget,
    ) -> None:
        assert question.document_type is not None
        self._question = question
        self._budget = budget
        self._completions: Completions = question.document_type.completions(question.nodes, budget)
        self.rows: set[EncodedRow] = set(question.sure_rows)
        self.ways: Ways = {}
        self.reasons: list[str] = []
        self._mentioned = mentioned
        self._labels = labels

    def find_possible(self) -> None:
        """Find the answers that are possible.

        Raises:
            SearchLimitError: it takes more than the budget.
        """
        question = self._question
        search = ScenarioSearch.on(question, self._budget)
        for root in question.shape.roots:
            for scenario in search.of_root(root):
                for row in self._rows_of(root, scenario):
                    self.rows.add(row)
                    self.ways.setdefault(decode_row(row), set()).add(scenario.functions)
        functions = (question.functions[name] for name in self._completions.suppliers)
        if any(each.expanded_type != each.least_type for each in functions):
            self.reasons.append(
                "a function that answers once may be called in trees that have not come"
            )
        if not self._completions.sat.is_exact:
            self.reasons.append("groups of children in several types at once are not counted")

    def _rows_of(self, root: Root, scenario: Scenario) -> Iterator[EncodedRow]:
        """Yield the answers of a scenario that completions have."""
        known = {
            name: label
            for name, symbol in scenario.labels
            if not isinstance(label := decode_label(symbol), Unknown)
        }
        open_ = sorted(
            {name for pattern, _ in scenario.contributions for name in classes_in(pattern)}
            - known.keys()
        )
        query = frozenset(
            label for pattern, _ in scenario.contributions for label in labels_in(pattern)
        )
        mentioned = sorted(self._mentioned | query)
        blank = " " * (1 + max(map(len, mentioned), default=0))  # longer than any label
        strangers = [f"{blank}{at}" for at in range(len(open_))]
        options = [[strangers[at], *mentioned, *strangers[:at]] for at in range(len(open_))]
        for chosen in product(*options):
            self._budget.spend()
            if any(each in strangers and chosen[strangers.index(each)] != each for each in chosen):
                continue  # a stranger is that of the first class that it is chosen for
            labels = {**known, **dict(zip(open_, chosen, strict=True))}
            if not self._may_hold(root, labels, strangers):
                continue
            if self._completions.has_one(_demands(scenario, labels)):
                for symbols in self._symbols(dict(zip(open_, chosen, strict=True)), strangers):
                    values = dict.fromkeys(root.node.columns, UNKNOWN)
                    values |= {name: encode_label(label) for name, label in known.items()}
                    yield matching.answer_of(root, {**values, **symbols})
                if list(chosen) == strangers:  # any label does
                    return

    @staticmethod
    def _may_hold(root: Root, labels: Mapping[str, str], strangers: Sequence[str]) -> bool:
        if not root.conditions:
            return True
        return root.conditions.may_hold(
            {
                name: None if labels.get(name) in (None, *strangers) else labels[name]
                for name in root.conditions.classes
            }
        )

    def _symbols(
        self, chosen: Mapping[str, str], strangers: Sequence[str]
    ) -> Iterator[dict[str, str]]:
        """Yield what rows have for classes whose labels are chosen."""
        uses = Counter(chosen.values())
        shared = [each for each in strangers if uses[each] > 1]
        for meant in product(self._labels, repeat=len(shared)):
            self._budget.spend()
            labels = dict(zip(shared, meant, strict=True))
            yield {
                name: UNKNOWN
                if label in strangers and label not in labels
                else encode_one_of([encode_label(labels.get(label, label))])
                for name, label in chosen.items()
            }

    # --- what is sure ----------------------------------------------------------------------------

    def find_sure(self) -> tuple[Tuples, bool]:
        """Return the answers that are sure, and whether it is sure that there is one.

        Raises:
            SearchLimitError: it takes more than the budget.
        """
        question = self._question
        held = frozenset(question.sure_rows)
        open_ = [row for row in self.rows if row not in held]
        if not open_ or not self._completions.has_one():
            return held, bool(held)
        certainty = Certainty(question, self._completions, self._budget)
        has_answer = certainty.holds(None)
        if not has_answer and not certainty.is_relaxed:
            return held, bool(held)
        candidates = {each for row in open_ for each in _expansions(row)} - held
        if len(candidates) > CANDIDATES_MAX:
            self.reasons.append("too many answers may be sure")
            candidates = set()
        found = {each for each in candidates if certainty.holds(each)}
        sure = held | found if certainty.is_decidable else held
        is_true = bool(sure) or (certainty.is_plain and has_answer)
        if (found and not certainty.is_decidable) or (has_answer and not is_true):
            self.reasons.append("what the type makes sure is not found out for joins")
        if certainty.is_relaxed and (len(found) < len(candidates) or not is_true):
            self.reasons.append("what the type makes sure is not found out for shared functions")
        return sure, is_true


def _is_covered(row: EncodedRow, sure: Tuples) -> bool:
    """Whether all that a row stands for is sure."""
    several = _expansions(row)
    return bool(several) and sure.issuperset(several)


def _demands(scenario: Scenario, labels: Mapping[str, str]) -> dict[str, list[ConjunctivePattern]]:
    found: dict[str, list[ConjunctivePattern]] = {}
    for pattern, function in scenario.contributions:
        labelled = with_labels(pattern, labels)
        assert labelled is not None  # a scenario's labels are those of its patterns
        found.setdefault(function, []).append(labelled)
    return found


def _expansions(row: EncodedRow) -> list[EncodedRow]:
    """Return the answers without unknown labels that a row stands for; none if they are endless."""
    ranges = [range_of(each) if is_unknown(each) else frozenset({each}) for each in row]
    if any(each is None for each in ranges):
        return []
    return [*product(*(sorted(each or ()) for each in ranges))]
