"""The input of the advisor: relations with their functional dependencies, rules and queries.

| spec | here |
|---|---|
| R | `Scheme.relations` |
| D ⊆ R | those that are `is_stored`: base relations, and derived ones that are declared `stored` |
| P = R − D | the others, with their `Scheme.clauses` |
| Q ⊆ P | `Scheme.queries` |
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from corollary.advisor.model.candidates import SchemeClause
from corollary.advisor.search_limit import SEARCH_MAX_STEPS
from corollary.core.graph import closure_of, reachable
from corollary.core.logic import AggregateTerm, Literal, Variable
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class SchemeDependency:
    """A functional dependency: tuples that agree on the left columns agree on the right ones."""

    left: frozenset[int]
    right: frozenset[int]


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """The rules of a stored view over other stored relations: hidden keys bound its size.

    Attributes:
        variables: of its columns, in order.
        bodies: the literals of each of its rules.
        is_complete: whether its rules have no other body items, so that nothing is filtered.
    """

    variables: tuple[str, ...]
    bodies: tuple[tuple[Literal, ...], ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class SchemeRelation:
    """A relation of the scheme.

    Attributes:
        is_stored: whether it is in D, so that it counts for the effective arity of the scheme.
        is_materialised: whether it is looked up, so that its rules do not run at query time.
        is_inline: whether it is declared `inline`: not to be stored, however expensive its rules.
        view: its definition, if it is a materialised view without recursion.
        enforced: those of its dependencies that every commit enforces, without null on the left.
    """

    name: str
    arity: int
    dependencies: tuple[SchemeDependency, ...] = ()
    is_stored: bool = False
    is_materialised: bool = False
    is_inline: bool = False
    view: ViewDefinition | None = None
    enforced: tuple[SchemeDependency, ...] = ()


def determined_variables(
    names: Iterable[str], literals: Iterable[Literal], relations: Mapping[str, SchemeRelation]
) -> frozenset[str]:
    """Return what some variables of literals determine, by dependencies that are enforced."""

    def named(literal: Literal, columns: Iterable[int]) -> set[str]:
        slots = (literal.slots[at] for at in columns)
        return {each.name for each in slots if isinstance(each, Variable)}

    implications = (
        (named(literal, each.left), name)
        for literal in literals
        for each in relations[literal.relation].enforced
        for name in named(literal, each.right)
    )
    return frozenset(closure_of(names, implications))


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """A query predicate.

    Attributes:
        bound: the columns that a query gives values for.
        frequency: queries per hour.
    """

    relation: str
    bound: frozenset[int] = frozenset()
    frequency: float = 1.0


@dataclass(frozen=True, slots=True)
class AggregateBlock:
    """An aggregate of a clause: the term as written, and its body with the measure."""

    term: AggregateTerm
    clause: SchemeClause


@dataclass(frozen=True, slots=True)
class AggregatingClause:
    """A clause of a relation that aggregates.

    Attributes:
        written: the clause with its relations as they are written.
        outer: what is joined outside of aggregates.
        blocks: the aggregates that can be computed from summaries.
    """

    written: SchemeClause
    outer: SchemeClause
    blocks: tuple[AggregateBlock, ...] = ()

    @property
    def parts(self) -> tuple[SchemeClause, ...]:
        """The conjunctions whose literals views can replace."""
        return (self.outer, *dict.fromkeys(each.clause for each in self.blocks))


@dataclass(frozen=True, slots=True)
class Scheme:
    """Relations, clauses by the relation of their head, and queries.

    Attributes:
        aggregations: the clauses of relations whose aggregates summaries can compute.
    """

    relations: Mapping[str, SchemeRelation]
    clauses: Mapping[str, tuple[SchemeClause, ...]]
    queries: tuple[WorkloadQuery, ...] = ()
    aggregations: Mapping[str, tuple[AggregatingClause, ...]] = field(default_factory=dict)

    def body_relations(self, name: str) -> frozenset[str]:
        """Return the relations in the bodies of a relation's clauses, pinned literals included."""
        found: set[str] = set()
        for clause in self.clauses.get(name, ()):
            found |= {each.relation for each in clause.literals}
            found |= {each.literal.relation for each in clause.pinned if each.literal is not None}
        return frozenset(found)

    def reachable(self, names: Iterable[str]) -> frozenset[str]:
        """Return some relations and all that they are computed from."""
        return frozenset(reachable(names, self.body_relations))


class SelectionMode(StrEnum):
    """Which of the candidates that gain something are stored."""

    PAPER = "paper"
    MINIMAL = "minimal"
    BUDGET = "budget"


class ArityScope(StrEnum):
    """Which stored relations set the effective arity: all, or those that queries read."""

    SCHEME = "scheme"
    USED = "used"


class ComparisonMode(StrEnum):
    """Whether simple comparisons stay in their rule or may be absorbed by a candidate."""

    OPAQUE = "opaque"
    ABSORB = "absorb"


class SelfMaterialisation(StrEnum):
    """Whether a candidate may be the query itself."""

    ALLOW = "allow"
    FORBID = "forbid"


@dataclass(frozen=True, slots=True)
class ViewNaming:
    """How new views are named.

    Attributes:
        given: the names for them, in the order in which they come; `mv_QUERY_NUMBER` after these.
        uses_initials: whether names are made of the initials of relations, as in the paper.
    """

    given: tuple[str, ...] = ()
    uses_initials: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How the advisor decides; the defaults are the paper's.

    Attributes:
        partial_clusters: whether parts of clusters are candidates too, and outside literals carry
            functional dependencies into them.
        merges_disjuncts: whether clauses with a common part may be merged.
        budget_bytes: the maximum size of all new views together, in bytes.
        storage_factor: without a budget, the maximum size of a view, as a multiple of what is
            stored already.
        min_gain_factor: the factor in rows that justifies a view even at the same exponent.
        min_real_gain: a lower exponent does not justify a view whose gain on this data is smaller.
        updates: changed tuples of base relations per hour.
        commits_per_hour: how many commits bring these changes: each takes its time for each view.
        horizon_hours: the hours over which building a view has to pay.
        naming: how new views are named.
        max_steps: the maximum number of steps of the search (`search_limit`).
    """

    selection: SelectionMode = SelectionMode.PAPER
    scope: ArityScope = ArityScope.SCHEME
    opaque: ComparisonMode = ComparisonMode.OPAQUE
    partial_clusters: bool = False
    self_materialisation: SelfMaterialisation = SelfMaterialisation.ALLOW
    merges_disjuncts: bool = True
    budget_bytes: float | None = None
    storage_factor: float = 1.0
    min_gain_factor: float = 1.3
    min_real_gain: float = 1.2
    updates: Mapping[str, float] = field(default_factory=dict)
    commits_per_hour: float = 0.0
    horizon_hours: float = 24.0
    naming: ViewNaming = ViewNaming()
    max_steps: int = SEARCH_MAX_STEPS
