"""Stage 2: which candidates of a predicate are stored.

After Chirkova and Genesereth, with two corrections: trees are compared jointly, since two of them
may gain together what none gains alone; and the smallest selection can be asked for.

| spec | here |
|---|---|
| topmost(node) | `_topmost`: the highest candidates of a tree that keep the criterion |
| S_t | `chosen[t]`, by the form of the root t |
| before, full | the exponents with nothing, and with everything, stored |
| storage vector | degrees from the largest down |

1. S_t := topmost(root).  2. If everything stored gains nothing: not applicable.  3. *Descend*: a
candidate makes way for the ones below it where that costs nothing and stores less.  4. *Select*:
`paper` drops trees that gain neither alone nor beside others, `minimal` takes the smallest set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from corollary.advisor.candidates import Candidate
from corollary.advisor.estimating import Estimator
from corollary.advisor.rewriting import Rewriter, Worked
from corollary.advisor.scheme import Options

EXACT = 15
"""Of more candidates, they are taken out one after the other."""

Vector = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A candidate that is too large: its degree, and why it is refused."""

    node: Candidate
    degree: int
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided for one predicate.

    Attributes:
        worked: its clauses after stage 1.
        before: its exponent now.
        after: its exponent when `stored` are stored.
        stored: the candidates to store, by form.
        possible: all that could be: the highest legal candidates of all trees.
        rejected: candidates that are too large, with the reason.
    """

    worked: tuple[Worked, ...]
    before: int
    after: int
    stored: Mapping[str, Candidate]
    possible: Mapping[str, Candidate]
    rejected: Mapping[str, Refusal] = field(default_factory=dict)


class Decider:
    """Decides for the clauses of one predicate.

    Args:
        rewriter: costs rewritings.
        limit: the effective arity of the scheme: no stored candidate may exceed it.
        options: how to select.
        estimator: knows real sizes; they refuse what the criterion lets pass, and tell a gain
            where exponents do not.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        limit: int,
        options: Options,
        estimator: Estimator | None = None,
    ) -> None:
        self._rewriter = rewriter
        self._limit = limit
        self._options = options
        self._estimator = estimator
        self._forbidden: frozenset[str] = frozenset()
        self._rejected: dict[str, Refusal] = {}

    def is_legal(self, node: Candidate) -> bool:
        """Whether a candidate keeps the materialisation criterion, and fits."""
        if self._forbidden and self._key(node) in self._forbidden:
            return False
        return self._refusal(node) is None

    def _refusal(self, node: Candidate) -> Refusal | None:
        degree = self._rewriter.shapes.degree_of(node)
        if degree > self._limit:
            return Refusal(node, degree, f"degree {degree} > {self._limit}")
        if self._estimator is not None:
            allowed = self._allowance(self._estimator)
            size = self._estimator.bytes(node)
            if size > allowed:
                return Refusal(node, degree, f"about {size:,.0f} bytes > {allowed:,.0f}")
        return None

    def _allowance(self, estimator: Estimator) -> float:
        factor = self._options.storage_factor * estimator.sizes.stored_bytes
        budget = self._options.budget
        return factor if budget is None else max(budget, factor)

    def decide(self, every: Sequence[Worked], before: int) -> Decision:
        """Return what to store."""
        self._rejected = {}
        if self._options.self_materialisation == "forbid":
            itself = (root for each in every for root in each.roots() if each.is_itself(root))
            self._forbidden = frozenset(self._key(root) for root in itself)
        roots = self._roots(every)
        chosen = {key: self._topmost(root) for key, root in roots.items()}
        chosen = {key: found for key, found in chosen.items() if found}
        possible = _union(chosen.values())
        full = self._cost(every, possible)
        if full >= before:
            stored = self._quicker(every, possible) if full == before else {}
            return Decision(tuple(every), before, before, stored, possible, self._rejected)
        self._descend(every, chosen, full)
        if self._options.selection == "paper":
            stored = self._as_in_paper(every, chosen, before, full)
        else:
            stored = self._smallest(every, _union(chosen.values()), full)
        return Decision(tuple(every), before, full, stored, possible, self._rejected)

    def vector(self, stored: Iterable[Candidate]) -> Vector:
        """Return how much storage candidates take: degrees from the largest down, then number."""
        degrees = sorted((self._rewriter.shapes.degree_of(node) for node in stored), reverse=True)
        return tuple(degrees), len(degrees)

    def _cost(self, every: Sequence[Worked], stored: Iterable[str]) -> int:
        return self._rewriter.cost(every, frozenset(stored))

    def _key(self, node: Candidate) -> str:
        return self._rewriter.forms.key(node)

    def work(self, every: Sequence[Worked], stored: Iterable[str]) -> float | None:
        """Return how many rows a predicate handles when some candidates are stored, if known."""
        if self._estimator is None:
            return None
        return self._rewriter.work(every, frozenset(stored), self._estimator)

    def _quicker(
        self, every: Sequence[Worked], possible: dict[str, Candidate]
    ) -> dict[str, Candidate]:
        """Return what lowers the rows handled, where it does not lower the exponent."""
        kept = dict(possible)
        before, full = self.work(every, ()), self.work(every, kept)
        if before is None or full is None or before < self._options.least_gain * full:
            return {}
        for key in possible:
            rest = [other for other in kept if other != key]
            work = self.work(every, rest)
            if work is not None and work <= 1.05 * full:
                del kept[key]
        return kept

    def _roots(self, every: Iterable[Worked]) -> dict[str, Candidate]:
        found: dict[str, Candidate] = {}
        for worked in every:
            for root in worked.roots():
                found.setdefault(self._key(root), root)
        return dict(sorted(found.items()))

    def _topmost(self, node: Candidate) -> dict[str, Candidate]:
        if self.is_legal(node):
            return {self._key(node): node}
        refusal = self._refusal(node)
        if refusal is not None:
            self._rejected[self._key(node)] = refusal
        return _union(self._topmost(child) for child in node.children)

    def _descend(
        self, every: Sequence[Worked], chosen: dict[str, dict[str, Candidate]], full: int
    ) -> None:
        """Replace candidates by those below them, while that stores less and costs nothing."""
        again = True
        while again:
            again = False
            for tree, now in chosen.items():
                for key, node in now.items():
                    below = _union(self._topmost(child) for child in node.children)
                    after = {other: each for other, each in now.items() if other != key} | below
                    if self.vector(after.values()) >= self.vector(now.values()):
                        continue
                    alone = self._cost(every, after) <= self._cost(every, now)
                    trial = {**chosen, tree: after}
                    if alone and self._cost(every, _union(trial.values())) <= full:
                        chosen[tree] = after
                        again = True
                        break

    def _as_in_paper(
        self,
        every: Sequence[Worked],
        chosen: dict[str, dict[str, Candidate]],
        before: int,
        full: int,
    ) -> dict[str, Candidate]:
        """Drop the trees that gain nothing, neither alone nor beside the others."""
        kept = dict(chosen)
        again = True
        while again:
            again = False
            for tree, now in kept.items():
                others = _union(each for other, each in kept.items() if other != tree)
                is_idle = self._cost(every, now) == before
                if is_idle and self._cost(every, others) == full:
                    del kept[tree]
                    again = True
                    break
        return _union(kept.values())

    def _smallest(
        self, every: Sequence[Worked], possible: dict[str, Candidate], full: int
    ) -> dict[str, Candidate]:
        """Return the smallest set that gains as much as everything."""
        if len(possible) > EXACT:
            return self._thinned(every, possible, full)
        best: tuple[Vector, tuple[str, ...]] | None = None
        for size in range(len(possible) + 1):
            for keys in combinations(possible, size):
                vector = self.vector(possible[key] for key in keys)
                is_less = best is None or (vector, keys) < best
                if is_less and self._cost(every, keys) <= full:
                    best = vector, keys
        assert best is not None
        return {key: possible[key] for key in best[1]}

    def _thinned(
        self, every: Sequence[Worked], possible: dict[str, Candidate], full: int
    ) -> dict[str, Candidate]:
        kept = dict(possible)
        degree = self._rewriter.shapes.degree_of
        for key in sorted(possible, key=lambda each: (-degree(possible[each]), each)):
            rest = [other for other in kept if other != key]
            if self._cost(every, rest) <= full:
                del kept[key]
        return kept


def _union(parts: Iterable[Mapping[str, Candidate]]) -> dict[str, Candidate]:
    found: dict[str, Candidate] = {}
    for part in parts:
        found.update(part)
    return dict(sorted(found.items()))
