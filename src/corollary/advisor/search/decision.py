"""Stage 2: which candidates of a predicate are stored.

After Chirkova and Genesereth, with two corrections: trees are compared jointly, since two of them
may gain together what neither gains alone; and the smallest selection can be requested.

| spec | here |
|---|---|
| topmost(node) | `_topmost`: the highest candidates of a tree that satisfy the criterion |
| S_t | `chosen[t]`, by the form of the root t |
| before, full | the exponents with nothing, and with everything, stored |
| storage vector | degrees in descending order |

1. S_t := topmost(root).  2. If storing everything gains nothing: not applicable.  3. *Descend*: a
candidate is replaced by those below it where that costs nothing and stores less.  4. *Select*:
`paper` drops trees that gain neither alone nor with the others, `minimal` takes the smallest set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from math import inf

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.model.candidates import Candidate, FoldedClause
from corollary.advisor.model.scheme import Options, SelectionMode, SelfMaterialisation
from corollary.advisor.search.rewriting import Rewriter
from corollary.advisor.search_limit import is_search_over
from corollary.data_class import dataclass

EXHAUSTIVE_MAX_CANDIDATES = 9
"""Of more candidates that are not needed, a small set is found by backward elimination."""
WORK_TOLERANCE = 1.05
"""A candidate is not worth storing if work grows by at most this factor without it."""

StorageVector = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that is too large: its degree, and why it is rejected."""

    node: Candidate
    degree: int
    reason: str


@dataclass(frozen=True, slots=True)
class StorageDecision:
    """What is decided for one predicate.

    Attributes:
        clauses: its clauses after stage 1.
        after: its exponent when `stored` are stored.
        stored: the candidates to store, by form.
        rejected: candidates that are too large, with the reason.
        small_gain: the gain on this data, where it is too small for views that lower the exponent.
    """

    clauses: tuple[FoldedClause, ...]
    after: int
    stored: Mapping[str, Candidate]
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    small_gain: float | None = None


class Decider:
    """Decides for the clauses of one predicate.

    Args:
        rewriter: computes the costs of rewritings.
        limit: the effective arity of the scheme: no stored candidate may exceed it.
        options: how to select.
        estimator: knows real sizes: they reject what the criterion accepts, and show a gain where
            exponents do not.
    """

    def __init__(
        self, rewriter: Rewriter, limit: int, options: Options, estimator: Estimator | None = None
    ) -> None:
        self._rewriter = rewriter
        self._limit = limit
        self._options = options
        self._estimator = estimator
        self._forbidden: frozenset[str] = frozenset()
        self._rejected: dict[str, Rejection] = {}

    def is_legal(self, node: Candidate) -> bool:
        """Whether a candidate satisfies the materialisation criterion, and is small enough."""
        if self._forbidden and self._key(node) in self._forbidden:
            return False
        return self._rejection(node) is None

    def _rejection(self, node: Candidate) -> Rejection | None:
        degree = self._rewriter.shapes.clausal_arity(node.view)
        if degree > self._limit:
            return Rejection(node, degree, f"degree {degree} > {self._limit}")
        if self._estimator is not None:
            allowed = self._options.storage_factor * self._estimator.sizes.stored_bytes
            allowed = max(allowed, self._options.budget_bytes or 0.0)
            size = self._estimator.candidate_bytes(node.view)
            if size > allowed:
                return Rejection(node, degree, f"about {size:,.0f} bytes > {allowed:,.0f}")
        return None

    def decide(
        self, clauses: Sequence[FoldedClause], before: int, *, is_trial: bool = False
    ) -> StorageDecision:
        """Return what to store.

        Args:
            clauses: the clauses of the predicate after stage 1.
            before: the exponent with nothing stored.
            is_trial: whether exponents alone count, to compare ways to fold a clause.
        """
        self._rejected = {}
        roots = [(each, root) for each in clauses for root in each.roots()]
        if self._options.self_materialisation == SelfMaterialisation.FORBID:
            self._forbidden = frozenset(
                self._key(root) for each, root in roots if each.is_self_materialisation(root)
            )
        trees: dict[str, Candidate] = {}
        for _, root in roots:
            trees.setdefault(self._key(root), root)
        chosen = {key: self._topmost(root) for key, root in sorted(trees.items())}
        chosen = {key: found for key, found in chosen.items() if found}
        possible = _union(chosen.values())
        full = self._cost(clauses, possible)
        if full >= before:
            is_open = full == before and not is_trial
            stored = self._fewer_rows(clauses, possible) if is_open else {}
            return StorageDecision(tuple(clauses), before, stored, self._rejected)
        self._descend(clauses, chosen, full)
        if self._options.selection == SelectionMode.PAPER:
            stored = self._select_paper(clauses, chosen, before, full)
        else:
            stored = self._select_smallest(clauses, _union(chosen.values()), full)
        gain = inf if is_trial else self._real_gain(clauses, stored)
        if gain < self._options.min_real_gain:
            return StorageDecision(tuple(clauses), before, {}, self._rejected, gain)
        return StorageDecision(tuple(clauses), full, stored, self._rejected)

    def _real_gain(self, clauses: Sequence[FoldedClause], stored: Iterable[str]) -> float:
        """Return by which factor the work falls on this data; without limit if it is not known.

        What the paper selects depends on exponents only.
        """
        if self._estimator is None or self._options.selection == SelectionMode.PAPER:
            return inf
        before = self._rewriter.work(clauses, frozenset(), self._estimator)
        if before <= 1.0:  # there are no rows yet
            return inf
        return before / max(1.0, self._rewriter.work(clauses, frozenset(stored), self._estimator))

    def storage_vector(self, stored: Iterable[Candidate]) -> StorageVector:
        """Return the degrees of candidates in descending order, then their number."""
        arity = self._rewriter.shapes.clausal_arity
        degrees = sorted((arity(node) for node in stored), reverse=True)
        return tuple(degrees), len(degrees)

    def _cost(self, clauses: Sequence[FoldedClause], stored: Iterable[str]) -> int:
        return self._rewriter.cost(clauses, frozenset(stored))

    def _key(self, node: Candidate) -> str:
        return self._rewriter.forms.key(node)

    def _fewer_rows(
        self, clauses: Sequence[FoldedClause], possible: dict[str, Candidate]
    ) -> dict[str, Candidate]:
        """Return candidates that reduce the estimated work, where the exponent stays."""
        estimator = self._estimator
        if estimator is None:
            return {}

        def work(stored: Iterable[str]) -> float:
            return self._rewriter.work(clauses, frozenset(stored), estimator)

        full = work(possible)
        if work(()) < self._options.min_gain_factor * full:
            return {}
        kept = dict(possible)
        for key in possible:
            if work(other for other in kept if other != key) <= WORK_TOLERANCE * full:
                del kept[key]
        return kept

    def _topmost(self, node: Candidate) -> dict[str, Candidate]:
        if self.is_legal(node):
            return {self._key(node): node}
        rejection = self._rejection(node)
        if rejection is not None:
            self._rejected[self._key(node)] = rejection
        return _union(self._topmost(child) for child in node.children)

    def _descend(
        self, clauses: Sequence[FoldedClause], chosen: dict[str, dict[str, Candidate]], full: int
    ) -> None:
        """Replace candidates by those below them, while that stores less and costs nothing."""
        is_changed = True
        while is_changed:
            is_changed = False
            for tree, now in chosen.items():
                for key, node in now.items():
                    below = _union(self._topmost(child) for child in node.children)
                    after = {other: each for other, each in now.items() if other != key} | below
                    if self.storage_vector(after.values()) >= self.storage_vector(now.values()):
                        continue
                    # Neither the tree alone nor all trees together may get slower.
                    is_cheap = self._cost(clauses, after) <= self._cost(clauses, now)
                    trial = {**chosen, tree: after}
                    if is_cheap and self._cost(clauses, _union(trial.values())) <= full:
                        chosen[tree] = after
                        is_changed = True
                        break

    def _select_paper(
        self,
        clauses: Sequence[FoldedClause],
        chosen: dict[str, dict[str, Candidate]],
        before: int,
        full: int,
    ) -> dict[str, Candidate]:
        """Drop the trees that gain nothing, neither alone nor with the others."""
        kept = dict(chosen)
        is_changed = True
        while is_changed:
            is_changed = False
            for tree, now in kept.items():
                others = _union(each for other, each in kept.items() if other != tree)
                is_useless = self._cost(clauses, now) == before
                if is_useless and self._cost(clauses, others) == full:
                    del kept[tree]
                    is_changed = True
                    break
        return _union(kept.values())

    def _select_smallest(
        self, clauses: Sequence[FoldedClause], possible: dict[str, Candidate], full: int
    ) -> dict[str, Candidate]:
        """Return the smallest set that gains as much as everything.

        What is lost without a candidate is lost without it in every smaller set, too: only subsets
        of the others are tried. When the work of the search is over, nothing more is left out.
        """
        needed: list[str] = []
        for key in possible:
            if is_search_over():
                return dict(possible)
            if self._cost(clauses, (other for other in possible if other != key)) > full:
                needed.append(key)
        optional = [key for key in possible if key not in needed]
        if len(optional) > EXHAUSTIVE_MAX_CANDIDATES:
            return self._eliminate_backward(clauses, possible, full)
        best: tuple[StorageVector, tuple[str, ...]] | None = None
        for size in range(len(optional) + 1):
            for chosen in combinations(optional, size):
                if is_search_over():
                    return {key: possible[key] for key in (possible if best is None else best[1])}
                keys = tuple(sorted((*needed, *chosen)))
                vector = self.storage_vector(possible[key] for key in keys)
                is_less = best is None or (vector, keys) < best
                if is_less and self._cost(clauses, keys) <= full:
                    best = vector, keys
        assert best is not None
        return {key: possible[key] for key in best[1]}

    def _eliminate_backward(
        self, clauses: Sequence[FoldedClause], possible: dict[str, Candidate], full: int
    ) -> dict[str, Candidate]:
        """Remove candidates one by one, the largest first, while nothing is lost."""
        kept = dict(possible)
        arity = self._rewriter.shapes.clausal_arity
        for key in sorted(possible, key=lambda each: (-arity(possible[each]), each)):
            if is_search_over():
                break
            rest = [other for other in kept if other != key]
            if self._cost(clauses, rest) <= full:
                del kept[key]
        return kept


def _union(parts: Iterable[Mapping[str, Candidate]]) -> dict[str, Candidate]:
    found: dict[str, Candidate] = {}
    for part in parts:
        found.update(part)
    return dict(sorted(found.items()))
