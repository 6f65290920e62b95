"""What the trees of a type can match: can(f, c), and sat(A, H, D) for grammars.

sat(A, H, D) of the specification: whether there is a tree of type A whose root matches all of H and
that has matches of all of D strictly below. It holds iff a production of A has a label that fits
all of H, everything that it requires has a tree, and what is demanded below can be shared out among
the children: every `/` child of H is *here* at some child, every `//` child of H and everything of
D is *here* or *below* at one. Demands on children of which there may be any number are met each by
a child of its own; those on a single child are met by it together.

Choices are exclusive: all children are those of one production. A group comes as often as is
needed, so for matches its members are children of any number, if all of them have trees.

A tree may have to be of several types at once: it is brought to two nodes, or it is what a
function may bring and what a document may have. sat({A, B}, H, D) takes a production of each; every
child stands for a child in all of them, and what one of them requires is a child for the
others, too. There groups are taken for children of any number: an upper bound, and `is_exact` says
so.

Children that calls bring come in any number: `Production.below` has them beside those of the tree.
Joins are not seen here: `conjunctive.with_labels` turns them into labels beforehand.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import assert_never

from corollary.documents.answers.search_limits import SearchLimits
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import ConjunctivePattern, Node, expand_alternatives
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.function_types import (
    ANY,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from corollary.engines.budget import WorkBudget, WorkLimitError


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
    sat = Satisfiability(grammar, CAN_BRING_LIMITS.budget())
    depths = (False, True) if node.axis is Axis.DESCENDANT else (False,)
    try:
        return any(
            sat.meets([(each, is_deep)]) for each in expand_alternatives(node) for is_deep in depths
        )
    except (WorkLimitError, RecursionError):
        return None


CAN_BRING_LIMITS = SearchLimits(nodes=200_000)
"""What it may take to find out whether a function can bring a tree for a query node."""
Demand = tuple[ConjunctivePattern, bool]
"""A pattern, and whether it is to match strictly below the root of a tree, or at it."""
Patterns = frozenset[ConjunctivePattern]
TypeNames = frozenset[str]


class Satisfiability:
    """The least fixpoint sat(A, H, D): a question that leads back to itself is answered by no.

    Attributes:
        is_exact: whether every yes so far is sure; otherwise some may be a no.
    """

    def __init__(self, grammar: Grammar, budget: WorkBudget | None = None) -> None:
        self.is_exact = True
        self._budget = budget or SearchLimits().budget()
        self._grammar = grammar
        self._known: dict[tuple[TypeNames, Patterns, Patterns], bool] = {}
        self._open: set[tuple[TypeNames, Patterns, Patterns]] = set()
        self._productions = self._find_productive()

    def meets(self, demands: Iterable[Demand]) -> bool:
        """Whether one tree matches patterns at its root, or strictly below it, all together."""
        return self.meets_all(frozenset({self._grammar.start}), demands)

    def meets_all(self, types: TypeNames, demands: Iterable[Demand] = ()) -> bool:
        """Whether one tree that is of all of some types meets demands."""
        several = list(demands)
        here = frozenset(pattern for pattern, is_deep in several if not is_deep)
        below = frozenset(pattern for pattern, is_deep in several if is_deep)
        return self._sat(types - {ANY}, here, below)

    def productions(self, type_: str) -> tuple[Production, ...]:
        """Return the productions of a type that have a finite tree."""
        return self._productions.get(type_, ())

    def _find_productive(self) -> dict[str, tuple[Production, ...]]:
        found: dict[str, tuple[Production, ...]] = {ANY: self._grammar.productions(ANY)}
        while True:
            more = {
                name: productive
                for name in self._grammar.rules
                if (
                    productive := tuple(
                        each
                        for each in self._grammar.productions(name)
                        if each.labels != frozenset()
                        and all(child.type in found for child in each.children if child.is_required)
                    )
                )
                and productive != found.get(name)
            }
            if not more:
                return found
            found |= more

    def _sat(self, types: TypeNames, here: Patterns, below: Patterns) -> bool:
        """Whether a tree of all types matches patterns at its root, others strictly below."""
        if any(type_ not in self._productions for type_ in types):
            return False
        labels = {pattern.label for pattern in here if pattern.label is not None}
        kinds = {pattern.node.kind for pattern in here if pattern.node.kind is not None}
        if len(labels) > 1 or len(kinds) > 1:
            return False
        if kinds and (below or any(pattern.children for pattern in here)):
            return False  # texts, numbers and literals are leaves
        if not types:
            return True
        question = (types, here, below)
        if question in self._known:
            return self._known[question]
        if question in self._open:
            return False
        self._open.add(question)
        try:
            found = any(
                self._fits_root(chosen, labels, kinds) and self._spread(chosen, here, below)
                for chosen in product(*(self._productions[each] for each in sorted(types)))
            )
        finally:
            self._open.discard(question)
        if found or not self._open:  # within a circle, a no may be only provisional
            self._known[question] = found
        return found

    @staticmethod
    def _fits_root(chosen: Sequence[Production], labels: set[str], kinds: set[NodeKind]) -> bool:
        """Whether one label and one kind are allowed by all productions."""
        allowed: frozenset[str] | None = frozenset(labels) if labels else None
        wanted = set(kinds)
        for each in chosen:
            if each.kind is not None:
                wanted.add(each.kind)
            if each.labels is not None:
                allowed = each.labels if allowed is None else allowed & each.labels
        if len(wanted) > 1 or (allowed is not None and not allowed):
            return False
        # What is a text, a number or a literal has no children.
        return not (wanted and any(child.is_required for each in chosen for child in each.children))

    def usable(self, production: Production) -> tuple[Child, ...]:
        """Return the children that a tree of a production may have, groups and calls included."""
        grouped = (
            Child(type_)
            for group in production.groups
            if all(member in self._productions for member in group)
            for type_ in group
        )
        return (*production.below, *grouped)

    def _spread(self, chosen: Sequence[Production], here: Patterns, below: Patterns) -> bool:
        """Whether what is demanded can be distributed over the children."""
        demands = [
            (each, each.node.axis is Axis.DESCENDANT)
            for pattern in here
            for each in pattern.children
        ] + [(each, True) for each in below]
        if demands and any(each.kind is not None for each in chosen):
            return False
        if len(chosen) > 1:
            self.is_exact = self.is_exact and not any(each.groups for each in chosen)
            return any(True for _ in self.families(chosen, demands))
        children = self.usable(chosen[0])
        choices = [
            [
                (at, is_deep)
                for at in range(len(children))
                for is_deep in ((False, True) if can_be_deep else (False,))
            ]
            for _, can_be_deep in demands
        ]
        return any(self._holds(children, demands, each) for each in product(*choices))

    def _holds(
        self, children: Sequence[Child], demands: list[Demand], chosen: tuple[tuple[int, bool], ...]
    ) -> bool:
        """Whether each child can meet what is demanded of it, at its root or below."""
        self._budget.spend()
        given: dict[int, list[Demand]] = {}
        for (pattern, _), (at, is_deep) in zip(demands, chosen, strict=True):
            given.setdefault(at, []).append((pattern, is_deep))
        for at, several in given.items():
            child = children[at]
            # Where there may be any number of children, each demand gets one of its own.
            together = [several] if child.is_single else [[each] for each in several]
            if not all(self.meets_all(frozenset({child.type}), each) for each in together):
                return False
        return True

    def families(
        self, chosen: Sequence[Production], demands: Sequence[Demand] = ()
    ) -> Iterator[list[TypeNames]]:
        """Yield the children of a tree of all productions that are required, or meet demands."""
        search = _FamilySearch(self, [self.usable(each) for each in chosen], self._budget)
        yield from search.run(list(demands))


_Slots = tuple[int, ...]
"""For each production, the slot among its children that a child takes."""


class _FamilySearch:
    """Finds the children of a tree that is of several productions at once.

    Every child takes a slot in each production; a slot for a single child is taken once.
    """

    def __init__(
        self, sat: Satisfiability, children: list[tuple[Child, ...]], budget: WorkBudget
    ) -> None:
        self._sat = sat
        self._children = children
        self._budget = budget
        self._family: list[tuple[_Slots, list[Demand]]] = []

    def run(self, demands: list[Demand]) -> Iterator[list[TypeNames]]:
        """Yield the types of the children of each family."""
        self._budget.spend()
        if demands:
            (pattern, can_be_deep), *rest = demands
            for is_deep in (False, True) if can_be_deep else (False,):
                demand = (pattern, is_deep)
                for at in range(len(self._family)):
                    yield from self._with_demand(at, demand, rest)
                for slots in self._free_slots({}):
                    yield from self._with_child(slots, [demand], rest)
            return
        needed = self._unmet()
        if needed is None:
            yield [self._types(slots) for slots, _ in self._family]
            return
        production, slot = needed
        for slots in self._free_slots({production: slot}):
            yield from self._with_child(slots, [], [])

    def _with_demand(
        self, at: int, demand: Demand, rest: list[Demand]
    ) -> Iterator[list[TypeNames]]:
        slots, before = self._family[at]
        if self._sat.meets_all(self._types(slots), [*before, demand]):
            self._family[at] = (slots, [*before, demand])
            yield from self.run(rest)
            self._family[at] = (slots, before)

    def _with_child(
        self, slots: _Slots, demands: list[Demand], rest: list[Demand]
    ) -> Iterator[list[TypeNames]]:
        if self._sat.meets_all(self._types(slots), demands):
            self._family.append((slots, demands))
            yield from self.run(rest)
            self._family.pop()

    def _types(self, slots: _Slots) -> TypeNames:
        return frozenset(self._children[at][slot].type for at, slot in enumerate(slots)) - {ANY}

    def _free_slots(self, fixed: dict[int, int]) -> Iterator[_Slots]:
        options = []
        for at, children in enumerate(self._children):
            taken = {slots[at] for slots, _ in self._family}
            options.append(
                [
                    slot
                    for slot, child in enumerate(children)
                    if fixed.get(at, slot) == slot and not (child.is_single and slot in taken)
                ]
            )
        return product(*options)

    def _unmet(self) -> tuple[int, int] | None:
        """Return a slot that has to be taken, and is not: of which production, and where."""
        for at, children in enumerate(self._children):
            taken = {slots[at] for slots, _ in self._family}
            for slot, child in enumerate(children):
                if child.is_required and slot not in taken:
                    return at, slot
        return None
