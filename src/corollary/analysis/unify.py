"""Type variables: nodes that are known to be one type, each with what is known of it.

Two partitions of the same nodes are kept (union-find, with path halving). Nodes of one *kind* are
all numbers, all symbols and so on; nodes of one *domain* moreover have the same digits behind the
point. Operands of `+` have one kind, variables that are joined have one domain.
"""

from dataclasses import dataclass

from corollary.core.functors import ANY, Kinds
from corollary.core.types import Kind, Type
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node has its type: in words, and where that stands."""

    words: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a node: its possible kinds, its scale if any, and why."""

    kinds: Kinds
    reason: Reason | None
    scale: int | None = None
    precision: int = 0


class Unifier:
    """Nodes and what is known of them."""

    def __init__(self) -> None:
        self._kind_parent: list[int] = []
        self._kinds: list[Kinds] = []
        self._reasons: list[Reason | None] = []
        self._domain_parent: list[int] = []
        self._digits: list[tuple[int, int, Reason | None] | None] = []

    def node(self, kinds: Kinds = ANY, reason: Reason | None = None) -> int:
        """Return a new node."""
        number = len(self._kinds)
        self._kind_parent.append(number)
        self._kinds.append(kinds)
        self._reasons.append(reason)
        self._domain_parent.append(number)
        self._digits.append(None)
        return number

    def known(self, node: int) -> Known:
        """Return what is known of a node."""
        root = _root(self._kind_parent, node)
        digits = self._digits[_root(self._domain_parent, node)]
        if digits is None:
            return Known(self._kinds[root], self._reasons[root])
        precision, scale, reason = digits
        return Known(self._kinds[root], reason or self._reasons[root], scale, precision)

    def kind(self, node: int) -> Kind | None:
        """Return the kind of a node: the only one left, or the default of its literals."""
        kinds = self._kinds[_root(self._kind_parent, node)]
        if len(kinds) == 1:
            return next(iter(kinds))
        if kinds == ANY:
            return None
        return next((kind for kind in (Kind.NUMBER, Kind.FLOAT) if kind in kinds), None)

    def narrow(self, node: int, kinds: Kinds, reason: Reason | None) -> bool:
        """Say that a node has one of some kinds; return False, changing nothing, if it cannot."""
        root = _root(self._kind_parent, node)
        left = self._kinds[root] & kinds
        if not left:
            return False
        if left != self._kinds[root]:
            self._kinds[root], self._reasons[root] = left, reason
        return True

    def fix(self, node: int, type_: Type, reason: Reason | None) -> bool:
        """Say that a node has a type; return False if it cannot."""
        if not self.narrow(node, frozenset({type_.kind}), reason):
            return False
        return type_.kind is not Kind.DECIMAL or self.scale(
            node, type_.precision, type_.scale, reason
        )

    def scale(self, node: int, precision: int, scale: int, reason: Reason | None) -> bool:
        """Say how many digits a decimal node has; return False if it has others."""
        root = _root(self._domain_parent, node)
        digits = self._digits[root]
        if digits is not None and digits[1] != scale:
            return False
        if digits is None or digits[0] < precision:
            self._digits[root] = (precision, scale, reason if digits is None else digits[2])
        return True

    def same_kind(self, one: int, other: int) -> bool:
        """Say that two nodes have one kind; return False, changing nothing, if they cannot."""
        first, second = _root(self._kind_parent, one), _root(self._kind_parent, other)
        if first == second:
            return True
        left = self._kinds[first] & self._kinds[second]
        if not left:
            return False
        if len(self._kinds[second]) < len(self._kinds[first]):
            first, second = second, first
        self._kind_parent[second] = first
        self._kinds[first] = left
        return True

    def same_domain(self, one: int, other: int) -> bool:
        """Say that two nodes have one domain; return False if they cannot."""
        if not self.same_kind(one, other):
            return False
        first, second = _root(self._domain_parent, one), _root(self._domain_parent, other)
        digits, others = self._digits[first], self._digits[second]
        if digits is not None and others is not None and digits[1] != others[1]:
            return False
        if digits is None or (others is not None and others[0] > digits[0]):
            digits = others
        self._domain_parent[second] = first
        self._digits[first] = digits
        return True


def _root(parents: list[int], node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node
