"""What the trees of a type can match: can(f, c), and sat(A, H, D) for grammars.

sat(A, H, D) of the specification: whether there is a tree of type A whose root matches all of H and
that has matches of all of D strictly below. It holds iff A has a tree at all, one label fits all of
H, and what is demanded below can be shared out among the children: every `/` child of H is *here*
at some child, every `//` child of H and everything of D is *here* or *below* at one. Demands on
children of which there may be any number are met each by a child of its own; those on a single
child are met by it together.

Children that calls bring come in any number: `Rule.below` has them beside those of the tree.
Joins are not seen here: `plain.with_labels` turns them into labels beforehand.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import assert_never

from corollary.documents.answers.search_budget import SearchBudget, SearchLimits
from corollary.documents.errors import SearchLimitError
from corollary.documents.queries.conjunctive import ConjunctivePattern, expand_alternatives
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import Node
from corollary.documents.types.function_types import ANY, FunctionType, Grammar, Labels, Production


def can_bring(type_: FunctionType | None, node: Node) -> bool:
    """Whether a function of a type can bring a tree for a query node: can(f, c).

    It can, too, where finding out takes too long: that is an upper bound.
    """
    match type_:
        case None:
            return True
        case Labels(labels=labels):
            if node.axis is Axis.DESCENDANT:
                return bool(labels)
            return bool(labels) if node.label is None else node.label in labels
        case Grammar():
            return _can_grow(type_, node) is not False
        case _:
            assert_never(type_)


def is_decided(type_: FunctionType | None, node: Node) -> bool:
    """Whether `can_bring` is exact: it was found out within the limits."""
    return not isinstance(type_, Grammar) or _can_grow(type_, node) is not None


@lru_cache(maxsize=1024)
def _can_grow(grammar: Grammar, node: Node) -> bool | None:
    """Whether a grammar has a tree for a query node; None if it takes too long to find out."""
    sat = Satisfiability(grammar, SearchBudget(CAN_BRING_LIMITS))
    places = (False, True) if node.axis is Axis.DESCENDANT else (False,)
    try:
        return any(
            sat.meets([(each, is_deep)]) for each in expand_alternatives(node) for is_deep in places
        )
    except (SearchLimitError, RecursionError):
        return None


CAN_BRING_LIMITS = SearchLimits(nodes=200_000, seconds=2)
"""What it may take to find out whether a function can bring a tree for a query node."""
Demand = tuple[ConjunctivePattern, bool]
"""A pattern, and whether it is to match strictly below the root of a tree, or at it."""
_Patterns = frozenset[ConjunctivePattern]


class Satisfiability:
    """The least fixpoint sat(A, H, D): a question that leads back to itself is answered by no."""

    def __init__(self, grammar: Grammar, budget: SearchBudget | None = None) -> None:
        self._budget = budget or SearchBudget(SearchLimits())
        self._rules = grammar.rules
        self._start = grammar.start
        self._known: dict[tuple[str, _Patterns, _Patterns], bool] = {}
        self._open: set[tuple[str, _Patterns, _Patterns]] = set()
        self._productive = self._find_productive()

    def meets(self, demands: Iterable[Demand]) -> bool:
        """Whether one tree matches patterns at its root, or strictly below it, all together."""
        return self._meets(self._start, list(demands))

    def _meets(self, type_: str, demands: list[Demand]) -> bool:
        here = frozenset(pattern for pattern, is_deep in demands if not is_deep)
        below = frozenset(pattern for pattern, is_deep in demands if is_deep)
        return self._sat(type_, here, below)

    def _find_productive(self) -> set[str]:
        """Return the types that have a finite tree."""
        found = {ANY}
        while True:
            more = {
                name
                for name, rule in self._rules.items()
                if name not in found
                and rule.labels != frozenset()
                and all(child.type in found for child in rule.children if child.is_required)
            }
            if not more:
                return found
            found |= more

    def _sat(self, type_: str, here: _Patterns, below: _Patterns) -> bool:
        """Whether a tree of a type matches some patterns at its root, others strictly below."""
        if type_ not in self._productive:
            return False
        labels = {pattern.label for pattern in here if pattern.label is not None}
        if len(labels) > 1:
            return False
        if type_ == ANY:
            return True
        rule = self._rules[type_]
        if rule.labels is not None and not labels <= rule.labels:
            return False
        question = (type_, here, below)
        if question in self._known:
            return self._known[question]
        if question in self._open:
            return False
        self._open.add(question)
        found = self._spread(rule, here, below)
        self._open.discard(question)
        if found or not self._open:  # within a circle, a no may be only provisional
            self._known[question] = found
        return found

    def _spread(self, rule: Production, here: _Patterns, below: _Patterns) -> bool:
        """Whether what is demanded can be distributed over the children."""
        demands = [
            (each, each.node.axis is Axis.DESCENDANT)
            for pattern in here
            for each in pattern.children
        ] + [(each, True) for each in below]
        places = [
            [
                (at, is_deep)
                for at in range(len(rule.below))
                for is_deep in ((False, True) if can_be_deep else (False,))
            ]
            for _, can_be_deep in demands
        ]
        return any(self._holds(rule, demands, chosen) for chosen in product(*places))

    def _holds(
        self, rule: Production, demands: list[Demand], chosen: tuple[tuple[int, bool], ...]
    ) -> bool:
        """Whether each child can meet what is demanded of it, at its root or below."""
        self._budget.spend()
        given: dict[int, list[Demand]] = {}
        for (pattern, _), (at, is_deep) in zip(demands, chosen, strict=True):
            given.setdefault(at, []).append((pattern, is_deep))
        for at, several in given.items():
            child = rule.below[at]
            # Where there may be any number of children, each demand gets one of its own.
            together = [several] if child.is_single else [[each] for each in several]
            if not all(self._meets(child.type, each) for each in together):
                return False
        return True
