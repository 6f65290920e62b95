"""Reads a clause: which of its literals may be folded, and which are pinned."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from corollary.advisor.model.candidates import (
    ANONYMOUS,
    MovableComparison,
    Pinned,
    PinReason,
    SchemeClause,
    as_atom,
    connected_components,
    output_variables,
    term_variables,
    variables_of,
)
from corollary.advisor.model.canonical import in_canonical_order
from corollary.analysis.traverse import Item, clause_terms, conjunctions
from corollary.core import logic
from corollary.core.types import Type
from corollary.core.windows import has_window

Types = Mapping[str, tuple[Type, ...]]


def read_clause(
    clause: logic.Clause,
    head: logic.Atom,
    component: Mapping[str, int],
    types: Types,
    *,
    absorbs: bool,
) -> Iterator[SchemeClause]:
    """Yield what a clause is for one of its heads: a conjunction for each alternative.

    Args:
        clause: the clause.
        head: one of its heads.
        component: the numbers of strongly connected components of relations.
        types: those of the columns of relations.
        absorbs: whether simple comparisons may move into candidates.
    """
    every = (part for term, _ in clause_terms(clause) for part in logic.subterms(term))
    has_aggregate = any(isinstance(part, logic.AggregateTerm) for part in every)
    has_aggregate |= has_window(clause)
    for items in conjunctions(clause.body):
        reader = _ConjunctionReader(head, component, types, absorbs=absorbs and not has_aggregate)
        found = replace(reader.read(items, has_aggregate), is_null_safe=clause.is_null_safe)
        if clause.is_null_safe and has_null_join(found, types):
            pinned = (_pin_literal(each, PinReason.NULL_JOIN) for each in found.literals)
            found = replace(found, literals=(), pinned=(*found.pinned, *pinned))
        yield in_canonical_order(found)


def read_conjunction(
    head: logic.Atom, items: tuple[Item, ...], component: Mapping[str, int], types: Types
) -> SchemeClause:
    """Return what a conjunction is, with nothing in it that may be absorbed."""
    reader = _ConjunctionReader(head, component, types, absorbs=False)
    return in_canonical_order(reader.read(items, has_aggregate=False))


def has_null_join(clause: SchemeClause, types: Types) -> bool:
    """Whether a variable occurs twice, may be null at each place, and is not tested."""
    places: dict[str, list[bool]] = {}
    pinned = (each.literal for each in clause.pinned if each.literal is not None)
    for literal in (*clause.literals, *pinned):
        for slot, type_ in zip(literal.slots, types[literal.relation], strict=True):
            if isinstance(slot, logic.Variable):
                places.setdefault(slot.name, []).append(type_.nullable)
    tested = {
        each.item.left.name
        for each in clause.pinned
        if isinstance(each.item, logic.Comparison)
        and isinstance(each.item.left, logic.Variable)
        and each.item.operator == "="
        and each.item.left == each.item.right
    }
    return any(
        len(nullable) > 1 and all(nullable) and name not in tested
        for name, nullable in places.items()
    )


class _ConjunctionReader:
    def __init__(
        self, head: logic.Atom, component: Mapping[str, int], types: Types, *, absorbs: bool
    ) -> None:
        self._head = head
        self._component = component
        self._types = types
        self._absorbs = absorbs
        self._anonymous = 0

    def read(self, items: tuple[Item, ...], has_aggregate: bool) -> SchemeClause:
        literals: dict[logic.Literal, None] = {}
        pinned: list[Pinned] = []
        comparisons: list[MovableComparison] = []
        positions: dict[object, int] = {}
        for at, item in enumerate(items):
            found = self._read_item(item)
            if found is None:
                continue
            positions.setdefault(found, at)
            if isinstance(found, logic.Literal):
                literals[found] = None
            elif isinstance(found, MovableComparison):
                comparisons.append(found)
            else:
                pinned.append(found)
        if has_aggregate:
            pinned += [_pin_literal(each, PinReason.AGGREGATE) for each in literals]
            literals = {}
        return _pin_unmovable(
            SchemeClause(
                self._head,
                tuple(literals),
                tuple(pinned),
                tuple(comparisons),
                has_aggregate,
                positions,
            )
        )

    def _read_item(self, item: Item) -> logic.Literal | MovableComparison | Pinned | None:
        match item:
            case logic.Truth(value=True):
                return None
            case logic.Atom():
                return self._read_positive(item)
            case logic.Negation():
                return _pin_filter(item, PinReason.NEGATED)
            case logic.Comparison():
                if self._absorbs and _is_simple(item):
                    names = frozenset(each.name for each in term_variables(item))
                    return MovableComparison(item, names)
                return _pin_filter(item, PinReason.COMPARISON)
            case logic.Truth():
                return _pin_filter(item, PinReason.COMPARISON)

    def _read_positive(self, atom: logic.Atom) -> logic.Literal | Pinned:
        typed = zip(atom.arguments, self._types[atom.relation], strict=True)
        slots = tuple(self._slot(each, type_) for each, type_ in typed)
        literal = logic.Literal(atom.relation, slots)  # in a view, `p@new` is `p`
        own = self._component.get(self._head.relation, -1)
        if self._component.get(atom.relation, -2) == own:
            return _pin_literal(literal, PinReason.RECURSIVE)
        if any(
            not isinstance(each, logic.Variable | logic.Constant | logic.Wildcard)
            for each in atom.arguments
        ):
            names = frozenset(each.name for each in term_variables(atom))
            return Pinned(atom, names, PinReason.FUNCTION, literal)
        return literal

    def _slot(self, term: logic.Term, type_: Type) -> logic.Slot:
        if isinstance(term, logic.Variable):
            return logic.Variable(term.name, type_)
        if isinstance(term, logic.Constant):
            return term
        if isinstance(term, logic.Functor) and not list(term_variables(term)):
            return logic.Constant(str(term))
        self._anonymous += 1
        return logic.Variable(f"{ANONYMOUS}{self._anonymous}")


def _pin_filter(item: logic.BodyItem, reason: PinReason) -> Pinned:
    names = (each.name for each in term_variables(item))
    return Pinned(item, frozenset(n for n in names if not n.startswith(ANONYMOUS)), reason)


def _pin_literal(literal: logic.Literal, reason: PinReason) -> Pinned:
    return Pinned(as_atom(literal), variables_of(literal), reason, literal)


def _is_simple(item: logic.Comparison) -> bool:
    """Whether a comparison always has a value and binds nothing, wherever it is evaluated."""
    sides = (item.left, item.right)
    return (
        all(isinstance(each, logic.Variable | logic.Constant) for each in sides)
        and item.operator not in logic.EQUATIONS
    )


def _pin_unmovable(clause: SchemeClause) -> SchemeClause:
    """Pin the comparisons whose variables no single candidate can have all of.

    Pinning one makes its variables significant, which may split a group and leave another
    comparison without a candidate: hence until nothing changes.
    """
    while True:
        significant = clause.significant
        unmovable: list[MovableComparison] = []
        for group in connected_components(clause.leaves, significant):
            bound = output_variables(node for node in group if isinstance(node, logic.Literal))
            unmovable += [
                node
                for node in group
                if isinstance(node, MovableComparison) and not node.variables <= bound
            ]
        unmovable += [each for each in clause.comparisons if each.variables <= significant]
        if not unmovable:
            return clause
        positions = dict(clause.positions)
        pinned = list(clause.pinned)
        for comparison in dict.fromkeys(unmovable):
            filter_ = _pin_filter(comparison.item, PinReason.COMPARISON)
            positions[filter_] = positions.get(comparison, len(positions))
            pinned.append(filter_)
        movable = tuple(each for each in clause.comparisons if each not in unmovable)
        clause = replace(clause, pinned=tuple(pinned), comparisons=movable, positions=positions)
