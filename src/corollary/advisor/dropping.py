"""Which stored views do not pay: what asking saves against what keeping them true costs.

    saved = Σ_q f_q · work of computing the view when q is asked      (for queries that read it)
    upkeep = Σ_r u_r · work of maintaining it for one changed tuple of r

A view that is published or that a constraint watches is wanted for itself, and is left alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from corollary.advisor.candidates import Candidate, in_order
from corollary.advisor.clauses import ClauseForm
from corollary.advisor.estimating import Estimator, Sizes
from corollary.advisor.scheme import Options, Scheme
from corollary.advisor.shapes import Shapes
from corollary.advisor.workload import upkeep_per_hour
from corollary.core.program import Program


@dataclass(frozen=True, slots=True)
class Account:
    """What a stored view gains and costs in an hour, in rows, and what it takes on the disk."""

    view: str
    saved: float
    upkeep: float
    bytes: float

    @property
    def is_paying(self) -> bool:
        """Whether it is worth keeping."""
        return self.saved >= self.upkeep and self.saved > 0


def accounts(scheme: Scheme, program: Program, sizes: Sizes, options: Options) -> Iterator[Account]:
    """Yield the account of every stored view that is there for the sake of queries.

    Args:
        scheme: the scheme, with the queries that are asked and how often.
        program: the program as written.
        sizes: what relations hold.
        options: with the update rates.
    """
    shapes = Shapes(scheme)
    wanted = {each.relation for each in program.directives if each.name == "output"}
    wanted |= {each.relation for each in program.reactions}
    for name, relation in scheme.relations.items():
        clauses = scheme.clauses.get(name, ())
        if not clauses or not relation.is_kept or name in wanted:
            continue
        estimator = Estimator(scheme, shapes, sizes)
        made = [
            estimator.clause(each, (*each.literals, *each.tests), frozenset()) for each in clauses
        ]
        work = sum(each.work for each in made)
        asked = sum(
            query.frequency
            for query in scheme.queries
            if name == query.relation or name in _read(scheme, query.relation)
        )
        upkeep = sum(
            upkeep_per_hour(_candidate(each), estimator, options)
            for each in clauses
            if each.literals
        )
        held = sizes.rows.get(name, 0) * sizes.width.get(name, 8.0 * relation.arity)
        yield Account(name, asked * work, upkeep, held)


def _read(scheme: Scheme, query: str) -> frozenset[str]:
    """Return the kept relations that a query looks up: below them nothing is computed."""
    found: set[str] = set()
    open_, seen = [query], {query}
    while open_:
        for name in scheme.reads(open_.pop()) - seen:
            seen.add(name)
            relation = scheme.relations.get(name)
            if relation is not None and (relation.is_kept or relation.is_stored):
                found.add(name)
            else:
                open_.append(name)
    return frozenset(found)


def _candidate(clause: ClauseForm) -> Candidate:
    order = in_order(clause.literals, clause.head_variables)
    return Candidate(order, ((*clause.literals, *clause.tests),), "stored")
