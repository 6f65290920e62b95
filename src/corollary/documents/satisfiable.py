"""What the trees of a type can match: can(f, c), and sat(A, H, D) for grammars.

sat(A, H, D) of the specification: whether there is a tree of type A whose root matches all of H and
that has matches of all of D strictly below. It holds iff A has a tree at all, one label fits all of
H, and what is demanded below can be shared out among the children: every `/` child of H is *here*
at some child, every `//` child of H and everything of D is *here* or *below* at one. Demands on
children of which there may be any number are met each by a child of its own; those on a single
child are met by it together.

Children that calls bring come in any number: `Rule.below` has them beside those of the tree.
Joins are not seen here: `plain.labelled` turns them into labels beforehand.
"""

from collections.abc import Iterable
from itertools import product
from typing import assert_never

from corollary.documents.pattern import Axis
from corollary.documents.plain import Plain, expansions
from corollary.documents.shape import Node
from corollary.documents.types import ANY, FunctionType, Grammar, Labels, Rule


def can_bring(type_: FunctionType | None, node: Node) -> bool:
    """Whether a function of a type can bring a tree for a query node: can(f, c)."""
    match type_:
        case None:
            return True
        case Labels(labels=labels):
            if node.axis is Axis.DESCENDANT:
                return bool(labels)
            return bool(labels) if node.label is None else node.label in labels
        case Grammar():
            sat = Satisfiable(type_)
            places = (False, True) if node.axis is Axis.DESCENDANT else (False,)
            return any(
                sat.meets([(each, is_deep)]) for each in expansions(node) for is_deep in places
            )
        case _:
            assert_never(type_)


Demand = tuple[str, frozenset[Plain], frozenset[Plain]]
"""A type, what its root has to match, and what has to match strictly below."""


class Satisfiable:
    """The least fixpoint sat(A, H, D): what is being asked already, does not hold by itself."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        self._start = grammar.start
        self._known: dict[Demand, bool] = {}
        self._open: set[Demand] = set()
        self._productive = self._find_productive()

    def meets(self, demands: Iterable[tuple[Plain, bool]]) -> bool:
        """Whether one tree matches patterns at its root, or strictly below it, all together."""
        demands = list(demands)
        here = frozenset(plain for plain, is_deep in demands if not is_deep)
        below = frozenset(plain for plain, is_deep in demands if is_deep)
        return self.sat(self._start, here, below)

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

    def sat(self, type_: str, here: frozenset[Plain], below: frozenset[Plain]) -> bool:
        """Whether a tree of a type matches some patterns at its root, others strictly below."""
        if type_ not in self._productive:
            return False
        labels = {plain.label for plain in here if plain.label is not None}
        if len(labels) > 1:
            return False
        if type_ == ANY:
            return True
        rule = self._rules[type_]
        if rule.labels is not None and not labels <= rule.labels:
            return False
        demand = (type_, here, below)
        if demand in self._known:
            return self._known[demand]
        if demand in self._open:
            return False
        self._open.add(demand)
        found = self._spread(rule, here, below)
        self._open.discard(demand)
        if found or not self._open:  # within a circle, a no may be only provisional
            self._known[demand] = found
        return found

    def _spread(self, rule: Rule, here: frozenset[Plain], below: frozenset[Plain]) -> bool:
        """Whether what is demanded can be shared out among children."""
        demands = [
            (each, each.node.axis is Axis.DESCENDANT) for plain in here for each in plain.below
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
        self,
        rule: Rule,
        demands: list[tuple[Plain, bool]],
        chosen: tuple[tuple[int, bool], ...],
    ) -> bool:
        given: dict[int, list[tuple[Plain, bool]]] = {}
        for (plain, _), (at, is_deep) in zip(demands, chosen, strict=True):
            given.setdefault(at, []).append((plain, is_deep))
        for at, wanted in given.items():
            child = rule.below[at]
            if child.is_single:
                here = frozenset(plain for plain, is_deep in wanted if not is_deep)
                deep = frozenset(plain for plain, is_deep in wanted if is_deep)
                if not self.sat(child.type, here, deep):
                    return False
                continue
            none = frozenset[Plain]()
            for plain, is_deep in wanted:
                one = frozenset({plain})
                if not (
                    self.sat(child.type, none, one) if is_deep else self.sat(child.type, one, none)
                ):
                    return False
        return True
