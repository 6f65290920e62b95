"""PF: propagation and filtration without memo.

Reference: J. V. Harrison, S. W. Dietrich, "Maintenance of materialized views in a deductive
database: an update propagation approach" (1992); by example in "Maintenance of recursive views"
(Dietrich), Table 2.

The procedures are those of `epf`, with two differences. Every query starts from empty tables, so
that no answer found for one approximation is reused for the next. And the approximation is filtered
unreduced: tuples found before, actual or disqualified, are proved again, and dropped only then.

    D  = query_disq(p, A, Filter-State)
    Uᵖ = A − D − ΔP

So a tuple that is approximated on two paths is filtered twice ("diamond chain" in the tests),
which EPF never does.
"""

from corollary.analysis.strata import Stratum
from corollary.core.plans import Step
from corollary.maintain.algorithms import epf
from corollary.maintain.draft import Draft


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stratum, stored or virtual."""
    return epf.plan(stratum, draft, has_memo=False, is_minimised=False)
