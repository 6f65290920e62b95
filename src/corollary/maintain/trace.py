"""The rows of a trace for algorithms that work on a stratum as a whole.

They give one row for the removals of a relation (what was taken out, what came back, what is gone)
and one for its additions; `epf` and `pf` tell a row for every invocation instead.
"""

from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plan import Row, Step, When
from corollary.core.states import State
from corollary.maintain.draft import Draft


def told(stratum: Stratum, draft: Draft, taken: str) -> list[Step]:
    """Return the rows of a trace: what was taken out, what came back, what changed."""
    rows: list[Step] = []
    if not draft.is_traced:
        return rows
    update = draft.update
    below = dict.fromkeys(
        [literal.relation for rule in stratum.rules for literal in rule.literals]
        + [each.body for each in stratum.aggregations]
    )
    updates = tuple(
        draft.changes(name, sign)
        for name in below
        if name not in stratum.relations
        for sign in sorted(update.signs(name))
    )
    for name in stratum.relations:
        removed = Reference(name, State.REMOVED)
        out, back = removed, list[Reference]()
        if taken:
            out = Reference(draft.make(name, taken))
            back = [Reference(draft.make(name, "back"))]
            rows.append(draft.copy(back[0].relation, out, without=(removed,)))
        parts = ((out,), tuple(back), (removed,))
        gone = Row(f"{name}: removals", updates, *parts, name, State.REMOVED)
        rows.append(When((out,), (gone,)))
        added = Reference(name, State.ADDED)
        row = Row(f"{name}: additions", updates, (added,), (), (added,), name, State.ADDED)
        rows.append(When((added,), (row,)))
    return rows
