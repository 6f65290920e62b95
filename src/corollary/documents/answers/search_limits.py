"""How much a search over a document may take.

Every search here and in `types` gets a budget, and raises `WorkLimitError` if it takes more. Who
begins a search catches that, and answers with a bound.
"""

from corollary.data_class import dataclass
from corollary.engines.budget import WorkBudget


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of a search; beyond them there is a bound instead of an exact answer.

    Attributes:
        nodes: the maximum number of nodes of the document, rows and combinations looked at.
        seconds: the maximum time, a last resort: with it, the answer of the same question may be
            another one on a busy machine.
    """

    nodes: int = 2_000_000
    seconds: float = 100.0

    def budget(self) -> WorkBudget:
        """Return the budget of one search."""
        return WorkBudget(self.nodes, self.seconds, "nodes")
