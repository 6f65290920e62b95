"""A view on a document: its three-valued truth, its answers, and what they wait for."""

from collections.abc import Callable
from dataclasses import dataclass

from corollary.documents.answers import single_answer
from corollary.documents.answers.explanation import Explanation, explain
from corollary.documents.answers.order import AnswerOrder
from corollary.documents.answers.question import Question
from corollary.documents.answers.unknown import Answer, EncodedRow, decode_row, encode_label
from corollary.documents.answers.usefulness import MAX_TESTS, useful
from corollary.documents.collection import MaintainedQuery

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
    """

    sure: Answers
    possible: Answers
    impossible: Answers
    before: Value
    value: Value

    def __bool__(self) -> bool:
        return bool(self.sure or self.possible or self.impossible or self.before != self.value)


class View:
    """A query on a document.

    Attributes:
        question: the document, its functions, and the query as it is maintained.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self._listeners: list[Callable[[Delta], object]] = []
        self._refinement: single_answer.Refinement | None = None
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
        if self.question.sure_rows:
            return 1
        return 0.5 if self._possible_rows() else 0

    @property
    def is_open(self) -> bool:
        """Whether an update may still change the answers."""
        return self.value == 0.5 or (self.value == 1 and not self.question.shape.is_boolean)

    @property
    def sure(self) -> Answers:
        """The answers that hold, whatever comes."""
        return self.question.sure

    def possible(self, reduce: str | None = None) -> Answers:
        """Return the answers that may come to hold; `?` is a label that is not known yet.

        Args:
            reduce: `general` leaves the most general ones, which stand for every future answer;
                `specific` the most specific ones.
        """
        found = self._possible_rows() - self.question.sure_rows
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
        return self._order(self.question.sure_rows | self._possible_rows()).most_general()

    @property
    def is_exact(self) -> bool:
        """Whether `possible` is exact; otherwise some of it may be out of reach after all."""
        self._possible_rows()
        return self._refinement is None or self._refinement.is_exact

    def useful(self, *, exact: bool = True, limit: int = MAX_TESTS) -> frozenset[str]:
        """Return the functions whose data can still change an answer.

        Args:
            exact: whether to test each candidate; the candidates alone are found in linear time.
            limit: tests per function; beyond it a function counts as useful.
        """
        if self.value == 0 or (exact and not self.is_open):
            return frozenset()
        return useful(self.question, limit) if exact else self.candidates

    @property
    def candidates(self) -> frozenset[str]:
        """The functions that are not proved useless by the rules."""
        return self.question.candidates

    def explain(self, answer: Answer = ()) -> Explanation:
        """Return why an answer is sure, or what a possible one waits for."""
        value = 1 if answer in self.sure else 0.5 if answer in self.possible() else 0
        return explain(self.question, answer, value)

    # --- changes ---------------------------------------------------------------------------------

    def on_change(self, listener: Callable[[Delta], object]) -> None:
        """Call a function with a `Delta` after every update that changes the view."""
        if not self._listeners:
            self._reported = self.sure, self.possible(), self.value
        self._listeners.append(listener)

    def invalidate(self) -> None:
        """Forget what was computed before the last update of the document."""
        self._refinement = None

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
        )
        if delta:
            for listener in self._listeners:
                listener(delta)

    def _order(self, rows: set[EncodedRow]) -> AnswerOrder:
        if single_answer.is_exact(self.question):
            return AnswerOrder(rows, self.question.shape)
        labels = map(encode_label, single_answer.labels_that_matter(self.question))
        return AnswerOrder(rows, self.question.shape, [*labels])

    def _possible_rows(self) -> set[EncodedRow]:
        """Return the answers that are possible, sure ones included, encoded as in relations."""
        bound = self.question.possible_rows
        if not bound or single_answer.is_exact(self.question):
            return bound
        if self._refinement is None:
            self._refinement = single_answer.refine(self.question)
        return set(self._refinement.answers)
