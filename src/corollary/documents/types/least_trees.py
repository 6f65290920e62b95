"""Trees of a type that match a pattern, with as little as the type requires beside it.

    grow(t, p) = label of p, or of a production of t
                 grow(t_i, p_i)   for each child p_i of p, in a place t_i of the production
                 grow(t_j)        for each required place t_j that is left

Places are tried in order, and a production ends as soon as one of its parts does; groups of
children are not used. So there may be a tree although none is found.
"""

from collections.abc import Callable, Sequence

from corollary.data_class import dataclass
from corollary.documents.queries.shape import ConjunctivePattern
from corollary.documents.trees.forest import SCALARS, ForestNode, NodeKind
from corollary.documents.types.constraints import LabelPath
from corollary.documents.types.function_types import ANY, Child, Production
from corollary.documents.types.satisfiability import Satisfiability
from corollary.engines.budget import WorkBudget

MAX_DEPTH = 12
"""Deeper trees are not tried."""


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree: a label, a kind, and children."""

    label: str
    kind: NodeKind
    children: tuple["GrownTree", ...] = ()

    def add_to(self, rows: list[ForestNode], parent: int) -> None:
        """Add it to the rows of a forest."""
        here = len(rows)
        rows.append(ForestNode(parent, self.label, self.kind))
        for each in self.children:
            each.add_to(rows, here)


@dataclass(frozen=True, slots=True)
class LeastTrees:
    """Makes trees of types.

    Attributes:
        sat: the types.
        label_at: gives a label to a node below a path that may have any.
        budget: what it may take.
    """

    sat: Satisfiability
    label_at: Callable[[LabelPath], str]
    budget: WorkBudget

    def grow(
        self, type_: str, path: LabelPath, pattern: ConjunctivePattern | None = None, depth: int = 0
    ) -> GrownTree | None:
        """Return a tree of a type that matches a pattern, if one is found.

        Args:
            type_: the type.
            path: where the tree comes.
            pattern: what it has to match at the root.
            depth: of the tree in a larger one.
        """
        if depth > MAX_DEPTH:
            return None
        if type_ == ANY:
            return self._free(path, pattern)
        for production in self.sat.productions(type_):
            self.budget.spend()
            found = self._produce(production, path, pattern, depth)
            if found is not None:
                return found
        return None

    def _free(self, path: LabelPath, pattern: ConjunctivePattern | None) -> GrownTree:
        """Return the tree of a pattern alone."""
        if pattern is None:
            return GrownTree(self.label_at(path), NodeKind.ELEMENT)
        label = self.label_at(path) if pattern.label is None else pattern.label
        below = tuple(self._free((*path, label), each) for each in pattern.children)
        return GrownTree(label, pattern.node.kind or NodeKind.ELEMENT, below)

    def _produce(
        self,
        production: Production,
        path: LabelPath,
        pattern: ConjunctivePattern | None,
        depth: int,
    ) -> GrownTree | None:
        label = None if pattern is None else pattern.label
        kind = production.kind or (pattern and pattern.node.kind) or NodeKind.ELEMENT
        if label is None:
            label = min(production.labels) if production.labels else self.label_at(path)
        wanted = () if pattern is None else pattern.children
        if not production.has_label(label, kind) or (wanted and kind in SCALARS):
            return None
        if pattern is not None and pattern.node.kind not in (None, kind):
            return None
        below = self._children(production, (*path, label), wanted, depth + 1)
        return None if below is None else GrownTree(label, kind, tuple(below))

    def _children(
        self,
        production: Production,
        path: LabelPath,
        wanted: Sequence[ConjunctivePattern],
        depth: int,
    ) -> list[GrownTree] | None:
        free = sorted(production.children, key=lambda each: not each.is_required)
        found: list[GrownTree] = []
        for pattern in wanted:
            for place in free:
                tree = self.grow(place.type, path, pattern, depth)
                if tree is not None:
                    found.append(tree)
                    if place.is_single or place.is_required:
                        free.remove(place)
                        # Where one is required, there may be more.
                        free += [] if place.is_single else [Child(place.type)]
                    break
            else:
                return None
        for place in free:
            if place.is_required:
                tree = self.grow(place.type, path, None, depth)
                if tree is None:
                    return None
                found.append(tree)
        return found
