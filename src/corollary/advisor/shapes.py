"""Shapes: the variables of a node, and the functional dependencies among them.

| node | dependencies F |
|---|---|
| literal of r | those of r, position by position; constants vanish on both sides |
| literal of a stored view | those of the literals it is made of, its hidden variables included |
| candidate with one body | those of its leaves: hidden variables count |
| union of size degree k | k anonymous generators that determine every column |
"""

from collections.abc import Iterable
from dataclasses import dataclass

from corollary.advisor.candidates import Candidate, Leaf, Node, expanded, variables_of
from corollary.advisor.degree import Masks, closure, degree
from corollary.advisor.scheme import RelationForm, Scheme, View
from corollary.core.printer import print_literal
from corollary.core.rules import Literal
from corollary.core.terms import Slot, Variable

Dependencies = tuple[tuple[frozenset[str], frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a node shows, and what determines what in it."""

    variables: frozenset[str]
    dependencies: Dependencies = ()


class Shapes:
    """The shapes of nodes over a scheme; each is found once."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._literals: dict[Literal, Shape] = {}
        self._candidates: dict[Candidate, tuple[Shape, int]] = {}

    def of(self, node: Node) -> Shape:
        """Return the shape of a node."""
        if isinstance(node, Candidate):
            return self._candidate(node)[0]
        if isinstance(node, Literal):
            return self._literal(node)
        return Shape(node.variables)

    def degree_of(self, node: Candidate) -> int:
        """Return the clausal arity of a candidate: it has at most N^that tuples."""
        return self._candidate(node)[1]

    def degree(
        self,
        target: Iterable[str],
        shapes: Iterable[Shape],
        bound: frozenset[str] = frozenset(),
    ) -> int:
        """Return deg(target | shapes), some variables being given."""
        dependencies = [each for shape in shapes for each in shape.dependencies]
        if bound:
            dependencies.append((frozenset(), bound))
        numbers = Numbers()
        masks = tuple((numbers.mask(left), numbers.mask(right)) for left, right in dependencies)
        return degree(numbers.mask(target), masks)

    # --- candidates ----------------------------------------------------------------------------

    def _candidate(self, node: Candidate) -> tuple[Shape, int]:
        found = self._candidates.get(node)
        if found is None:
            shown = frozenset(node.variables)
            bodies = [self._body(each) for each in expanded(node)]
            size = max(self.degree(shown, [each]) for each in bodies)
            if len(bodies) == 1:
                shape = Shape(shown, bodies[0].dependencies)
            else:
                shape = Shape(shown, generated(f"union{id(node)}", shown, size))
            found = self._candidates[node] = shape, size
        return found

    def _body(self, leaves: Iterable[Leaf]) -> Shape:
        shapes = [self.of(leaf) for leaf in leaves]
        shown = frozenset().union(*(each.variables for each in shapes))
        return Shape(shown, tuple(each for shape in shapes for each in shape.dependencies))

    # --- literals ------------------------------------------------------------------------------

    def _literal(self, literal: Literal) -> Shape:
        found = self._literals.get(literal)
        if found is None:
            relation = self._scheme.relations.get(literal.relation)
            dependencies: Dependencies = ()
            if relation is not None:
                dependencies = _declared(relation, literal.slots)
                if relation.is_stored and relation.view is not None:
                    dependencies += self._unfolded(relation.view, literal)
            found = self._literals[literal] = Shape(variables_of(literal), dependencies)
        return found

    def _unfolded(self, view: View, literal: Literal) -> Dependencies:
        """Return what holds in a stored view because of what it is made of."""
        bodies = [self._body(body) for body in view.bodies]
        text = print_literal(literal)
        if len(bodies) > 1:
            size = max(self.degree(view.variables, [each]) for each in bodies)
            return generated(text, variables_of(literal), size)
        slots = dict(zip(view.variables, literal.slots, strict=True))

        def renamed(names: frozenset[str]) -> frozenset[str]:
            shown = {slots.get(name, Variable(f"{text}•{name}")) for name in names}
            return frozenset(each.name for each in shown if isinstance(each, Variable))

        return tuple((renamed(left), renamed(right)) for left, right in bodies[0].dependencies)


def _declared(relation: RelationForm, slots: tuple[Slot, ...]) -> Dependencies:
    def names(columns: frozenset[int]) -> frozenset[str]:
        at = (slots[column] for column in columns)
        return frozenset(each.name for each in at if isinstance(each, Variable))

    return tuple((names(each.left), names(each.right)) for each in relation.dependences)


def generated(name: str, shown: frozenset[str], size: int) -> Dependencies:
    """Return the dependency of a set of known size: so many generators determine everything."""
    if size >= len(shown):
        return ()
    return ((frozenset(f"{name}•{number}" for number in range(size)), shown),)


class Numbers:
    """Numbers variables as they come."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def mask(self, names: Iterable[str]) -> int:
        """Return variables as a mask."""
        found = 0
        for name in names:
            found |= self._bits.setdefault(name, 1 << len(self._bits))
        return found


# --- relations -----------------------------------------------------------------------------------


def effective_arity(relation: RelationForm, shapes: Shapes) -> int:
    """Return the size of a smallest key, hidden ones of stored views included."""
    slots = tuple(Variable(f"c{at}") for at in range(relation.arity))
    literal = Literal(relation.name, slots)
    return shapes.degree(variables_of(literal), [shapes.of(literal)])


def paper_arity(relation: RelationForm) -> int:
    """Return the paper's effective arity: the columns on no right side, which may be too few."""
    rights = frozenset().union(*(each.right - each.left for each in relation.dependences))
    return relation.arity - len(rights)


def paper_clausal_arity(literal: Literal, relation: RelationForm) -> int:
    """Return the paper's clausal arity of a literal."""
    return min(paper_arity(relation), len(variables_of(literal)))


def is_key(columns: frozenset[int], relation: RelationForm) -> bool:
    """Whether some columns determine all others."""
    masks: Masks = tuple(
        (sum(1 << at for at in each.left), sum(1 << at for at in each.right))
        for each in relation.dependences
    )
    every = (1 << relation.arity) - 1
    return closure(sum(1 << at for at in columns), masks) == every
