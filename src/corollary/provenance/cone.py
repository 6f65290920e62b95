"""The cone: the tuples among which all lowest proofs of a goal are.

Let u be the height of a known proof of the goal, and lb(t) what the height of t is at least: 0 for
a base tuple, 1 for a derived one, its rank + 1 where ranks are exact. From the goal, level by
level, the tuples that are first met at depth d are expanded, each once, all of a level at once, if
d + lb <= u. After each level u is the height of the lowest proof so far.

A tuple at depth d of a lowest proof has height <= u - d, so it is expanded, and all its lowest
proofs are among the instances found. Steps that add nothing to a height stay on their level.
"""

from dataclasses import field

from corollary.data_class import dataclass
from corollary.engines.budget import WorkLimitError
from corollary.provenance.graph import INFINITE, KnownInstance, ProofGraph
from corollary.provenance.instance_rows import Wanted
from corollary.provenance.instances import InstanceFinder
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import CutReason


@dataclass(slots=True)
class Cone:
    """The cone of a goal.

    Attributes:
        depths: of the tuples that were met.
        truncated: the tuples of which not all instances were looked at, and how many there are.
        cut: why other tuples were not expanded; None if all were that have to be.
    """

    graph: ProofGraph
    root: int
    finder: InstanceFinder
    allowance: Allowance
    depths: dict[int, int] = field(default_factory=dict)
    truncated: dict[int, int] = field(default_factory=dict)
    cut: CutReason | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all lowest proofs are inside."""
        return self.cut is None and not self.truncated

    def expand(self) -> None:
        """Expand level after level, until all lowest proofs are inside or a limit is reached."""
        self.depths[self.root] = 0
        level, depth = [self.root], 0
        while level and self.cut is None:
            below: dict[int, None] = {}
            while level and self.cut is None:
                level = self._expand_level(level, depth, below)
            depth += 1
            level = [each for each in below if self.depths[each] == depth]

    @property
    def _is_settled(self) -> bool:
        """Whether no more can be known: not all instances of the goal, but its least height."""
        graph, root = self.graph, self.root
        return root in self.truncated and graph.heights[root] == graph.least[root]

    def _expand_level(self, level: list[int], depth: int, below: dict[int, None]) -> list[int]:
        """Expand tuples; return those that are met on the same level, note those below it."""
        graph = self.graph
        bound = graph.heights[self.root] - depth
        inside = [each for each in level if graph.is_derived(each) and graph.least[each] <= bound]
        is_bounded = graph.heights[self.root] < INFINITE
        height = bound if is_bounded else INFINITE
        open_ = [each for each in inside if not graph.is_expanded(each, height)]
        allowed = open_[: max(self.allowance.tuples, 0)]
        if len(allowed) < len(open_):
            self.cut = CutReason.NODES
        limit = height if is_bounded else None
        wanted = {each: Wanted(graph.facts[each], limit) for each in allowed}
        try:
            for number, found in self.finder.find_in_batches(wanted, self.allowance):
                graph.add(number, found, height)
                if found.is_cut:
                    self.truncated[number] = found.total
        except WorkLimitError:
            self.cut = self.allowance.reason
        if self._is_settled:
            return []
        here: dict[int, None] = {}
        for number in inside:
            for known in graph.instances.get(number, ()):
                self._meet(known, depth, bound, here, below)
        return list(here)

    def _meet(
        self,
        known: KnownInstance,
        depth: int,
        bound: int,
        here: dict[int, None],
        below: dict[int, None],
    ) -> None:
        """Note the premises of an instance that are met for the first time, or nearer than so far.

        Args:
            known: the instance.
            depth: of its head.
            bound: the largest height of its head that matters.
            here: the tuples that are met on this level.
            below: those that are met on the next one.
        """
        pairs = list(zip(known.premises, known.weights, strict=True))
        if any(self.graph.least[premise] + weight > bound for premise, weight in pairs):
            return
        for premise, weight in pairs:
            if self.depths.get(premise, INFINITE) > depth + weight:
                self.depths[premise] = depth + weight
                (below if weight else here)[premise] = None
