"""The input of the advisor: relations with their functional dependencies, rules and queries.

| spec | here |
|---|---|
| R | `Scheme.relations` |
| D ⊆ R | those that are `is_stored`: base relations, and derived ones that are declared `stored` |
| P = R − D | the others, with their `Scheme.clauses` |
| Q ⊆ P | `Scheme.queries` |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from corollary.advisor.clauses import ClauseForm
from corollary.core.rules import Literal


@dataclass(frozen=True, slots=True)
class Dependence:
    """A functional dependency: tuples that agree on the left columns agree on the right ones."""

    left: frozenset[int]
    right: frozenset[int]


@dataclass(frozen=True, slots=True)
class View:
    """What a stored view is made of, over other stored relations: hidden keys bound its size.

    Attributes:
        variables: of its columns, in order.
        bodies: the literals of each of its rules.
        is_whole: whether these are all that its rules say, so that nothing is filtered.
    """

    variables: tuple[str, ...]
    bodies: tuple[tuple[Literal, ...], ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class RelationForm:
    """A relation as the advisor sees it.

    Attributes:
        is_stored: whether it is in D, so that the criterion is measured by it.
        is_kept: whether its rules are not needed at query time, since it is kept all the same.
        is_inline: whether it is declared `inline`: not to be stored, however dear its rules are.
        view: what it is made of, if it is a kept view without recursion.
    """

    name: str
    arity: int
    dependences: tuple[Dependence, ...] = ()
    is_stored: bool = False
    is_kept: bool = False
    is_inline: bool = False
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A query predicate.

    Attributes:
        bound: the columns that a query gives values for.
        frequency: how often it is asked in an hour.
    """

    relation: str
    bound: frozenset[int] = frozenset()
    frequency: float = 1.0


@dataclass(frozen=True, slots=True)
class Scheme:
    """Relations, clauses by the relation of their head, and queries."""

    relations: Mapping[str, RelationForm]
    clauses: Mapping[str, tuple[ClauseForm, ...]]
    queries: tuple[Query, ...] = ()

    def reads(self, name: str) -> frozenset[str]:
        """Return the relations that the clauses of a relation read, pinned ones too."""
        found: set[str] = set()
        for clause in self.clauses.get(name, ()):
            found |= {each.relation for each in clause.literals}
            found |= {each.literal.relation for each in clause.pinned if each.literal is not None}
        return frozenset(found)

    def below(self, names: "frozenset[str] | set[str]") -> frozenset[str]:
        """Return some relations and all that they are computed from."""
        found, open_ = set(names), list(names)
        while open_:
            fresh = self.reads(open_.pop()) - found
            found |= fresh
            open_ += fresh
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Options:
    """How the advisor decides; the defaults are the paper's.

    Attributes:
        selection: `paper`, `minimal` or `budget`.
        scope: which relations set the effective arity: of the whole `scheme`, or those `used`.
        opaque: whether simple comparisons stay (`opaque`) or may be absorbed (`absorb`).
        partial_clusters: whether parts of clusters are candidates too, and outside literals carry
            functional dependencies into them.
        self_materialisation: whether a candidate may be the query itself: `allow` or `forbid`.
        has_disjuncts: whether clauses with a common part may be merged.
        budget: so many bytes all new views may take together, if sizes are known.
        storage_factor: without a budget, a view may take so many times what is stored already.
        least_gain: fewer rows by this factor are worth a view, even at the same exponent.
        updates: changed tuples of base relations per hour.
        horizon: the hours over which building a view has to pay.
    """

    selection: str = "paper"
    scope: str = "scheme"
    opaque: str = "opaque"
    partial_clusters: bool = False
    self_materialisation: str = "allow"
    has_disjuncts: bool = True
    budget: float | None = None
    storage_factor: float = 1.0
    least_gain: float = 1.3
    updates: Mapping[str, float] = field(default_factory=dict)
    horizon: float = 24.0

    def with_updates(self, updates: Mapping[str, float]) -> "Options":
        """Return the options with other update rates."""
        return replace(self, updates=updates)
