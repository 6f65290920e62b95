"""Which stored views do not pay: what queries save with them against what their upkeep costs.

    saved = Σ_q f_q · work of computing the view when q is asked      (for queries that read it)
    upkeep = Σ_r u_r · work of maintaining it for one changed tuple of r

A view that is published or that a constraint reads is needed anyway, and is left out.
"""

from collections.abc import Iterator

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model.candidates import Candidate, in_order
from corollary.advisor.model.scheme import Options, Scheme
from corollary.advisor.model.shapes import NodeShapes
from corollary.core.graph import reachable
from corollary.core.program import Program
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class ViewAccount:
    """The rows that a stored view saves and costs per hour, and its bytes."""

    view: str
    saved: float
    upkeep: float
    bytes: float

    @property
    def is_paying(self) -> bool:
        """Whether it is worth keeping."""
        return self.saved >= self.upkeep and self.saved > 0


def account_views(
    scheme: Scheme, program: Program, sizes: RelationSizes, options: Options
) -> Iterator[ViewAccount]:
    """Yield the account of every stored view that exists only for queries."""
    shapes = NodeShapes(scheme)
    needed = {each.relation for each in program.directives if each.name == "output"}
    needed |= {each.relation for each in program.reactions}
    for name, relation in scheme.relations.items():
        clauses = scheme.clauses.get(name, ())
        if not clauses or not relation.is_materialised or name in needed:
            continue
        estimator = Estimator(scheme, shapes, sizes)
        work = sum(estimator.estimate_clause(each, each.leaves).work for each in clauses)
        frequency = sum(
            query.frequency
            for query in scheme.queries
            if name == query.relation or name in _looked_up(scheme, query.relation)
        )
        views = (
            Candidate(in_order(each.literals, each.head_variables), (each.leaves,))
            for each in clauses
            if each.literals
        )
        upkeep = sum(estimator.hourly_upkeep(view, options.updates) for view in views)
        size = sizes.rows.get(name, 0) * sizes.row_bytes.get(name, 8.0 * relation.arity)
        yield ViewAccount(name, frequency * work, upkeep, size)


def _looked_up(scheme: Scheme, query: str) -> frozenset[str]:
    """Return the stored relations that a query looks up: nothing below them is computed."""

    def is_stored(name: str) -> bool:
        relation = scheme.relations.get(name)
        return relation is not None and (relation.is_materialised or relation.is_stored)

    def below(name: str) -> frozenset[str]:
        is_computed = name == query or not is_stored(name)
        return scheme.body_relations(name) if is_computed else frozenset()

    return frozenset(
        name for name in reachable([query], below) if name != query and is_stored(name)
    )
