"""The rows of a trace for algorithms that work on a stratum as a whole.

They record one row for the removals of a relation (tuples taken out, tuples that came back, tuples
removed in the end) and one for its additions; `epf` and `pf` record a row per invocation instead.
"""

from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plans import RecordTrace, Step, When
from corollary.core.states import State
from corollary.maintain.delta import changes_below
from corollary.maintain.draft import Draft


def trace_rows(stratum: Stratum, draft: Draft, taken_role: str = "") -> list[Step]:
    """Return the steps that record the rows of a stratum, if the plan is traced.

    Args:
        stratum: what was maintained.
        draft: the plan under construction.
        taken_role: the role of the working relation of tuples that were taken out, if there is one.
    """
    rows: list[Step] = []
    if not draft.is_traced:
        return rows
    updates = changes_below(stratum, draft)
    for name in stratum.relations:
        removed = Reference(name, State.REMOVED)
        out, back = removed, list[Reference]()
        if taken_role:
            out = Reference(draft.working_relation(name, taken_role))
            back = [Reference(draft.working_relation(name, "back"))]
            rows.append(draft.copy(back[0].relation, out, without=(removed,)))
        parts = ((out,), tuple(back), (removed,))
        removals = RecordTrace(f"{name}: removals", updates, *parts, name, State.REMOVED)
        rows.append(When((out,), (removals,)))
        added = Reference(name, State.ADDED)
        additions = RecordTrace(
            f"{name}: additions", updates, (added,), (), (added,), name, State.ADDED
        )
        rows.append(When((added,), (additions,)))
    return rows
