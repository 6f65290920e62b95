"""Advice, as data: what to store, how queries read then, and why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from corollary.advisor.candidates import Candidate
from corollary.advisor.costs import Exponents
from corollary.advisor.deciding import Decision
from corollary.advisor.rewriting import Rewriter
from corollary.advisor.scheme import Options, Query, Scheme
from corollary.core.rules import Clause

STORE, REWRITE = "store", "rewrite"
"""To keep a view, or only to compute it on the way: where that is as quick, nothing is stored."""


@dataclass(frozen=True, slots=True)
class Arity:
    """The effective arity of the scheme, and the relation that it is due to.

    Attributes:
        paper: as the paper defines it, which is too small where dependencies are cyclic.
    """

    value: int
    set_by: str
    paper: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What a view is thought to hold and to cost, in rows.

    Attributes:
        share: its bytes, as a share of all that is stored.
        build: rows handled to make it.
        changes: tuples of the relations under it that change in an hour.
        upkeep: rows handled in an hour to keep it true.
    """

    rows: float
    bytes: float
    share: float
    build: float
    changes: float
    upkeep: float


@dataclass(frozen=True, slots=True)
class NewView:
    """A view that is worth having.

    Attributes:
        variables: of its columns, in order.
        clauses: its rules over the relations of the program.
        degree: it has at most N^degree tuples.
        build: the exponent of computing it.
        upkeep: the exponent of maintaining it, for each changed tuple.
        is_itself: whether it is a query.
        is_virtual: whether rewriting alone does as well as storing it.
        figures: its real size and cost, if sizes are known.
        node: the candidate that it was.
    """

    name: str
    variables: tuple[str, ...]
    clauses: tuple[Clause, ...]
    degree: int
    build: int
    upkeep: int
    is_itself: bool
    is_virtual: bool
    figures: "Figures | None"
    node: Candidate


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that would be too large."""

    clause: Clause
    degree: int
    why: str


@dataclass(frozen=True, slots=True)
class PredicateAdvice:
    """What is advised for one predicate.

    Attributes:
        reason: why nothing is, if so.
        before: the exponents of its rules as they are.
        after: those of the rewritten ones.
        virtual_after: the exponent if the views are computed along the way.
        originals: its clauses as they are, one for each head and alternative.
        rewritten: its clauses over the new views; the originals if nothing is advised.
        views: the names of the views that they use.
        decision: what was decided, and from what.
        rewriter: costs other rewritings of the same clauses.
        rejected: the candidates that were too large.
        work: rows handled by the rules as they are, and by the rewritten ones, if sizes are known.
    """

    query: Query
    is_query: bool
    reason: str | None
    before: Exponents
    after: Exponents
    virtual_after: int
    originals: tuple[Clause, ...]
    rewritten: tuple[Clause, ...]
    views: tuple[str, ...]
    decision: Decision
    rewriter: Rewriter
    rejected: tuple[Rejected, ...] = ()
    work: tuple[float, float] | None = None

    @property
    def is_applicable(self) -> bool:
        """Whether something is advised."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Advice:
    """What the advisor says about a program."""

    scheme: Scheme
    options: Options
    arity: Arity
    predicates: Mapping[str, PredicateAdvice]
    views: Mapping[str, NewView]

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """All candidates that were too large."""
        return tuple(
            dict.fromkeys(found for each in self.predicates.values() for found in each.rejected)
        )

    @property
    def queries(self) -> dict[str, PredicateAdvice]:
        """The advice for the queries that were asked about."""
        return {name: each for name, each in self.predicates.items() if each.is_query}

    @property
    def is_applicable(self) -> bool:
        """Whether anything is advised."""
        return any(each.is_applicable for each in self.predicates.values())
