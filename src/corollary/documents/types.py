"""Types of functions: what the trees that they bring look like, and what those can match.

| written                                  | means                                              |
|------------------------------------------|----------------------------------------------------|
| `Labels({"a", "b"})`                     | the root of each tree is labelled `a` or `b`       |
| `Grammar("A", {"A": Rule(…), …})`        | each tree is an `A`, and below it what the rule says |

A rule allows labels, and children of further types, at most one or any number of each, some of them
required. `ANY` is the type of all trees. `sat(A, H, D)` of the specification: whether there is a
tree of type A whose root matches all of H and that has matches of all of D strictly below.
Exclusive choices between children are not supported: with them it is NP-hard (Theorem 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import assert_never

from corollary.documents.pattern import Axis
from corollary.documents.shape import Fork, Group, Node

ANY = "ANY"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that the roots of a function's trees may have."""

    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Child:
    """Children of a type: required or not, at most one or any number."""

    type: str
    is_required: bool = False
    is_single: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """What a tree of a type may be: its labels (None for any), and its children."""

    labels: frozenset[str] | None
    children: tuple[Child, ...] = ()


@dataclass(frozen=True, slots=True)
class Grammar:
    """Types by name, and the one that a function's trees have."""

    start: str
    rules: Mapping[str, Rule] = field(hash=False)


FunctionType = Labels | Grammar


def roots_allowed(type_: FunctionType | None) -> frozenset[str] | None:
    """Return the labels that the trees of a function begin with; None if they may be any."""
    match type_:
        case None:
            return None
        case Labels(labels=labels):
            return labels
        case Grammar(start=start, rules=rules):
            return None if start == ANY else rules[start].labels
        case _:
            assert_never(type_)


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
            return any(_Satisfiable(type_).brings(node.axis, each) for each in expansions(node))
        case _:
            assert_never(type_)


# --- patterns without forks ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plain:
    """A query node without forks below it: a fork's alternatives are patterns of their own."""

    node: Node
    below: tuple["Plain", ...]

    @property
    def label(self) -> str | None:
        """The label that is asked for."""
        return self.node.label


def expansions(node: Node) -> list[Plain]:
    """Return the patterns without forks that a node with everything below it stands for."""
    return [Plain(node, below) for below in _expanded(node.group)]


def _expanded(group: Group) -> list[tuple[Plain, ...]]:
    options: list[list[tuple[Plain, ...]]] = []
    for branch in group.branches:
        match branch:
            case Node():
                options.append([(each,) for each in expansions(branch)])
            case Fork(alternatives=alternatives):
                options.append([each for one in alternatives for each in _expanded(one)])
            case _:
                assert_never(branch)
    return [tuple(each for part in parts for each in part) for parts in product(*options)]


# --- grammars ------------------------------------------------------------------------------------

Demand = tuple[str, frozenset[Plain], frozenset[Plain]]
"""A type, what its root has to match, and what has to match strictly below."""


class _Satisfiable:
    """The least fixpoint sat(A, H, D): what is being asked already, does not hold by itself."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        self._start = grammar.start
        self._known: dict[Demand, bool] = {}
        self._open: set[Demand] = set()
        self._productive = self._find_productive()

    def brings(self, axis: Axis | None, plain: Plain) -> bool:
        one, none = frozenset({plain}), frozenset[Plain]()
        here = self.sat(self._start, one, none)
        return here or (axis is Axis.DESCENDANT and self.sat(self._start, none, one))

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
                for at in range(len(rule.children))
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
            child = rule.children[at]
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
