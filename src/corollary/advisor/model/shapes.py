"""Closures and degrees: how many variables determine others, hence how large a join can get.

    deg(T | S) = min |G| over sets G of variables of S, hidden ones included, with T ⊆ cl(G)

Each assignment to G gives at most one T-tuple, so the projection of the join of S on T has at most
N^deg tuples. Sets of variables are bit masks here.

| symbol | name here |
|---|---|
| F(S) | dependencies, as pairs of masks |
| cl(V) | `closure` |
| deg(T given S) | `degree` |

The *shape* of a node are its variables, and the functional dependencies F among them:

| node | dependencies F |
|---|---|
| literal of r | those of r, position by position; constants vanish on both sides |
| literal of a stored view | those of the literals in its rules, hidden variables included |
| candidate with one body | those of its leaves: hidden variables count |
| union of size degree k | k anonymous generators that determine every column |
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

from corollary.advisor.model import candidates
from corollary.advisor.model.scheme import Scheme, SchemeRelation, ViewDefinition
from corollary.core.logic import Literal, Slot, Variable
from corollary.core.printer import print_literal
from corollary.data_class import dataclass

EXHAUSTIVE_MAX_VARIABLES = 16
"""With more variables that could help, the key is reduced greedily: a minimum key is NP-hard."""

Masks = tuple[tuple[int, int], ...]


def closure(known: int, dependencies: Iterable[tuple[int, int]]) -> int:
    """Return all variables that some variables determine.

    >>> bin(closure(0b001, [(0b001, 0b010), (0b011, 0b100)]))
    '0b111'
    """
    rules = list(dependencies)
    before = -1
    while known != before:
        before = known
        for left, right in rules:
            if left & known == left:
                known |= right
    return known


@lru_cache(maxsize=1 << 16)
def degree(target: int, dependencies: Masks) -> int:
    """Return the size of a smallest set of variables that determines the target.

    >>> degree(0b110, ((0b001, 0b110),))  # a hidden key
    1
    """
    return len(generators(target, dependencies))


@lru_cache(maxsize=1 << 16)
def generators(target: int, dependencies: Masks) -> tuple[int, ...]:
    """Return a smallest set of variables, each a mask, that determines the target."""
    useful = tuple((left, right & ~left) for left, right in dependencies if right & ~left)
    if not useful:
        return bits(target)
    lefts = rights = 0
    for left, right in useful:
        lefts, rights = lefts | left, rights | right
    # What is on no right side can only determine itself, so it is in every generating set.
    core = target & ~rights
    known = closure(core, useful)
    missing = target & ~known
    if not missing:
        return bits(core)
    pool = bits((lefts | missing) & ~known)
    if len(pool) > EXHAUSTIVE_MAX_VARIABLES:
        return bits(_reduce(target, useful))
    for size in range(1, missing.bit_count()):
        for chosen in combinations(pool, size):
            if not missing & ~closure(core | sum(chosen), useful):
                return (*bits(core), *chosen)
    return (*bits(core), *bits(missing))


def _reduce(target: int, dependencies: Masks) -> int:
    """Remove what the others determine: an irreducible set, though perhaps not a smallest one."""
    kept = target
    for each in bits(target):
        if not target & ~closure(kept & ~each, dependencies):
            kept &= ~each
    return kept


def bits(mask: int) -> tuple[int, ...]:
    """Return the single bits of a mask.

    >>> bits(0b101)
    (1, 4)
    """
    found = []
    while mask:
        low = mask & -mask
        found.append(low)
        mask ^= low
    return tuple(found)


# --- shapes: the variables of a node, and the functional dependencies among them -----------------


Dependencies = tuple[tuple[frozenset[str], frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The variables that a node outputs, and the dependencies among all its variables."""

    variables: frozenset[str]
    dependencies: Dependencies = ()


class NodeShapes:
    """The shapes of nodes over a scheme, each computed once."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._literals: dict[Literal, NodeShape] = {}
        self._candidates: dict[candidates.Candidate, tuple[NodeShape, int]] = {}

    def shape_of(self, node: candidates.Node) -> NodeShape:
        """Return the shape of a node."""
        if isinstance(node, candidates.Candidate):
            return self._candidate(node)[0]
        if isinstance(node, Literal):
            return self._literal(node)
        return NodeShape(node.variables)

    def clausal_arity(self, node: candidates.Candidate) -> int:
        """Return the clausal arity of a candidate: it has at most N^that tuples."""
        return self._candidate(node)[1]

    def degree(self, target: Iterable[str], shapes: Iterable[NodeShape]) -> int:
        """Return deg(target | shapes)."""
        variable_bits = VariableBits()
        masks = variable_bits.masks(each for shape in shapes for each in shape.dependencies)
        return degree(variable_bits.mask(target), masks)

    # --- candidates ----------------------------------------------------------------------------

    def _candidate(self, node: candidates.Candidate) -> tuple[NodeShape, int]:
        found = self._candidates.get(node)
        if found is None:
            columns = frozenset(node.variables)
            bodies = [self._body(each) for each in candidates.expand(node)]
            size = max(self.degree(columns, [each]) for each in bodies)
            if len(bodies) == 1:
                shape = NodeShape(columns, bodies[0].dependencies)
            else:
                # No dependency of a single body holds in the union, but the size bound does.
                shape = NodeShape(
                    columns, _generated_dependencies(f"union{id(node)}", columns, size)
                )
            found = self._candidates[node] = shape, size
        return found

    def _body(self, leaves: Iterable[candidates.Leaf]) -> NodeShape:
        nodes = tuple(leaves)
        dependencies = (each for leaf in nodes for each in self.shape_of(leaf).dependencies)
        return NodeShape(candidates.output_variables(nodes), tuple(dependencies))

    # --- literals ------------------------------------------------------------------------------

    def _literal(self, literal: Literal) -> NodeShape:
        found = self._literals.get(literal)
        if found is None:
            relation = self._scheme.relations.get(literal.relation)
            dependencies: Dependencies = ()
            if relation is not None:
                dependencies = _declared_dependencies(relation, literal.slots)
                if relation.is_stored and relation.view is not None:
                    dependencies += self._unfold(relation.view, literal)
            found = self._literals[literal] = NodeShape(
                candidates.variables_of(literal), dependencies
            )
        return found

    def _unfold(self, view: ViewDefinition, literal: Literal) -> Dependencies:
        """Return the dependencies of a stored view that follow from its rules."""
        bodies = [self._body(body) for body in view.bodies]
        text = print_literal(literal)
        if len(bodies) > 1:
            size = max(self.degree(view.variables, [each]) for each in bodies)
            return _generated_dependencies(text, candidates.variables_of(literal), size)
        slots = dict(zip(view.variables, literal.slots, strict=True))

        def rename(names: frozenset[str]) -> frozenset[str]:
            # Hidden variables are named after the literal: two literals of a view differ in them.
            terms = {slots.get(name, Variable(f"{text}•{name}")) for name in names}
            return frozenset(each.name for each in terms if isinstance(each, Variable))

        return tuple((rename(left), rename(right)) for left, right in bodies[0].dependencies)


def _declared_dependencies(relation: SchemeRelation, slots: tuple[Slot, ...]) -> Dependencies:
    def names(columns: frozenset[int]) -> frozenset[str]:
        terms = (slots[column] for column in columns)
        return frozenset(each.name for each in terms if isinstance(each, Variable))

    return tuple((names(each.left), names(each.right)) for each in relation.dependencies)


def _generated_dependencies(name: str, columns: frozenset[str], size: int) -> Dependencies:
    """Return the dependency of a relation of known size degree: k generators determine all."""
    if size >= len(columns):
        return ()
    return ((frozenset(f"{name}•{number}" for number in range(size)), columns),)


class VariableBits:
    """Assigns bits to variables, in the order in which they come."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def mask(self, names: Iterable[str]) -> int:
        """Return a set of variables as a mask."""
        found = 0
        for name in names:
            found |= self._bits.setdefault(name, 1 << len(self._bits))
        return found

    def masks(self, dependencies: Iterable[tuple[frozenset[str], frozenset[str]]]) -> Masks:
        """Return dependencies as pairs of masks."""
        return tuple((self.mask(left), self.mask(right)) for left, right in dependencies)


# --- relations -----------------------------------------------------------------------------------


def effective_arity(relation: SchemeRelation, shapes: NodeShapes) -> int:
    """Return the size of a smallest key, hidden keys of stored views included."""
    slots = tuple(Variable(f"c{at}") for at in range(relation.arity))
    literal = Literal(relation.name, slots)
    return shapes.degree(candidates.variables_of(literal), [shapes.shape_of(literal)])


def paper_arity(relation: SchemeRelation) -> int:
    """Return the paper's effective arity: the columns on no right side, which may be too few."""
    rights = frozenset().union(*(each.right - each.left for each in relation.dependencies))
    return relation.arity - len(rights)
