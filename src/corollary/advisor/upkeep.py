"""What it costs to keep a view true: the exponent for each changed tuple, and rows per time.

Views are not recursive, so they are maintained by counting derivations. A changed tuple of the
literal Li binds its variables; what is left is the join of the other literals:

    maint_exp(c, i) = cost(c | vars(Li) bound)        maint(c) = Σ_r u_r Σ_{i on r} rows(c, i)
"""

from corollary.advisor.candidates import Candidate, expanded, variables_of
from corollary.advisor.clauses import Test
from corollary.advisor.costs import Join, left_deep
from corollary.advisor.shapes import Shapes


def upkeep_exponent(node: Candidate, shapes: Shapes) -> int:
    """Return the exponent of maintaining a candidate, for the worst literal that may change."""
    shown = frozenset(node.variables)
    worst = 0
    for leaves in expanded(node):
        literals = [leaf for leaf in leaves if not isinstance(leaf, Test)]
        tests = tuple(leaf.variables for leaf in leaves if isinstance(leaf, Test))
        held = tuple(shapes.of(each) for each in literals)
        for literal in literals:
            worst = max(worst, left_deep(Join(held, shown, tests, variables_of(literal))))
    return worst
