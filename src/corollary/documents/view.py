"""A view on a document: its three-valued truth, its answers, and what they wait for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corollary.documents.collection import Maintained
from corollary.documents.explain import Explanation, explain
from corollary.documents.once import Refined, is_exact, labels_that_matter, refine
from corollary.documents.order import Order, Symbols
from corollary.documents.unknown import Answer, read, stored
from corollary.documents.useful import LIMIT, useful

if TYPE_CHECKING:
    from corollary.documents.document import ActiveDocument

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
        document: what it is about.
        maintained: the query, its rules and their results.
    """

    def __init__(self, document: "ActiveDocument", maintained: Maintained) -> None:
        self.document = document
        self.maintained = maintained
        self._listeners: list[Callable[[Delta], object]] = []
        self._refined: tuple[int, Refined] | None = None
        self._told = (frozenset[Answer](), frozenset[Answer](), 0.0)

    def __repr__(self) -> str:
        return f"<view {self.maintained.query.source.text}: {self.value}>"

    @property
    def value(self) -> Value:
        """The truth of "there is an answer": 1, 0.5 or 0."""
        if self.maintained.sure.get(self.document.nodes.root):
            return 1
        return 0.5 if self._possible_symbols() else 0

    @property
    def sure(self) -> Answers:
        """The answers that hold, whatever comes."""
        return _read(self._sure_symbols())

    def possible(self, reduce: str | None = None) -> Answers:
        """Return the answers that may come to hold; `?` is a label that is not known yet.

        Args:
            reduce: `general` leaves the most general ones, which stand for every future answer;
                `specific` the most specific ones.
        """
        found = self._possible_symbols() - self._sure_symbols()
        match reduce:
            case None:
                return _read(found)
            case "general":
                return self._order(found).most_general()
            case "specific":
                return self._order(found).most_specific()
            case _:
                raise ValueError(f"reduce is 'general' or 'specific', not {reduce!r}")

    @property
    def minimal(self) -> Answers:
        """The most general of all answers, sure or possible."""
        return self._order(self._sure_symbols() | self._possible_symbols()).most_general()

    @property
    def is_exact(self) -> bool:
        """Whether `possible` is exact; otherwise some of it may be out of reach after all."""
        self._possible_symbols()
        if self._refined is None or self._refined[0] != self.document.version:
            return True
        return self._refined[1].is_exact

    def useful(self, *, exact: bool = True, limit: int = LIMIT) -> frozenset[str]:
        """Return the functions whose data can still change an answer.

        Args:
            exact: whether to test each candidate; the candidates alone are found in linear time.
            limit: tests per function; beyond it a function counts as useful.
        """
        return useful(self, exact=exact, limit=limit)

    @property
    def candidates(self) -> frozenset[str]:
        """The functions that are not proved useless by the rules."""
        numbers = self.maintained.candidates
        return frozenset(
            name
            for name, each in self.document.functions.items()
            if each.number in numbers and name in self.document.live
        )

    def explain(self, answer: Answer = ()) -> Explanation:
        """Return why an answer is sure, or what a possible one waits for."""
        return explain(self, answer)

    # --- changes ---------------------------------------------------------------------------------

    def on_change(self, listener: Callable[[Delta], object]) -> None:
        """Call a function with a `Delta` behind every update that changes the view."""
        if not self._listeners:
            self._told = self.sure, self.possible(), self.value
        self._listeners.append(listener)

    def tell(self) -> None:
        """Tell listeners what has changed since they were told last."""
        if not self._listeners:
            return
        sure, possible, value = self._told
        self._told = self.sure, self.possible(), self.value
        delta = Delta(
            self._told[0] - sure,
            self._told[1] - possible,
            possible - self._told[1],
            value,
            self._told[2],
        )
        if delta:
            for listener in self._listeners:
                listener(delta)

    def _order(self, rows: set[Symbols]) -> Order:
        if is_exact(self.document, self.maintained.shape):
            return Order(rows, self.maintained.shape)
        return Order(rows, self.maintained.shape, [*map(stored, labels_that_matter(self))])

    def _sure_symbols(self) -> set[Symbols]:
        """Return the answers that are sure, as they stand in relations."""
        return self.maintained.sure.get(self.document.nodes.root, set())

    def _possible_symbols(self) -> set[Symbols]:
        """Return the answers that are possible, sure ones included, as they stand in relations."""
        bound = self.maintained.possible.get(self.document.nodes.root, set())
        if not bound or is_exact(self.document, self.maintained.shape):
            return bound
        if self._refined is None or self._refined[0] != self.document.version:
            self._refined = self.document.version, refine(self)
        return set(self._refined[1].answers)


def _read(symbols: set[Symbols]) -> Answers:
    return frozenset(tuple(map(read, each)) for each in symbols)
