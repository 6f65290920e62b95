"""The dependency graph of a program as written, with the atoms that its arcs come from."""

from collections.abc import Mapping

from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import AtomUse
from corollary.core.graph import component_numbers
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Which relation reads which.

    Attributes:
        reads: for each relation, the relations it reads, with the first atom that does so.
        nonmonotonic: for each arc through a negation (true) or an aggregate, its first atom.
        component: the number of each relation's strongly connected component.
    """

    reads: Mapping[str, Mapping[str, AtomUse]]
    nonmonotonic: Mapping[tuple[str, str, bool], AtomUse]
    component: Mapping[str, int]

    def is_recursive(self, head: str, body: str) -> bool:
        """Whether a relation reads another one that depends on it."""
        return self.component.get(head, -1) == self.component.get(body, -2)


def dependency_graph(resolved: ResolvedProgram) -> DependencyGraph:
    """Return the dependency graph; triggers are not part of it, as they define no relation."""
    reads: dict[str, dict[str, AtomUse]] = {}
    nonmonotonic: dict[tuple[str, str, bool], AtomUse] = {}
    for clause, uses in zip(resolved.clauses, resolved.uses, strict=True):
        for head in clause.heads:
            if head.sign:
                continue
            targets = reads.setdefault(head.relation, {})
            for use in uses:
                targets.setdefault(use.atom.relation, use)
                if use.is_negated or use.is_aggregated:
                    key = (head.relation, use.atom.relation, use.is_negated)
                    nonmonotonic.setdefault(key, use)
    return DependencyGraph(reads, nonmonotonic, component_numbers(reads))
