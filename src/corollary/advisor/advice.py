"""Advice, as data: what to store, the rewritten queries, and why not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from corollary.advisor.cost.exponents import Exponents
from corollary.advisor.model.candidates import Candidate, FoldedClause
from corollary.advisor.model.scheme import Options, Scheme, WorkloadQuery
from corollary.advisor.search.decision import StorageDecision
from corollary.advisor.search.rewriting import Rewriter
from corollary.core.logic import Atom, Clause
from corollary.data_class import dataclass
from corollary.engines.budget import WorkUsed


class Recommendation(StrEnum):
    """To store a view, or only to rewrite queries with it where that is as quick."""

    STORE = "store"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True)
class SchemeArity:
    """The effective arity of the scheme, and the relation that sets it.

    Attributes:
        paper: as the paper defines it, which is too small where dependencies are cyclic.
    """

    value: int
    set_by: str
    paper: int


@dataclass(frozen=True, slots=True)
class ViewEstimate:
    """The estimated size and cost of a view, in rows.

    Attributes:
        share: its bytes, as a fraction of everything stored.
        build: rows handled to build it.
        changes: tuples of the relations below it that change per hour.
        upkeep: rows handled per hour to maintain it.
    """

    rows: float
    bytes: float
    share: float
    build: float
    changes: float
    upkeep: float


@dataclass(frozen=True, slots=True)
class NewView:
    """A view that is worth defining.

    Attributes:
        variables: of its columns, in order.
        clauses: its rules over the relations of the program.
        degree: it has at most N^degree tuples.
        build: the exponent of computing it.
        upkeep: the exponent of maintaining it, for each changed tuple.
        is_self_materialisation: whether it is a query itself.
        is_virtual: whether rewriting alone is as good as storing it.
        estimate: its estimated size and cost, if sizes are known.
        node: the candidate that it was.
        rows: of a summary, the columns of the relation that it aggregates.
    """

    name: str
    variables: tuple[str, ...]
    clauses: tuple[Clause, ...]
    degree: int
    build: int
    upkeep: int
    is_self_materialisation: bool
    is_virtual: bool
    estimate: ViewEstimate | None
    node: Candidate
    rows: tuple[str, ...] | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that its rules define."""
        return tuple(dict.fromkeys(each.heads[0].relation for each in self.clauses))

    @property
    def recommendation(self) -> Recommendation:
        """What to do with it."""
        return Recommendation.REWRITE if self.is_virtual else Recommendation.STORE


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """A candidate that would be too large."""

    clause: Clause
    degree: int
    reason: str


@dataclass(frozen=True, slots=True)
class PredicateAdvice:
    """The advice for one predicate.

    Attributes:
        reason: why nothing is advised, if so.
        before: the exponents of its rules as they are.
        after: those of the rewritten rules.
        virtual_after: the exponent if the views are computed along the way.
        originals: its clauses as they are, one for each head and alternative.
        rewritten: its clauses over the new views; the originals if nothing is advised.
        views: the names of the views that they use.
        decision: which candidates are stored, and from which clauses they come.
        rewriter: computes the costs of other rewritings of the same clauses.
        rejected: the candidates that were too large.
        work: rows handled by the rules as they are, and by the rewritten ones, if sizes are known.
    """

    query: WorkloadQuery
    is_query: bool
    reason: str | None
    before: Exponents
    after: Exponents
    virtual_after: int
    originals: tuple[Clause, ...]
    rewritten: tuple[Clause, ...]
    views: tuple[str, ...]
    decision: StorageDecision
    rewriter: Rewriter
    rejected: tuple[RejectedCandidate, ...] = ()
    work: tuple[float, float] | None = None

    @property
    def is_applicable(self) -> bool:
        """Whether something is advised."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice for a program.

    Attributes:
        is_complete: whether the search was done before its work was over; if not, this is the best
            that was found until then.
        sampled: the relations whose sizes come from a sample, and its share of their rows.
        work: that the search took, in steps; None if none was made.
    """

    scheme: Scheme
    options: Options
    arity: SchemeArity
    predicates: Mapping[str, PredicateAdvice]
    views: Mapping[str, NewView]
    is_complete: bool = True
    sampled: Mapping[str, float] = field(default_factory=dict)
    work: WorkUsed | None = None

    @property
    def rejected(self) -> tuple[RejectedCandidate, ...]:
        """All candidates that were too large."""
        return tuple(
            dict.fromkeys(found for each in self.predicates.values() for found in each.rejected)
        )

    @property
    def queries(self) -> dict[str, PredicateAdvice]:
        """The advice for the queries, without the predicates that they read."""
        return {name: each for name, each in self.predicates.items() if each.is_query}

    @property
    def is_applicable(self) -> bool:
        """Whether anything is advised."""
        return any(each.is_applicable for each in self.predicates.values())


# --- the exponent of a query with all rules that it runs -----------------------------------------


def global_exponents(advice: Advice, query: str) -> tuple[int, int]:
    """Return the global exponents of a query, before and after.

    Stored relations are looked up; the rules of others run when the query is asked. The largest
    exponent among them is the *global* one of the query.
    """
    rewriter = advice.predicates[query].rewriter
    unbound = Rewriter(rewriter.shapes, rewriter.forms)

    def unchanged(name: str) -> tuple[int, Iterable[str]]:
        clauses = map(FoldedClause.unfolded, advice.scheme.clauses[name])
        return unbound.cost(clauses, frozenset()), advice.scheme.body_relations(name)

    def before(name: str) -> tuple[int, Iterable[str]]:
        if name in advice.predicates:
            found = advice.predicates[name]
            return found.before.left_deep, _body_relations(found.originals)
        return unchanged(name)

    def after(name: str) -> tuple[int, Iterable[str]]:
        if name in advice.predicates:
            found = advice.predicates[name]
            return found.after.left_deep, _body_relations(found.rewritten)
        if name in advice.views:
            view = advice.views[name]
            return (view.build, _body_relations(view.clauses)) if view.is_virtual else (0, ())
        return unchanged(name)

    return _largest(advice, query, before), _largest(advice, query, after)


def _largest(advice: Advice, query: str, visit: Callable[[str], tuple[int, Iterable[str]]]) -> int:
    """Return the largest exponent of the rules that run when a query is asked."""
    worst, stack, seen = 0, [query], {query}
    while stack:
        exponent, below = visit(stack.pop())
        worst = max(worst, exponent)
        for name in below:
            if name not in seen and _is_run(advice, name):
                stack.append(name)
            seen.add(name)
    return worst


def _is_run(advice: Advice, name: str) -> bool:
    """Whether the rules of a relation run at query time."""
    relation = advice.scheme.relations.get(name)
    if relation is None:
        return name in advice.views
    return name in advice.scheme.clauses and not (relation.is_stored or relation.is_materialised)


def _body_relations(clauses: Iterable[Clause]) -> list[str]:
    return [item.relation for each in clauses for item in each.body if isinstance(item, Atom)]
