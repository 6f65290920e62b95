"""A view on a document: its three-valued truth, its answers, and what they wait for."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from corollary.data_class import dataclass
from corollary.documents.answers import single_answer
from corollary.documents.answers.completed_answers import CompletedAnswers, complete, with_ways
from corollary.documents.answers.completed_usefulness import useful_in_completions
from corollary.documents.answers.explanation import (
    Explanation,
    explain,
    explain_possible,
    explain_ways,
)
from corollary.documents.answers.question import Question
from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.answers.unknown import (
    Answer,
    AnswerOrder,
    EncodedRow,
    decode_row,
    encode_label,
)
from corollary.documents.answers.usefulness import Usefulness, useful
from corollary.documents.collection import MaintainedQuery
from corollary.engines.budget import WorkUsed

Value = float
"""1: true; 0.5: not yet, but it may become true; 0: never."""
Answers = frozenset[Answer]


@dataclass(frozen=True, slots=True)
class Delta:
    """What an update has changed in a view.

    Attributes:
        sure: the answers that have become sure.
        possible: the answers that have become possible.
        impossible: the answers that are no longer merely possible: sure now, or out of reach.
        before, value: the truth of the view before and after.
        retracted: the answers that are no longer sure, since trees were retracted.
    """

    sure: Answers
    possible: Answers
    impossible: Answers
    before: Value
    value: Value
    retracted: Answers = frozenset()

    def __bool__(self) -> bool:
        changed = self.sure or self.retracted or self.possible or self.impossible
        return bool(changed or self.before != self.value)


class View:
    """A query on a document.

    Attributes:
        question: the document, its functions, and the query as it is maintained.
        limits: what a search for an exact answer may take; beyond them there are bounds.
    """

    def __init__(self, question: Question, limits: SearchLimits) -> None:
        self.question = question
        self.limits = limits
        self._listeners: list[Callable[[Delta], object]] = []
        self._refinement: single_answer.Refinement | None = None
        self._completed: CompletedAnswers | None = None
        self._reported = (frozenset[Answer](), frozenset[Answer](), 0.0)

    def __repr__(self) -> str:
        return f"<view {self.maintained.query.source.text}: {self.value}>"

    @property
    def maintained(self) -> MaintainedQuery:
        """The query, its rules and their results."""
        return self.question.maintained

    @property
    def value(self) -> Value:
        """The truth of "there is an answer": 1, 0.5 or 0."""
        completed = self._complete()
        if self.question.sure_rows or (completed is not None and completed.is_true):
            return 1
        return 0.5 if self._found().possible else 0

    @property
    def is_open(self) -> bool:
        """Whether an update may still change the answers."""
        shape = self.question.shape
        return self.value == 0.5 or (
            self.value == 1 and (shape.is_windowed or not shape.is_boolean)
        )

    @property
    def sure(self) -> Answers:
        """The answers that hold, whatever comes; with a document type, in every completion."""
        return frozenset(map(decode_row, self._sure_rows()))

    def possible(self, reduce: str | None = None) -> Answers:
        """Return the answers that may come to hold; `?` is a label that is not known yet.

        Args:
            reduce: `general` leaves the most general ones, which stand for every future answer;
                `specific` the most specific ones.
        """
        found = self._found().possible - self._sure_rows()
        match reduce:
            case None:
                return frozenset(map(decode_row, found))
            case "general":
                return self._order(found).most_general()
            case "specific":
                return self._order(found).most_specific()
            case _:
                raise ValueError(f"reduce is 'general' or 'specific', not {reduce!r}")

    @property
    def minimal(self) -> Answers:
        """The most general of all answers, sure or possible."""
        return self._order(self._sure_rows() | self._found().possible).most_general()

    @property
    def is_exact(self) -> bool:
        """Whether answers are exact; otherwise some possible ones may be out of reach after all.

        With a document type, some of them may be sure, too.
        """
        return self._found().is_exact

    @property
    def bound_reason(self) -> str:
        """Why `possible` is only an upper bound; empty if it is exact."""
        return self._found().reason

    @property
    def work(self) -> WorkUsed | None:
        """What the search for the answers took; None if the rules were enough."""
        return self._found().work

    def useful(self, *, exact: bool = True) -> frozenset[str]:
        """Return the functions whose data can still change an answer.

        Args:
            exact: whether to test each candidate; the candidates alone are found in linear time.
        """
        if not exact:
            return frozenset() if self.value == 0 else self.candidates
        return self.usefulness().functions

    def usefulness(self) -> Usefulness:
        """Return the functions whose data can still change an answer, and whether that is exact."""
        if not self.is_open:
            return Usefulness(frozenset())
        found = useful(self.question, self.limits)
        completed = self._complete()
        if completed is not None:
            completed = self._completed = with_ways(self.question, completed, self.limits)
            bound = found.functions & completed.functions
            return useful_in_completions(self.question, completed, bound, self.limits)
        live = [each for each in self.question.functions.values() if each.is_live]
        maybe = {each.name for each in live if each.is_once or each.type is not None}
        if maybe & found.functions and found.is_exact:
            reason = "functions with types, and those that answer once, are taken for streams"
            return Usefulness(found.functions, found.functions & maybe, reason, found.work)
        return found

    @property
    def candidates(self) -> frozenset[str]:
        """The functions that are not proved useless by the rules."""
        return self.question.candidates

    def explain(self, answer: Answer = ()) -> Explanation:
        """Return why an answer is sure, or what a possible one waits for."""
        value = 1 if answer in self.sure else 0.5 if answer in self.possible() else 0
        completed = self._complete()
        if completed is not None and value == 1 and answer not in self.question.sure:
            return Explanation(answer, 1, is_required=True)
        if completed is not None and value == 0.5:
            completed = self._completed = with_ways(self.question, completed, self.limits)
            ways = (completed.ways or {}).get(answer, {self.question.candidates})
            return explain_ways(self.question, answer, ways, is_exact=completed.has_exact_ways)
        return explain(self.question, answer, value, self.limits)

    def explain_possible(self) -> dict[Answer, Explanation]:
        """Return for every possible answer what it waits for, by one search for all of them."""
        possible = self.possible()
        if self.question.document_type is not None:
            return {answer: self.explain(answer) for answer in possible}
        found = explain_possible(self.question, self.limits)
        return {answer: each for answer, each in found.items() if answer in possible}

    # --- changes ---------------------------------------------------------------------------------

    def on_change(self, listener: Callable[[Delta], object]) -> None:
        """Call a function with a `Delta` after every update that changes the view."""
        if not self._listeners:
            self._reported = self.sure, self.possible(), self.value
        self._listeners.append(listener)

    def invalidate(self) -> None:
        """Forget what was computed before the last update of the document."""
        self._refinement = None
        self._completed = None

    def notify_listeners(self) -> None:
        """Report to listeners what has changed since the last report."""
        if not self._listeners:
            return
        sure, possible, value = self._reported
        self._reported = self.sure, self.possible(), self.value
        delta = Delta(
            self._reported[0] - sure,
            self._reported[1] - possible,
            possible - self._reported[1],
            value,
            self._reported[2],
            sure - self._reported[0],
        )
        if delta:
            for listener in self._listeners:
                listener(delta)

    def _complete(self) -> CompletedAnswers | None:
        """Return the answers on completions; None for a document without a type."""
        if self._completed is None and self.question.document_type is not None:
            self._completed = complete(self.question, self.limits)
        return self._completed

    def _sure_rows(self) -> AbstractSet[EncodedRow]:
        """Return the answers that are sure, encoded as in relations."""
        completed = self._complete()
        return self.question.sure_rows if completed is None else completed.sure

    def _order(self, rows: Iterable[EncodedRow]) -> AnswerOrder:
        completed = self._complete()
        if completed is not None:
            return AnswerOrder(rows, self.question.shape, completed.labels)
        if single_answer.is_exact(self.question):
            return AnswerOrder(rows, self.question.shape)
        labels = map(encode_label, single_answer.labels_that_matter(self.question))
        return AnswerOrder(rows, self.question.shape, [*labels])

    def _found(self) -> CompletedAnswers | single_answer.Refinement:
        """Return the answers that are possible, on completions if the document has a type."""
        completed = self._complete()
        if completed is not None:
            return completed
        if self._refinement is None:
            self._refinement = single_answer.refine(self.question, self.limits)
        return self._refinement
