"""Type variables: nodes, and what is known of their types.

Two partitions of the same nodes are kept (union-find, with path halving). Nodes of one *kind* are
all numbers, all symbols and so on; nodes of one *domain* moreover have the same digits after the
point. Operands of `+` have one kind, variables that are joined have one domain.
"""

from dataclasses import replace

from corollary.core.functors.spec import ANY, NESTED_SHAPES, Kinds
from corollary.core.types import NESTED, SYMBOL, Kind, RecordType, Type, nested
from corollary.data_class import dataclass
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node has its type: in words, and where in the text."""

    words: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class PartialType:
    """What is known of a node's type: its kinds, its digits or record type if any, and why."""

    kinds: Kinds
    reason: Reason | None
    scale: int | None = None
    precision: int = 0
    record: RecordType | None = None

    @classmethod
    def of(cls, type_: Type) -> "PartialType":
        """Return a type of which everything is known."""
        kinds = frozenset({type_.inferred_kind})
        if not type_.is_decimal:
            return cls(kinds, None, record=type_.record)
        return cls(kinds, None, type_.scale, type_.precision)


MEMBERS = {Kind.ARRAY: ("element",), Kind.MAP: ("key", "value")}
"""The members of nested types but structs."""


class Unifier:
    """The nodes, and two partitions of them: by kind and by domain."""

    def __init__(self) -> None:
        self._kind_parent: list[int] = []
        self._kinds: list[Kinds] = []
        self._reasons: list[Reason | None] = []
        self._records: list[RecordType | None] = []
        self._members: dict[int, dict[str, int]] = {}
        self._fields: dict[int, tuple[str, ...]] = {}
        self._domain_parent: list[int] = []
        self._digits: list[tuple[int, int, Reason | None] | None] = []

    def new_node(self, kinds: Kinds = ANY, reason: Reason | None = None) -> int:
        """Return a new node."""
        number = len(self._kinds)
        self._kind_parent.append(number)
        self._kinds.append(kinds)
        self._reasons.append(reason)
        self._records.append(None)
        self._domain_parent.append(number)
        self._digits.append(None)
        return number

    def partial_type(self, node: int) -> PartialType:
        """Return what is known of a node's type."""
        root = _root(self._kind_parent, node)
        digits = self._digits[_root(self._domain_parent, node)]
        if digits is None:
            known = self._records[root]
            return PartialType(self._kinds[root], self._reasons[root], record=known)
        precision, scale, reason = digits
        return PartialType(self._kinds[root], reason or self._reasons[root], scale, precision)

    def kind(self, node: int) -> Kind | None:
        """Return the kind of a node: the only one possible, or the default of its literals."""
        kinds = self._kinds[_root(self._kind_parent, node)]
        if len(kinds) == 1:
            return next(iter(kinds))
        if kinds == ANY:
            return None
        return next((kind for kind in (Kind.NUMBER, Kind.FLOAT) if kind in kinds), None)

    def type_of(self, node: int) -> Type | None:
        """Return the type of a node, not nullable; None if it is not known."""
        kind = self.kind(node)
        if kind is Kind.RECORD:
            record = self.record(node)
            return None if record is None else replace(SYMBOL, record=record)
        if kind in NESTED:
            root = _root(self._kind_parent, node)
            names = MEMBERS.get(kind) or self._fields.get(root, ())
            types = [(name, self.type_of(self.member(root, name))) for name in names]
            inner = [(name, each) for name, each in types if each is not None]
            return nested(kind, inner) if names and len(inner) == len(names) else None
        if kind is not Kind.DECIMAL:
            return None if kind is None else Type(kind)
        known = self.partial_type(node)
        if known.scale is None:
            return None
        return Type(kind, precision=known.precision, scale=known.scale)

    def record(self, node: int) -> RecordType | None:
        """Return the record type of a node, if it is known."""
        return self._records[_root(self._kind_parent, node)]

    def member(self, node: int, name: str = "element") -> int:
        """Return the node of the elements of an array, or of a field of a struct."""
        members = self._members.setdefault(_root(self._kind_parent, node), {})
        if name not in members:
            members[name] = self.new_node()
        return members[name]

    def assign_fields(self, node: int, names: tuple[str, ...]) -> bool:
        """Let a struct have some fields and no others; return False if it cannot."""
        root = _root(self._kind_parent, node)
        return self._fields.setdefault(root, names) == names and (
            set(self._members.get(root, ())) <= set(names)
        )

    def inside(self, node: int, shape: str, reason: Reason | None) -> list[tuple[int, str]]:
        """Return the nodes inside a node of some shape, each with the word that it has there."""
        if shape[0] not in NESTED_SHAPES:
            return [(node, shape)]
        kind, inside = NESTED_SHAPES[shape[0]], shape[1:-1]
        self.restrict(node, frozenset({kind}), reason)
        if kind is Kind.ARRAY:
            return self.inside(self.member(node), inside, reason)
        names = ("key", "value")
        if kind is Kind.STRUCT:
            self.assign_fields(node, names)
        return [
            (self.member(node, name), word)
            for name, word in zip(names, inside.split(","), strict=True)
        ]

    def restrict(self, node: int, kinds: Kinds, reason: Reason | None) -> bool:
        """Let a node have one of some kinds; return False, changing nothing, if it cannot."""
        root = _root(self._kind_parent, node)
        left = self._kinds[root] & kinds
        if not left:
            return False
        if left != self._kinds[root]:
            self._kinds[root], self._reasons[root] = left, reason
        return True

    def assign(self, node: int, type_: Type, reason: Reason | None) -> bool:
        """Let a node have a type; return False if it cannot."""
        if not self.restrict(node, frozenset({type_.inferred_kind}), reason):
            return False
        if type_.record is not None:
            root = _root(self._kind_parent, node)
            known = self._records[root] or type_.record
            self._records[root] = known
            return known == type_.record
        if type_.members:
            names = tuple(name for name, _ in type_.members)
            return (not type_.is_struct or self.assign_fields(node, names)) and all(
                self.assign(self.member(node, name), each, reason) for name, each in type_.members
            )
        return not type_.is_decimal or self.assign_scale(node, type_.precision, type_.scale, reason)

    def assign_scale(self, node: int, precision: int, scale: int, reason: Reason | None) -> bool:
        """Let a decimal node have a number of digits; return False if its scale is another."""
        root = _root(self._domain_parent, node)
        digits = self._digits[root]
        if digits is not None and digits[1] != scale:
            return False
        if digits is None or digits[0] < precision:
            self._digits[root] = (precision, scale, reason if digits is None else digits[2])
        return True

    def unify_kinds(self, one: int, other: int) -> bool:
        """Let two nodes have one kind; return False, changing nothing, if they cannot."""
        first, second = _root(self._kind_parent, one), _root(self._kind_parent, other)
        if first == second:
            return True
        left = self._kinds[first] & self._kinds[second]
        records = {self._records[each] for each in (first, second)} - {None}
        if not left or len(records) > 1:
            return False
        # The node with fewer kinds becomes the root, as its reason explains the type better.
        if len(self._kinds[second]) < len(self._kinds[first]):
            first, second = second, first
        self._kind_parent[second] = first
        self._kinds[first] = left
        self._records[first] = next(iter(records), None)
        are_one = True
        for name, member in self._members.pop(second, {}).items():
            are_one &= self.unify_domains(self.member(first, name), member)
        names = self._fields.pop(second, None) or self._fields.get(first)
        return are_one and (names is None or self.assign_fields(first, names))

    def unify_domains(self, one: int, other: int) -> bool:
        """Let two nodes have one domain; return False if they cannot."""
        if not self.unify_kinds(one, other):
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
