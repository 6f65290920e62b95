"""The search for a proof: descent, cone and rounds, one after the other."""

from corollary.data_class import dataclass
from corollary.provenance.cone import Cone
from corollary.provenance.descent import can_descend, descend
from corollary.provenance.graph import INFINITE, ProofGraph
from corollary.provenance.instance_rows import Fact
from corollary.provenance.instances import InstanceFinder
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import CutReason
from corollary.provenance.rounds import Choice, canonical_proof, lower_bound


@dataclass(frozen=True, slots=True)
class FoundProof:
    """What the search for a proof has found.

    Attributes:
        root: the number of the tuple.
        choice: the proof; None if the limits were reached before there was one, the upper part of
            it if it is too high for them.
        height: of the proof; None without the whole of it.
        height_at_least: no proof is lower.
        is_complete: whether all lowest proofs were among the instances looked at.
        cut: why not all tuples were looked at.
        truncated: the tuples of which only some instances were looked at, and how many there are.
    """

    root: int
    choice: Choice | None
    height: int | None
    height_at_least: int
    is_complete: bool
    cut: CutReason | None
    truncated: dict[int, int]


class ProofSearch:
    """Finds proofs in one state; what was looked at for one is used for the next ones."""

    def __init__(self, finder: InstanceFinder, allowance: Allowance) -> None:
        self.graph = ProofGraph(finder.steps, finder.asked.exact)
        self.finder = finder
        self.allowance = allowance

    def prove(self, fact: Fact, rank: int | None) -> FoundProof:
        """Return a proof of a tuple that is there.

        Args:
            fact: the tuple.
            rank: its rank, if it has one.
        """
        graph = self.graph
        root = graph.number(fact, rank)
        if can_descend(graph.steps, self.finder.asked.ranked, fact[0]):
            begun = descend(graph, root, self.finder, self.allowance)
            if begun is not None:
                least = lower_bound(graph, root)
                return FoundProof(root, begun, None, least, False, self.allowance.reason, {})
        cone = Cone(graph, root, self.finder, self.allowance)
        cone.expand()
        height, least = graph.heights[root], graph.heights[root]
        if not cone.is_complete:
            least = lower_bound(graph, root)
        if height >= INFINITE:
            return FoundProof(root, None, None, least, False, cone.cut, cone.truncated)
        choice = canonical_proof(graph, root)
        return FoundProof(root, choice, height, least, cone.is_complete, cone.cut, cone.truncated)
