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
        literal.relation
        for rule in stratum.rules
        for literal in rule.literals
        if literal.relation not in stratum.relations
    )
    updates = tuple(
        draft.changes(name, sign) for name in below for sign in sorted(update.signs(name))
    )
    for name in stratum.relations:
        removed = Reference(name, State.REMOVED)
        if taken:
            out = draft.make(name, taken)
            back = draft.make(name, "back")
            rows.append(draft.copy(back, Reference(out), without=(removed,)))
            parts = ((Reference(out),), (Reference(back),), (removed,))
            rows.append(Row(f"{name}: removals", updates, *parts, name, State.REMOVED))
        added = Reference(name, State.ADDED)
        row = Row(f"{name}: additions", updates, (added,), (), (added,), name, State.ADDED)
        rows.append(When((added,), (row,)))
    return rows
