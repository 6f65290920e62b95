"""Reading a clause: which of its literals may be folded, and which are pinned."""

from collections.abc import Iterator, Mapping

from corollary.advisor.candidates import variables_of
from corollary.advisor.canonical import in_canonical_order
from corollary.advisor.clauses import ClauseForm, Pinned, Test, term_variables
from corollary.advisor.folding import components
from corollary.analysis.traverse import Item, conjunctions, parts, terms
from corollary.core.rules import (
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Literal,
    Negation,
    Truth,
    names_in,
)
from corollary.core.terms import Aggregate, Constant, Functor, Slot, Term, Variable, Wildcard
from corollary.core.types import Type

Types = Mapping[str, tuple[Type, ...]]

ANONYMOUS = "_•"
"""Begins the name of a variable that was written `_`."""


def clause_forms(
    clause: Clause, head: Atom, component: Mapping[str, int], types: Types, *, absorbs: bool
) -> Iterator[ClauseForm]:
    """Yield the forms of a clause for one of its heads: one for each alternative.

    Args:
        clause: the clause.
        head: one of its heads.
        component: the numbers of strongly connected components of relations.
        types: those of the columns of relations.
        absorbs: whether simple comparisons may move into candidates.
    """
    every = (part for term, _ in terms(clause) for part in parts(term))
    obstacle = "aggregate" if any(isinstance(part, Aggregate) for part in every) else ""
    for items in conjunctions(clause.body):
        reader = _Reader(head, component, types, absorbs=absorbs and not obstacle)
        yield in_canonical_order(reader.form(items, obstacle))


class _Reader:
    """Reads one conjunction."""

    def __init__(
        self, head: Atom, component: Mapping[str, int], types: Types, *, absorbs: bool
    ) -> None:
        self._head = head
        self._component = component
        self._types = types
        self._absorbs = absorbs
        self._anonymous = 0
        self._positions: dict[object, int] = {}

    def form(self, items: tuple[Item, ...], obstacle: str) -> ClauseForm:
        """Return the clause."""
        literals: dict[Literal, None] = {}
        pinned: list[Pinned] = []
        tests: list[Test] = []
        for at, item in enumerate(items):
            found = self._read(item)
            if found is None:
                continue
            self._positions.setdefault(found, at)
            if isinstance(found, Literal):
                literals[found] = None
            elif isinstance(found, Test):
                tests.append(found)
            else:
                pinned.append(found)
        if obstacle:
            pinned += [_as_pinned(each, "aggregate") for each in literals]
            literals = {}
        made = ClauseForm(
            self._head, tuple(literals), tuple(pinned), tuple(tests), obstacle, self._positions
        )
        return _settled(made)

    def _read(self, item: Item) -> Literal | Test | Pinned | None:
        match item:
            case Truth(value=True):
                return None
            case Atom():
                return self._positive(item)
            case Negation():
                return _pinned(item, "negated")
            case Comparison():
                if self._absorbs and _is_simple(item):
                    return Test(item, frozenset(each.name for each in term_variables(item)))
                return _pinned(item, "comparison")
            case Truth():
                return _pinned(item, "comparison")

    def _positive(self, atom: Atom) -> Literal | Pinned:
        typed = zip(atom.arguments, self._types[atom.relation], strict=True)
        plain = tuple(self._slot(each, type_) for each, type_ in typed)
        literal = Literal(atom.relation, plain, sign=atom.sign, state=atom.state)
        own = self._component.get(self._head.relation, -1)
        if self._component.get(atom.relation, -2) == own:
            return _as_pinned(literal, "recursive")
        if any(not isinstance(each, Variable | Constant | Wildcard) for each in atom.arguments):
            held = frozenset(each.name for each in term_variables(atom))
            return Pinned(atom, held, "function", literal)
        return literal

    def _slot(self, term: Term, type_: Type) -> Slot:
        if isinstance(term, Variable):
            return Variable(term.name, type_)
        if isinstance(term, Constant):
            return term
        if isinstance(term, Functor) and not list(term_variables(term)):
            return Constant(str(term))
        self._anonymous += 1
        return Variable(f"{ANONYMOUS}{self._anonymous}")


def _pinned(item: BodyItem, why: str) -> Pinned:
    held = frozenset(
        each.name for each in term_variables(item) if not each.name.startswith(ANONYMOUS)
    )
    return Pinned(item, held, why)


def _as_pinned(literal: Literal, why: str) -> Pinned:
    item = Atom(literal.relation, literal.slots, literal.sign, literal.state)
    return Pinned(item, frozenset(names_in(literal)), why, literal)


def _is_simple(item: Comparison) -> bool:
    """Whether a comparison always has a value and binds nothing, wherever it stands."""
    sides = (item.left, item.right)
    return all(isinstance(each, Variable | Constant) for each in sides) and item.operator != "="


def _settled(clause: ClauseForm) -> ClauseForm:
    """Pin the tests that no single candidate can have all variables of."""
    while True:
        significant = clause.significant
        misfits = []
        for group in components((*clause.literals, *clause.tests), significant):
            bound = frozenset().union(*(variables_of(n) for n in group if isinstance(n, Literal)))
            misfits += [
                node for node in group if isinstance(node, Test) and not node.variables <= bound
            ]
        misfits += [each for each in clause.tests if each.variables <= significant]
        if not misfits:
            return clause
        positions = dict(clause.positions)
        pinned = list(clause.pinned)
        for test in dict.fromkeys(misfits):
            made = _pinned(test.item, "comparison")
            positions[made] = positions.get(test, len(positions))
            pinned.append(made)
        tests = tuple(each for each in clause.tests if each not in misfits)
        clause = ClauseForm(
            clause.head, clause.literals, tuple(pinned), tests, clause.obstacle, positions
        )
