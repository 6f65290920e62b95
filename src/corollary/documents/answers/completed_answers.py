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

With constraints only the completions count that satisfy them (`admissible`). An answer is possible
if the chase of its demands has an end; exactly so if a witness was built. It is sure, too, if it
holds at each end of the chase of nothing; exactly not, if a witness is without it.

Both are NP-hard. Beyond the limits what is possible is what the rules say, without the type, and
what is sure is what holds already: bounds on the safe side.

What functions may bring to a document with a type, if that does not depend on each other.

In a completion each open node has a type. If only one type is left for each, every function brings
what fits beside its own call, whatever the others do: the completions are all combinations. So a
function can be taken by itself:

| the type leaves room for                 | the function is taken for                           |
|------------------------------------------|-----------------------------------------------------|
| one tree, of one of some types           | one that answers once, with a choice of these types |
| any number of trees of each of its types | a stream with a choice of these types               |
| anything                                 | what it is                                          |

The document `r[x[!f] y[!g]]` with the type `r[x[zero | one], y[zero | one]]` is the reduction of
Theorem 4: `f` and `g` answer once, with a `zero` or a `one`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations_with_replacement, islice, product
from typing import NamedTuple

from corollary.data_class import dataclass
from corollary.documents.answers import matching
from corollary.documents.answers.admissible import AdmissibleCompletions, Demanded
from corollary.documents.answers.canonical import Overlay
from corollary.documents.answers.certain import Certainty
from corollary.documents.answers.question import Question
from corollary.documents.answers.scenarios import Scenario, ScenarioSearch
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.single_answer import labels_that_matter, possible_answers
from corollary.documents.answers.unknown import (
    UNKNOWN,
    Answer,
    EncodedRow,
    Tuples,
    Unknown,
    decode_label,
    decode_row,
    encode_label,
    is_unknown,
    range_of,
)
from corollary.documents.queries.shape import (
    ConjunctivePattern,
    Root,
    classes_in,
    labels_in,
    with_labels,
)
from corollary.documents.types.completions import Completions
from corollary.documents.types.constraints import constrained_values
from corollary.documents.types.content_fit import Supply, Types, has_fit
from corollary.documents.types.function_types import ANY, Function, Grammar, labels_of
from corollary.documents.types.grammar_offers import LabelChoices
from corollary.documents.types.node_types import Supplier
from corollary.engines.budget import WorkBudget, WorkLimitError, WorkUsed


class CallResult(NamedTuple):
    """What a function may bring in all completions.

    Attributes:
        types: the types of its trees.
        is_single: whether it brings one tree at most.
        is_optional: whether it may bring none.
    """

    types: Types
    is_single: bool
    is_optional: bool

    def least(self, at: int) -> "CallResult":
        """Return one of the least results: nothing, or trees of one of the types, by a number."""
        types = [] if self.is_optional else [sorted(self.types)[at % len(self.types)]]
        return CallResult(frozenset(types), self.is_single, self.is_optional)

    def grammar(self, function: str, whole: Grammar) -> Grammar:
        """Return the type of its trees."""
        start = f"results of !{function}"
        chosen = tuple(each for type_ in sorted(self.types) for each in whole.productions(type_))
        return Grammar(start, {**whole.rules, start: chosen})


def independent_results(whole: Completions) -> dict[str, CallResult] | None:
    """Return what each live function may bring; None if it may depend on what others bring."""
    rules = whole.grammar.rules
    if any(each.calls for name in rules for each in whole.grammar.productions(name)):
        return None
    found: dict[str, CallResult] = {}
    for number in whole.open_nodes:
        if len(whole.open_types(number)) != 1:
            return None
        called = whole.children(number)[2]
        for supplier in called:
            result = _result_at(whole, number, supplier) if len(called) == 1 else None
            # A function brings the same trees to all its calls.
            if result is None or found.setdefault(supplier.name, result) != result:
                return None
    return found


def _result_at(whole: Completions, number: int, supplier: Supplier) -> CallResult | None:
    """Return what a function may bring to the one call of a node."""
    (type_,) = whole.open_types(number)
    children, open_, _ = whole.children(number)
    for child in open_:
        children[whole.open_types(child)] += 1
    productions = [each for name, each in whole.open_candidates(number) if name == type_]
    brought = [whole.brought_types(supplier, each) for each in productions]
    fits = list(zip(productions, brought, strict=True))

    def is_room(trees: tuple[str, ...], *, is_all: bool) -> bool:
        content = children + Counter(frozenset({each}) for each in trees)
        return any(
            types.issuperset(trees)
            and has_fit(each, content, () if is_all else [Supply(types)], whole.budget)
            for each, types in fits
        )

    every = frozenset[str]().union(*brought)
    pairs = combinations_with_replacement(sorted(every), 2)
    if supplier.is_once or not any(is_room(pair, is_all=False) for pair in pairs):
        types = frozenset(each for each in every if is_room((each,), is_all=True))
        result = CallResult(types, True, is_room((), is_all=True))
    else:
        (production, *others) = productions
        types = frozenset(each for each in every if is_room((each,), is_all=False))
        endless = {each.type for each in production.children if not each.is_single}
        if others or production.groups or not types <= endless:
            return None
        result = CallResult(types, False, is_room((), is_all=True))
    # A tree of two types at once is not one of a choice of types. Of a stream that has to bring
    # trees of several types, one of them would not be enough.
    is_plain = result.types <= {ANY} or supplier.type == ANY
    has_any = types or result.is_optional
    has_least = result.is_single or result.is_optional or len(types) == 1
    return result if is_plain and has_any and has_least else None


# --- the search ----------------------------------------------------------------------------------


ENDS_MAX = 32
"""The maximum number of ends of a chase that are looked at."""
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
        work: that the search took.
        ways: for possible answers, the functions that bring them about together; None if they were
            not looked for (`with_ways`).
        is_exact: whether all that is exact; otherwise some possible answers may be out of reach,
            and some may be sure.
        reason: why it is not exact.
        labels: all that an unknown label may be, and further ones, encoded.
        has_exact_ways: whether the ways are those of completions.
    """

    sure: Tuples
    possible: Tuples
    is_true: bool
    work: WorkUsed
    ways: Ways | None = None
    labels: tuple[str, ...] = ()
    is_exact: bool = True
    reason: str = ""
    has_exact_ways: bool = True

    @property
    def functions(self) -> frozenset[str]:
        """The functions that can bring about an answer that is not sure."""
        sure = {decode_row(row) for row in self.sure}
        found = self.ways or {}
        several = (each for answer, ways in found.items() if answer not in sure for each in ways)
        return frozenset[str]().union(*several)


def complete(question: Question, limits: SearchLimits) -> CompletedAnswers:
    """Return what a query answers on the completions of a document with a type."""
    held, budget = frozenset(question.sure_rows), limits.budget()
    mentioned = _mentioned_labels(question)
    labels = sorted({*labels_that_matter(question), *mentioned})
    encoded = tuple(map(encode_label, labels))
    try:
        search = _CompletedSearch(question, mentioned, labels, budget)
        search.find_possible()
    except (WorkLimitError, RecursionError) as error:
        reason = f"the search for completions ended after {error}"
        bound = frozenset(question.possible_rows)
        ways = _all_ways(question, bound - held)
        rows = held, bound, bool(held), budget.used
        return CompletedAnswers(*rows, ways, encoded, False, reason, False)
    try:
        sure, is_true = search.find_sure()
    except (WorkLimitError, RecursionError) as error:
        reason = f"the search for what is sure ended after {error}"
        rows = held, frozenset(search.rows), bool(held), budget.used
        return CompletedAnswers(*rows, search.ways, encoded, False, reason)
    # An answer with unknown labels goes if all that it stands for is sure.
    answers = {decode_row(row) for row in search.rows if not _is_covered(row, sure)}
    possible = sure | {row for row in search.rows if decode_row(row) in answers}
    found = search.ways
    if found is not None:
        found = {answer: several for answer, several in found.items() if answer in answers}
    reason = "; ".join(dict.fromkeys(search.reasons))
    rows = sure, possible, is_true, budget.used
    return CompletedAnswers(*rows, found, encoded, not reason, reason)


def with_ways(
    question: Question, completed: CompletedAnswers, limits: SearchLimits
) -> CompletedAnswers:
    """Return the same answers, with the functions that bring about those that are possible."""
    if completed.ways is not None:
        return completed
    labels = [str(decode_label(each)) for each in completed.labels]
    budget = limits.budget()
    try:
        search = _CompletedSearch(question, _mentioned_labels(question), labels, budget)
        ways = search.find_ways()
    except (WorkLimitError, RecursionError):
        ways = _all_ways(question, completed.possible - completed.sure)
        return replace(completed, ways=ways, has_exact_ways=False)
    answers = {decode_row(row) for row in completed.possible}
    ways = {answer: several for answer, several in ways.items() if answer in answers}
    return replace(completed, ways=ways)


def _mentioned_labels(question: Question) -> frozenset[str]:
    """Return the labels that types mention, and the values that constraints are about."""
    assert question.document_type is not None
    whole = question.document_type.grammar
    types = [whole, *question.document_type.types.values()]
    values = constrained_values(question.nodes, whole.constraints)
    return frozenset(values).union(*map(labels_of, types))


def _all_ways(question: Question, rows: Tuples) -> Ways:
    """Return that answers wait for all functions that may matter: a bound."""
    return {decode_row(row): {question.candidates} for row in rows}


class _CompletedSearch:
    """The search for possible answers, then for those that are sure.

    Attributes:
        rows: the answers that are possible, sure ones included.
        ways: the functions that bring them about; None if they were not looked for.
        reasons: why they are not exact.
    """

    def __init__(
        self, question: Question, mentioned: frozenset[str], labels: list[str], budget: WorkBudget
    ) -> None:
        assert question.document_type is not None
        self._question = question
        self._budget = budget
        self._completions: Completions = question.document_type.completions(question.nodes, budget)
        self._constraints = question.document_type.grammar.constraints
        self._admissible = AdmissibleCompletions(self._completions, self._constraints)
        self._tables: matching.MatchTables | None = None
        self._common: Tuples | None = None  # what all witnesses answer
        self._has_silent = False  # whether one answers nothing
        self._witnessed: set[EncodedRow] = set(question.sure_rows)
        self.rows: set[EncodedRow] = set(question.sure_rows)
        self.ways: Ways | None = None
        self.reasons: list[str] = []
        self._mentioned = mentioned
        self._results: dict[str, CallResult] | None = None
        self._labels = labels

    def find_possible(self) -> None:
        """Find the answers that are possible.

        If there are no labels to return or to join, and functions do not depend on each other, each
        is taken by itself. Otherwise it is tried which scenarios have a completion.
        """
        question = self._question
        if not self._constraints and not any(node.columns for node in question.shape.nodes()):
            self._results = independent_results(self._completions)
        if self._results is not None:
            self.rows |= self._answers_with(self._results)
            return
        self.ways = self.find_ways()
        live = (question.functions[name] for name in self._completions.suppliers)
        if any(each.expanded_type != each.least_type for each in live):
            self.reasons.append(
                "a function that answers once may be called in trees that have not come"
            )
        if not self._completions.sat.is_exact:
            self.reasons.append("groups of children in several types at once are not counted")
        if not self.rows <= self._witnessed:
            self.reasons.append("it is not known whether constraints allow all possible answers")

    def _answers_with(self, results: Mapping[str, CallResult]) -> Tuples:
        """Return the answers that are possible if functions bring what each may by itself."""
        question, whole = self._question, self._completions.grammar
        taken: list[Function] = []
        for name in sorted(question.candidates & results.keys()):
            function, result = question.functions[name], results[name]
            if not result.types:
                continue
            type_ = function.type if ANY in result.types else result.grammar(name, whole)
            alone = replace(function, type=type_, expanded_type=type_, least_type=type_)
            taken.append(replace(alone, is_once=result.is_single))
        return possible_answers(question, taken, self._labels, self._budget)

    def find_ways(self) -> Ways:
        """Return which functions bring about answers together; note the answers."""
        found: Ways = {}
        search = ScenarioSearch.on(self._question, self._budget)
        for root in self._question.shape.roots:
            for scenario in search.of_root(root):
                for row in self._rows_of(root, scenario):
                    self.rows.add(row)
                    found.setdefault(decode_row(row), set()).add(scenario.functions)
        return found

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
        choices = LabelChoices(open_, self._mentioned | query, self._budget)
        for choice in choices:
            labels = {**known, **choice}
            if not self._may_hold(root, labels, choices):
                continue
            is_admitted, is_witnessed = self._admit(_demands(scenario, labels))
            if is_admitted:
                is_witnessed = is_witnessed and len({*choice.values()}) == len(choice)
                for symbols in choices.symbols(choice, self._labels):
                    values = dict.fromkeys(root.node.columns, UNKNOWN)
                    values |= {name: encode_label(label) for name, label in known.items()}
                    row = matching.answer_of(root, {**values, **symbols})
                    if is_witnessed:
                        self._witnessed.add(row)
                    yield row
                if choices.is_free(choice):  # any label does
                    return

    def _admit(self, demands: Mapping[str, list[ConjunctivePattern]]) -> tuple[bool, bool]:
        """Return whether there may be a completion that meets demands, and whether one is known."""
        if not self._constraints:
            is_there = self._completions.has_one(demands)
            return is_there, is_there
        wanted = {name: frozenset(several) for name, several in demands.items()}
        is_admitted = False
        for end in islice(self._admissible.ends(wanted), ENDS_MAX):
            is_admitted = True
            if self._note_witness(end):
                return True, True
        return is_admitted, False

    def _note_witness(self, end: Demanded) -> bool:
        """Look for an admissible completion; note what it answers."""
        witness = self._admissible.witness(end)
        if witness is None:
            return False
        found = self._answers_on(witness)
        self._common = found if self._common is None else self._common & found
        self._has_silent = self._has_silent or not found
        return True

    def _answers_on(self, tree: Overlay) -> Tuples:
        """Return the answers on a document that has grown."""
        shape = self._question.shape
        if self._tables is None:
            self._tables = matching.match_tables(self._question.nodes, shape, budget=self._budget)
        self._budget.spend(len(tree.grown))
        return matching.match_added(tree, shape, self._tables, {*tree.grown, tree.root})

    @staticmethod
    def _may_hold(root: Root, labels: Mapping[str, str], choices: LabelChoices) -> bool:
        if not root.conditions:
            return True
        strange = (None, *choices.strangers.values())
        return root.conditions.may_hold(
            {
                name: None if labels.get(name) in strange else labels[name]
                for name in root.conditions.classes
            }
        )

    # --- what is sure ----------------------------------------------------------------------------

    def find_sure(self) -> tuple[Tuples, bool]:
        """Return the answers that are sure, and whether it is sure that there is one."""
        reasons = [*self.reasons]
        sure, is_true = self._find_sure_by_type()
        if not self._constraints or self.rows <= self._question.sure_rows:
            return sure, is_true
        ends = [*islice(self._admissible.ends({}), ENDS_MAX + 1)]
        found, known = list[Tuples](), list[Tuples]()
        for end in ends:
            tableau = self._admissible.tableau(end)
            unknown = {encode_label(each) for each in tableau.unknown}
            found.append(self._answers_on(tableau.tree))
            known.append(frozenset(row for row in found[-1] if unknown.isdisjoint(row)))
            self._note_witness(end)
        if 0 < len(ends) <= ENDS_MAX:
            sure |= frozenset.intersection(*known)
            is_true = is_true or all(found)
        candidates = {each for row in self.rows for each in _expansions(row)} - sure
        is_decided = self._common is not None and candidates.isdisjoint(self._common)
        if is_decided and (is_true or self._has_silent):
            self.reasons = reasons
        else:
            self.reasons.append("it is not known whether constraints make more of it sure")
        return sure, is_true

    def _find_sure_by_type(self) -> tuple[Tuples, bool]:
        """Return what is sure in all completions, whether they satisfy constraints or not."""
        question = self._question
        held = frozenset(question.sure_rows)
        open_ = [row for row in self.rows if row not in held]
        if not open_ or not self._completions.has_one() or self._is_avoided(held):
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

    def _is_avoided(self, held: Tuples) -> bool:
        """Whether functions may bring so little that nothing more is an answer.

        It is tried where each can be taken by itself; what they need not bring, they do not.
        """
        results = self._results or {}
        return any(
            self._answers_with({name: each.least(at) for name, each in results.items()}) <= held
            for at in range(max((len(each.types) for each in results.values()), default=0))
        )


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
